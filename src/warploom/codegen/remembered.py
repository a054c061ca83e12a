"""What is remembered of accesses that went the short way, so that the next is known by it.

The first access of a group keeps in its row a range for the group's first place, the step between
rows, the stride of a group that walks, and those bits of the place that matter
(`environment.MEMO_*`). What lies in the range is
inside of one allocation with all of the group; allocations come and go only by the host's hand, and
it then empties all ranges (`machine.desk`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from warploom.codegen.environment import (
    MEMO_BASE,
    MEMO_BITS,
    MEMO_KIND,
    MEMO_LOW,
    MEMO_PASSES,
    MEMO_ROOM,
    MEMO_STEP,
    MEMO_STRIDE,
)
from warploom.codegen.groups import Form, Group
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I1, I32, I64, Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.reach import Reach
from warploom.rules.rows import LINE_BYTES

FURTHEST = 1 << 40
"""A step or stride that is longer is not looked at: so no sum of addresses begins again at 0."""

RARELY = (1 << 20, 1)
"""The weights of a way that is hardly ever left: what is live there stays in registers."""


class Remembered:
    """Emits the looks at a group: by what is remembered, or in full."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self.common, self._reach = memory, memory.common, Reach(memory.lanes)
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b

    def _memo(self, group: Group) -> Value:
        return self.memory.places.row(group.members[0][0], group.shape.space)

    def holds(self, group: Group, on: Value | None) -> Value:
        """Whether the access is like one that went the short way before, as far as that matters.
        `on` is None where all lanes are known to be on."""
        b, memo, firsts = self.b, self._memo(group), group.firsts
        inside = b.sub(firsts[0], self.word(memo, MEMO_LOW))
        conditions = [b.icmp_unsigned("<", inside, self.word(memo, MEMO_ROOM))]
        if on is not None:
            conditions.append(self._everyone(on))
        for number, stride in enumerate(group.strides.values(), MEMO_STRIDE):
            conditions.append(b.icmp_unsigned("==", stride, self.word(memo, number)))
        if group.form is Form.CONSECUTIVE:
            conditions += self._consecutive(group)
        else:
            bits, base = self.word(memo, MEMO_BITS), self.word(memo, MEMO_BASE)
            conditions.append(b.icmp_unsigned("==", b.and_(firsts[0], bits), base))
            step = b.sub(firsts[-1], firsts[0])
            if len(firsts) == 2:
                conditions.append(b.icmp_unsigned("==", step, self.word(memo, MEMO_STEP)))
        return reduce(b.and_, conditions)

    def holds_as_far(self, group: Group, as_far: Value) -> Value:
        """Whether so are accesses at consecutive places and those of other warps behind them, the
        last of them so many bytes (an i64) behind."""
        b, memo = self.b, self._memo(group)
        last = b.sub(b.add(group.firsts[0], as_far), self.word(memo, MEMO_LOW))
        within = b.icmp_unsigned("<", last, self.word(memo, MEMO_ROOM))
        return b.and_(self.holds(group, None), within)

    def _everyone(self, on: Value) -> Value:
        return self.b.icmp_unsigned("==", self.lanes.bits(on), I32(-1))

    def _consecutive(self, group: Group) -> list[Value]:
        """That places are aligned, and those of the second row behind those of the first."""
        b, firsts = self.b, group.firsts
        place = b.and_(b.add(firsts[0], I64(group.members[0][1])), I64(group.alignment - 1))
        found = [b.icmp_unsigned("==", place, I64(0))]
        if len(firsts) == 2:
            follows = b.icmp_unsigned("==", b.sub(firsts[1], firsts[0]), I64(group.extent // 2))
            found.append(follows)
        return found

    def or_learn(self, group: Group, on: Value) -> Value:
        """Whether an access can go the short way, where it is not like the last: it is then
        looked at, and remembered."""
        b, names = self.b, ("unknown", "learn", "learned")
        remembered = self.holds(group, on)
        before, (unknown, learn, done) = b.block, (b.append_basic_block(n) for n in names)
        b.cbranch(remembered, done, unknown).set_weights(RARELY)
        b.position_at_end(unknown)
        matches = self.matches(group, on)
        looked = b.block
        b.cbranch(matches, learn, done)
        b.position_at_end(learn)
        learned = self.learn(group)
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I1)
        for value, block in ((I1(1), before), (I1(0), looked), (learned, behind)):
            result.add_incoming(value, block)
        return result

    def looked_at(self, group: Group, on: Value, leader: int) -> Value:
        """The same in careful code, where each access is on its own and nothing is remembered. If
        it learns another kind than before, what its leader remembers holds no more."""
        matches = self.matches(group, on)
        if group.form is Form.CONSECUTIVE:
            return matches
        b, (learn, done) = self.b, (self.b.append_basic_block() for _ in range(2))
        before = b.block
        b.cbranch(matches, learn, done)
        b.position_at_end(learn)
        row = self._memo(group)
        kind = self.word(row, MEMO_KIND)
        known = b.icmp_unsigned("!=", self._learn_kinds(group), I64(0))
        with b.if_then(b.icmp_unsigned("!=", kind, self.word(row, MEMO_KIND))):
            room = self.lanes.slot(self.memory.places.row(leader, group.shape.space), MEMO_ROOM)
            b.store(I64(0), room)
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I1)
        result.add_incoming(I1(0), before)
        result.add_incoming(known, behind)
        return result

    def matches(self, group: Group, on: Value) -> Value:
        """Whether all lanes are on, and all places aligned and inside what is known live."""
        b, firsts, (index, offset) = self.b, group.firsts, group.members[0]
        conditions = [self._everyone(on)]
        if group.form is Form.CONSECUTIVE:
            conditions += self._consecutive(group)
        else:
            some = reduce(b.or_, (b.add(f, I64(offset)) for f in firsts))
            crooked = b.and_(some, I64(group.alignment - 1))
            conditions.append(b.icmp_unsigned("==", crooked, I64(0)))
        for stride in group.strides.values():
            conditions += self._walks_well(group, stride)
        start, stop = self._reach.span(group)
        for first in firsts[:1] if group.form is Form.CONSECUTIVE else firsts:
            place, extent = b.add(first, start), b.sub(stop, start)
            conditions.append(self.common.within(index, group.shape.space, place, extent))
        return reduce(b.and_, conditions)

    def _walks_well(self, group: Group, stride: Value) -> list[Value]:
        """That each stride keeps places aligned, and is so short that no sum begins again at 0."""
        b = self.b
        crooked = b.and_(stride, I64(group.alignment - 1))
        moved = b.add(stride, I64(FURTHEST))
        return [
            b.icmp_unsigned("==", crooked, I64(0)),
            b.icmp_unsigned("<", moved, I64(2 * FURTHEST)),
        ]

    def learn(self, group: Group) -> Value:
        """Remember an access that matches, and learn the kinds of a group by rows; whether all were
        known."""
        b, memo, firsts = self.b, self._memo(group), group.firsts
        known = I64(1)
        step, back = I64(0), I64(0)
        if group.form is not Form.CONSECUTIVE:
            known = self._learn_kinds(group)
            step = b.sub(firsts[-1], firsts[0])
            back = b.select(b.icmp_signed("<", step, I64(0)), step, I64(0))
        start, stop = self._reach.span(group)
        low, high = self.common.bounds(group.members[0][0], group.shape.space)
        lowest = b.sub(low, b.add(start, back))
        highest = b.sub(high, b.add(stop, b.sub(step, back)))
        # Beyond a line, and where they agree, it does not matter where in a line rows begin.
        near = b.icmp_unsigned("<", b.add(step, I64(LINE_BYTES)), I64(2 * LINE_BYTES))
        matters = b.and_(near, b.icmp_unsigned("!=", step, I64(0)))
        bits = b.select(matters, I64(LINE_BYTES - 1), I64(group.alignment - 1))
        words = {
            MEMO_STEP: step,
            MEMO_BITS: bits,
            MEMO_BASE: b.and_(firsts[0], bits),
            MEMO_LOW: lowest,
            MEMO_ROOM: b.add(b.sub(highest, lowest), I64(1)),
        }
        words |= dict(enumerate(group.strides.values(), MEMO_STRIDE))
        for word, value in words.items():
            b.store(value, self.lanes.slot(memo, word))
        return b.icmp_unsigned("!=", known, I64(0))

    def _learn_kinds(self, group: Group) -> Value:
        """Learn the kinds of a group's loads; 1 where all were known."""
        b, known = self.b, I64(1)
        leader = group.members[0][0] if group.leader is None else group.leader
        number = I64(self.memory.places.number(leader, group.shape.space))
        passes = self.word(self.memory.places.row(leader, group.shape.space), MEMO_PASSES)
        for *rows, row in self._rows(group):
            found = call(self.lanes, "learn_row", *rows, passes, number, row)
            known = b.and_(known, found)
        return known

    def knows_kinds(self, group: Group) -> Value:
        """Whether there were accesses of these kinds before."""
        known = I64(1)
        for given in self._rows(group) if group.form is not Form.CONSECUTIVE else ():
            known = self.b.and_(known, call(self.lanes, "knows_row", *given))
        return self.b.icmp_unsigned("!=", known, I64(0))

    def _rows(self, group: Group) -> Iterator[tuple[Value, Value, Value, Value]]:
        """For each access where its rows begin, whether their lanes follow each other, and its
        counts."""
        consecutive = I64(int(group.form is Form.ROWS))
        for index, _ in group.members:
            first, *_, second = self._reach.places(group, index) * 2
            yield first, second, consecutive, self.memory.places.row(index, group.shape.space)

    def word(self, row: Value, word: int) -> Value:
        return self.b.load(self.lanes.slot(row, word), typ=I64)
