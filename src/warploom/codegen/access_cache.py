"""Emits the use of access caches (`codegen.cache_layout`): finds whether an access is like an
earlier one, and counts it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from warploom.analysis.shapes import RUNS, Reading
from warploom.codegen.cache_layout import (
    ANY_STRIDE,
    BUCKET,
    GIVEN_UP,
    HASH_SHIFT,
    HEADER,
    LAYOUT_FACTOR,
    LAYOUT_SHIFT,
    LOW,
    MASK_FACTOR,
    MISSES,
    MOST_STRIDES,
    PITCHES,
    ROOM,
    STEP,
    STEP_AT,
    STRIDES,
    STRIDES_AT,
    WITHIN,
    safe_at,
)
from warploom.codegen.environment import ROW_WIDTH, Slot
from warploom.codegen.groups import Group
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I1, I32, I64, LANES, PTR, Value
from warploom.codegen.memory import MemoryCode
from warploom.ptx.ir import Instruction, Space


@dataclass(frozen=True)
class LaneSet:
    """Lanes that execute an access: their key, and its number among those of the kernel."""

    key: Value
    number: Value


EVERYONE = LaneSet(I64((1 << LANES) - 1), I64(0))
"""All lanes of a warp whose layout is that of all."""


class AccessCache:
    """Emits looks at the access caches at the place where code goes now."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.places = memory, memory.places
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._layout = self.frame.layout.caches
        self._begin = ROW_WIDTH * len(self.frame.layout.rows)
        self._layouts = RUNS.get(reading.formation, 1) > 1 and not self.frame.variant.alike
        self._together: LaneSet | None = None
        self._straight = True
        self._bases: Value | None = None
        self._limits: dict[Space, Value] = {}

    def begin(self, *, straight: bool) -> None:
        """Begin a basic block, in which the active lanes stay the same. `straight`: code comes to
        it at its begin only."""
        self._together, self._straight = None, straight

    # ---- who ------------------------------------------------------------------------------------

    def lane_set(self, made: Instruction, on: Value) -> LaneSet:
        """Returns the set of the lanes `on` that execute an instruction of the block."""
        if made.guard is not None or not self._straight:
            return self.set_of(self.lanes.bits(on))
        if self._together is None:
            self._together = self.set_of(self.lanes.bits(on))
        return self._together

    def set_of(self, bits: Value) -> LaneSet:
        """Returns the set of the lanes in an i32."""
        b = self.b
        key = b.zext(bits, I64)
        if self._layouts:
            key = b.or_(key, b.shl(self._layout_of_warp(), I64(LAYOUT_SHIFT)))
        before, search, done = b.block, *(b.append_basic_block(n) for n in ("lanes", "set"))
        b.cbranch(b.icmp_unsigned("==", key, EVERYONE.key), done, search)
        b.position_at_end(search)
        bucket = self._bucket(key)
        keys = self.lanes.slot(self.lanes.slot(self.frame.rows, self._begin), bucket)
        keys = b.load(keys, typ=ir.VectorType(I64, BUCKET), align=8)
        equal = b.icmp_unsigned("==", keys, self.lanes.splat(key, BUCKET))
        some = b.zext(b.bitcast(equal, ir.IntType(BUCKET)), I64)
        found = self.lanes.intrinsic("llvm.cttz.i64", I64, [some, I1(0)])
        none = b.icmp_unsigned("==", some, I64(0))
        found = b.select(none, I64(self._layout.sets), b.add(bucket, found))
        b.branch(done)
        b.position_at_end(done)
        number = b.phi(I64)
        number.add_incoming(EVERYONE.number, before)
        number.add_incoming(found, search)
        return LaneSet(key, number)

    def _bucket(self, key: Value) -> Value:
        """Return the number of the first key of a key's bucket (`bucket_of`)."""
        b, sets = self.b, self._layout.sets
        if sets == BUCKET:
            return I64(0)
        mask, layout = b.and_(key, I64(0xFFFFFFFF)), b.lshr(key, I64(LAYOUT_SHIFT))
        folded = b.and_(b.xor(mask, b.lshr(mask, I64(16))), I64(0xFFFF))
        mixed = b.add(b.mul(folded, I64(MASK_FACTOR)), b.mul(layout, I64(LAYOUT_FACTOR)))
        return b.and_(b.mul(b.lshr(mixed, I64(HASH_SHIFT)), I64(BUCKET)), I64(sets - 1))

    def everyone(self) -> LaneSet:
        """Returns the set of all lanes of the running warp."""
        return self.set_of(I32(-1)) if self._layouts else EVERYONE

    def _layout_of_warp(self) -> Value:
        """Return the number of the running warp's layout, as the host has it behind the indices."""
        b, warps = self.b, self.frame.slot(Slot.WARPS)
        at = b.add(b.mul(warps, I64(3 * LANES)), self.frame.warp)
        place = self.lanes.slot(self.frame.pointer(Slot.TIDS_AT), at, I32)
        return b.zext(b.load(place, typ=I32), I64)

    # ---- where ----------------------------------------------------------------------------------

    def knows(self, group: Group, who: LaneSet) -> Value:
        """Returns whether the accesses of a group, at its addresses, are like earlier ones: then
        all are aligned and inside of an allocation, and counted by `count`."""
        b, first = self.b, group.firsts[0]
        entry = self._entry(group, who)
        conditions = [self.is_inside(entry, first)]
        for number, stride in enumerate(group.strides.values(), STRIDES):
            conditions.append(b.icmp_unsigned("==", stride, self._word(entry, number)))
        if group.base.width > 1:
            conditions.append(self._has_pitches(entry, group))
        if group.step is not None and not group.is_laid_out:
            conditions.append(b.icmp_unsigned("==", group.step, self._word(entry, STEP)))
        place = self._place(entry, group)
        if group.shape.size > 1:
            crooked = b.and_(place, I64(group.shape.size - 1))
            conditions.append(b.icmp_unsigned("==", crooked, I64(0)))
        counter = b.lshr(place, I64(group.shape.size.bit_length() - 1))
        self.found(group, who, counter)
        return reduce(b.and_, conditions)

    def found(self, group: Group, who: LaneSet, counter: Value) -> None:
        """Accesses of a group are counted there, an i64, among those of their entry."""
        group.counter = self._count_at(self._leader(group), who, counter)
        group.place = who.number, counter
        if group.is_laid_out:
            group.step = self._word(self._entry(group, who), STEP)
        elif group.base.width > 1:
            entry = self._entry(group, who)
            agreed = group.step is None and group.base.stride == 0
            group.begins = self._safe(entry, group) if agreed else group.bases
            runs = range(group.base.width)
            group.safe = [self.lanes.lane(group.begins, run) for run in runs]

    def is_inside(self, entry: Value, first: Value) -> Value:
        """Returns whether the first run may begin at an address."""
        behind = self.b.sub(first, self._word(entry, LOW))
        return self.b.icmp_unsigned("<", behind, self._word(entry, ROOM))

    def holds_until(self, group: Group, ahead: Value) -> Value:
        """Returns whether the group of all lanes is known, and so are those up to so many bytes (an
        i64) ahead."""
        known = self.knows(group, EVERYONE)
        last = self.b.add(group.firsts[0], ahead)
        return self.b.and_(known, self.is_inside(self._entry(group, EVERYONE), last))

    def keeps_place(self, group: Group, step: Value) -> Value:
        """Returns whether accesses of all lanes that begin so many bytes (an i64) behind are
        counted as the group is."""
        within = self._word(self._entry(group, EVERYONE), WITHIN)
        return self.b.icmp_unsigned("==", self.b.and_(step, within), I64(0))

    def _place(self, entry: Value, group: Group) -> Value:
        """Returns the bits of where the first access begins that decide about costs."""
        offset = group.members[0][1]
        reached = self.b.add(group.firsts[0], I64(offset)) if offset else group.firsts[0]
        return self.b.and_(reached, self._word(entry, WITHIN))

    def _has_pitches(self, entry: Value, group: Group) -> Value:
        b, width = self.b, group.base.width
        at = self.lanes.slot(entry, PITCHES)
        known = b.load(at, typ=ir.VectorType(I64, width), align=8)
        pitches = b.sub(group.bases, self.lanes.splat(group.firsts[0], width))
        other = b.bitcast(b.icmp_unsigned("!=", pitches, known), ir.IntType(width))
        return b.icmp_unsigned("==", other, ir.IntType(width)(0))

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

    # ---- learning -------------------------------------------------------------------------------

    def learn(self, group: Group, who: LaneSet) -> Value:
        """Have the next accesses like those of a group known. Returns 0 where the rules are to
        count this one, else 1 and where it is counted (an i64)."""
        b = self.b
        before, ask, told = b.block, *(b.append_basic_block(n) for n in ("ask", "told"))
        b.cbranch(self._may_learn(group, who), ask, told)
        b.position_at_end(ask)
        found = self._ask(group, who)
        asked = b.block
        b.branch(told)
        b.position_at_end(told)
        learned = b.phi(I64)
        learned.add_incoming(I64(0), before)
        learned.add_incoming(found, asked)
        return learned

    def _may_learn(self, group: Group, who: LaneSet) -> Value:
        """Return whether to ask for an entry for accesses like those of a group: not where lanes
        have no key and never will, or where the entry has seen too many that never came again."""
        b = self.b
        at = b.add(self._bucket(who.key), I64(self._begin + BUCKET - 1))
        full = b.icmp_unsigned("!=", b.load(self.lanes.slot(self.frame.rows, at), typ=I64), I64(0))
        strange = b.and_(full, b.icmp_unsigned("==", who.number, I64(self._layout.sets)))
        misses = self._word(self._entry(group, who), MISSES)
        return b.and_(b.not_(strange), b.icmp_unsigned("<", misses, I64(GIVEN_UP)))

    def _ask(self, group: Group, who: LaneSet) -> Value:
        """Call the function that makes an entry, and return what it does."""
        b = self.b
        if self._bases is None:
            self._bases = self.frame.prologue.alloca(ir.ArrayType(I64, STEP_AT + 1), align=64)
        b.store(group.bases, self._bases, align=8)
        if group.step is not None and not group.is_laid_out:
            b.store(group.step, self.lanes.slot(self._bases, STEP_AT))
        for number, stride in enumerate(group.strides.values(), STRIDES_AT):
            b.store(stride, self.lanes.slot(self._bases, number))
        bounds = self._bounds(group)
        if group.shape.space in (Space.GLOBAL, Space.CONST):
            tables = [
                self.frame.pointer(slot) for slot in (Slot.STARTS_AT, Slot.ENDS_AT, Slot.FLAGS_AT)
            ]
            writes = I64(int(group.shape.op == "store"))
            given = group.firsts[0], writes, self.frame.environment, *tables, bounds
            call(self.lanes, "find_bounds", *given)
        sets = self.lanes.slot(self.frame.rows, self._begin)
        given = sets, self._words(group), self._bases, who.key, who.number, bounds
        return call(self.lanes, "learn_access", *given)

    def _bounds(self, group: Group) -> Value:
        """Return the address of where the group's space, or the allocation reached last, begins and
        ends."""
        space, prologue = group.shape.space, self.frame.prologue
        if space in (Space.GLOBAL, Space.CONST):
            return self.places.cache(group.members[0][0], space)
        if space not in self._limits:
            at = prologue.alloca(ir.ArrayType(I64, 2), align=16)
            prologue.b.store(I64(0), at)
            prologue.b.store(self.places.limit(space), prologue.slot(at, 1))
            self._limits[space] = at
        return self._limits[space]

    def _words(self, group: Group) -> Value:
        """Return a constant of the module: what is known of a group before it runs."""
        found = group.step is not None and not group.is_laid_out
        stride = ANY_STRIDE if found else group.base.stride
        words = [group.base.width, stride, group.shape.size, self._layout.unit]
        words += [len(group.strides), len(group.members), self._layout.sets, self._layout.runs]
        for index, offset in group.members:
            place = self._layout.places[self.places.number(index, group.shape.space)]
            laps = [group.ahead(index).get(stride, 0) for stride in group.strides]
            words += [place, offset, *laps, *[0] * (MOST_STRIDES - len(laps))]
        name = ".".join(["group", *map(str, words)])
        module = self.frame.module
        if name not in module.globals:
            type = ir.ArrayType(I64, len(words))
            made = ir.GlobalVariable(module, type, name)
            made.linkage, made.global_constant = "internal", True
            made.initializer = ir.Constant(type, [I64(word) for word in words])
            made.type = PTR
        return module.globals[name]
