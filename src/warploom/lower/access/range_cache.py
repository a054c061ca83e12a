"""Emits the use of access caches (`abi.range_cache`): finds whether an access is like an
earlier one, and counts it."""

from __future__ import annotations

from functools import reduce

from llvmlite import ir

from warploom.abi.environment import ROW_WIDTH
from warploom.abi.range_cache import (
    EXTENT,
    HEADER,
    LOW,
    PITCHES,
    RUNS,
    STEP,
    WITHIN,
    safe_at,
)
from warploom.analysis.shape_transfer import OperandShapes
from warploom.helpers.calls import call
from warploom.llvm.lanes import I64, Value
from warploom.lower.access.groups import Group
from warploom.lower.access.lane_sets import EVERYONE, LaneSet, LaneSets
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.range_cache_filling import CacheFilling


class AccessCache:
    """Emits looks at the access caches at the place where code goes now."""

    def __init__(self, memory: MemoryCode, reading: OperandShapes) -> None:
        self.memory, self.places = memory, memory.places
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._layout = self.frame.layout.caches
        self._begin = ROW_WIDTH * len(self.frame.layout.rows)
        self.sets = LaneSets(self.frame, reading)
        self._filling = CacheFilling(memory, self.sets)

    def knows(self, group: Group, who: LaneSet) -> Value:
        """Returns whether the accesses of a group, at its addresses, are like earlier ones: then
        all are aligned and inside of an allocation, and counted by `count`."""
        b = self.b
        entry = self._entry(group, who)
        conditions = [self._may_begin(entry, group)]
        if group.base.width > 1:
            conditions.append(self._has_pitches(entry, group))
        if group.step is not None and not group.accesses.is_laid_out:
            conditions.append(b.icmp_unsigned("==", group.step, self._word(entry, STEP)))
        counter = b.lshr(self._place(entry, group), I64(group.shape.size.bit_length() - 1))
        self.found(group, who, counter)
        return reduce(b.and_, conditions)

    def found(self, group: Group, who: LaneSet, counter: Value) -> None:
        """Accesses of a group are counted there, an i64, among those of their entry."""
        group.counter = self._count_at(self._leader(group), who, counter)
        group.place = who.number, counter
        if group.accesses.is_laid_out:
            group.step = self._word(self._entry(group, who), STEP)
        elif group.base.width > 1:
            entry = self._entry(group, who)
            agreed = group.step is None and group.base.stride == 0 and not who.is_full
            group.begins = self._safe(entry, group) if agreed else group.bases
            runs = range(group.base.width)
            group.safe = [self.lanes.lane(group.begins, run) for run in runs]

    def _may_begin(self, entry: Value, group: Group, ahead: Value | None = None) -> Value:
        """Returns whether the first run of a group, or what is so many bytes (an i64) ahead of it,
        is aligned and begins where all lanes are inside of an allocation: one comparison, since
        what is not aligned behind LOW is far outside once it is rotated."""
        b, shift = self.b, group.shape.size.bit_length() - 1
        behind = b.sub(group.firsts[0], self._word(entry, LOW))
        if ahead is not None:
            behind = b.add(behind, ahead)
        if shift:
            around = [behind, behind, I64(shift)]
            behind = self.lanes.intrinsic("llvm.fshr.i64", I64, around)
        return b.icmp_unsigned("<", behind, self._word(entry, EXTENT))

    def holds_until(self, group: Group, ahead: Value) -> Value:
        """Returns whether the group of all lanes is known, and so are those up to so many bytes (an
        i64) ahead."""
        known = self.knows(group, EVERYONE)
        last = self._may_begin(self._entry(group, EVERYONE), group, ahead)
        return self.b.and_(known, last)

    def keeps_place(self, group: Group, step: Value) -> Value:
        """Returns whether accesses of all lanes that begin so many bytes (an i64) behind are
        counted as the group is."""
        b = self.b
        # WITHIN has bits of the unit alone: where LLVM knows that a step is whole units, all folds.
        in_unit = b.and_(step, I64(self._layout.unit - 1))
        within = self._word(self._entry(group, EVERYONE), WITHIN)
        return b.icmp_unsigned("==", b.and_(in_unit, within), I64(0))

    def window(self, group: Group, who: LaneSet) -> tuple[Value, Value, Value]:
        """Returns how far a group begins behind the first place that an entry allows, how far the
        last such place does, both in bytes, and whether the entry is for accesses like these."""
        b, entry = self.b, self._entry(group, who)
        behind = b.sub(group.firsts[0], self._word(entry, LOW))
        size = I64(group.shape.size)
        last = b.mul(b.sub(self._word(entry, EXTENT), I64(1)), size)
        holds = [
            b.icmp_signed(">=", behind, I64(0)),
            b.icmp_signed("<=", behind, last),
            b.icmp_unsigned("==", b.and_(behind, b.sub(size, I64(1))), I64(0)),
            b.icmp_unsigned("==", self._word(entry, STEP), I64(group.base.stride)),
            b.icmp_unsigned("==", self._runs(group), I64(group.base.width)),
        ]
        if group.base.width > 1:
            holds.append(self._has_pitches(entry, group))
        return behind, last, reduce(b.and_, holds)

    def count_batch(self, group: Group, who: LaneSet, step: Value, times: Value) -> None:
        """Counts so many accesses of all of a group: one where it begins, and each of the others
        `step` bytes behind the one before it."""
        b, entry = self.b, self._entry(group, who)
        within, place = self._word(entry, WITHIN), self._place(entry, group)
        counts = self._count_at(self._leader(group), who, I64(0))
        shift = I64(group.shape.size.bit_length() - 1)
        same = b.icmp_unsigned("==", b.and_(step, within), I64(0))
        with b.if_else(same, likely=True) as (together, others):
            with together:
                self.lanes.add_to(self.lanes.slot(counts, b.lshr(place, shift)), times)
            with others:
                call(self.lanes, "count_strided", counts, place, step, within, shift, times)

    def _runs(self, group: Group) -> Value:
        """Returns of how many runs the accesses are that the cache of a group knows."""
        at = self._begin + self._layout.places[self._leader(group)] + RUNS
        return self.lanes.b.load(self.lanes.slot(self.frame.rows, at), typ=I64)

    def _place(self, entry: Value, group: Group) -> Value:
        """Returns the bits of where the first access begins that decide about costs."""
        offset = group.members[0][1]
        place = self.b.add(group.firsts[0], I64(offset)) if offset else group.firsts[0]
        return self.b.and_(place, self._word(entry, WITHIN))

    def _has_pitches(self, entry: Value, group: Group) -> Value:
        """Returns whether each run lies behind the first as far as in the entry."""
        b, width, first = self.b, group.base.width, group.firsts[0]
        if width == 2:  # one number to compare, for the first run lies 0 behind itself
            return b.icmp_unsigned(
                "==", b.sub(group.firsts[1], first), self._word(entry, PITCHES + 1)
            )
        type = ir.VectorType(I64, width)
        known = b.load(self.lanes.slot(entry, PITCHES), typ=type, align=8)
        other = b.xor(b.sub(group.bases, self.lanes.splat(first, width)), known)
        some = self.lanes.intrinsic(f"llvm.vector.reduce.or.v{width}i64", I64, [other])
        return b.icmp_unsigned("==", some, I64(0))

    def _safe(self, entry: Value, group: Group) -> Value:
        """Returns where each run begins, or one of which some lane is on, as a vector."""
        width = group.base.width
        at = self.lanes.slot(entry, safe_at(self._layout.runs))
        pitches = self.b.load(at, typ=ir.VectorType(I64, width), align=8)
        return self.b.add(self.lanes.splat(group.firsts[0], width), pitches)

    def _leader(self, group: Group) -> int:
        return self.places.number(group.members[0][0], group.shape.space)

    def _entries(self, row: int) -> Value:
        begin = self._begin + self._layout.places[row] + HEADER
        return self.lanes.slot(self.frame.rows, begin)

    def _entry(self, group: Group, who: LaneSet) -> Value:
        row = self._leader(group)
        behind = self.b.mul(who.number, I64(self._layout.entry(row)))
        return self.lanes.slot(self._entries(row), behind)

    def _count_at(self, row: int, who: LaneSet, counter: Value) -> Value:
        b = self.b
        behind = b.add(b.mul(who.number, I64(self._layout.entry(row))), I64(self._layout.counts))
        return self.lanes.slot(self._entries(row), b.add(behind, counter))

    def _word(self, entry: Value, word: int) -> Value:
        return self.b.load(self.lanes.slot(entry, word), typ=I64)

    def learn(self, group: Group, who: LaneSet) -> Value:
        """Have the next accesses like those of a group known. Returns 0 where the rules are to
        count this one, else 1 and where it is counted (an i64)."""
        return self._filling.learn(group, who, self._entry(group, who))

    # ---- counts ---------------------------------------------------------------------------------

    def count(self, group: Group, times: Value) -> None:
        """Count so many more accesses of all of a group."""
        assert group.counter is not None
        self.lanes.add_to(group.counter, times)

    def count_alone(self, group: Group, index: int) -> None:
        """Count one more access of a group without the others."""
        if index == group.members[0][0]:
            self.count(group, I64(1))
            for other, _ in group.members[1:]:
                self._add_own(group, other, -1)
        else:
            self._add_own(group, index, 1)

    def take_back(self, group: Group, index: int) -> None:
        """Take back one of the group's accesses, not the first, that had not been when the group
        was counted."""
        self._add_own(group, index, -1)

    def _add_own(self, group: Group, index: int, amount: int) -> None:
        """Count so many more of one access, not the first of its group, than of the group."""
        assert group.place is not None
        number, counter = group.place
        row = self.places.number(index, group.shape.space)
        at = self._count_at(row, LaneSet(I64(0), number), counter)
        self.lanes.add_to(at, I64(amount))
