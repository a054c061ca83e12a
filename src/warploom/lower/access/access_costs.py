"""Counts the cost of an access in its function: that of an earlier one like it in its row, or by
the device's rules; and looks it up in the caches."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.cost.caches import LOCAL_BASE
from warploom.cost.fields import EXAMPLE_COST, TRANSACTIONS
from warploom.cost.pattern_table import (
    MASK,
    NEW_PATTERNS,
    NO_STEP,
    OFFSETS,
    REPEATS,
    SAMPLE_PERIOD,
    STEP,
    TRIAL_PATTERNS,
)
from warploom.helpers.calls import call
from warploom.llvm.lanes import I1, I64, PTR, Value, selection, vector, zero
from warploom.llvm.vector_shuffles import fold
from warploom.lower.access.access_call import Call
from warploom.lower.access.pattern_places import PatternPlace, pattern_place
from warploom.ptx.ir import Space

FEW = 8
"""Lanes that are compared before the others are."""

Move = Callable[[tuple[Value, Value]], None]


class AccessCosts:
    """Emits the counting of one access."""

    def __init__(self, access: Call) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b

    def count(
        self, bits: Value, offsets: Value, places: Value | None, move: Move | None = None
    ) -> tuple[Value, Value]:
        """Count the access: one more like an earlier one of its row, or by the device's rules.

        `places` is where the offsets stand in memory, if they do. Returns the place of the lowest
        lane, and the step from lane to lane (`cost.pattern_table`): NO_STEP where it is not known.
        `move`, given these two, moves the data before the rules are asked: the host's memory may
        take longer than they do.
        """
        b = self.b
        first = self._first(bits, offsets)
        place = pattern_place(self.lanes, self.access.rules, bits, first)
        pattern = self.lanes.slot(self.access.row, place.at)
        relative = b.sub(offsets, self.lanes.splat(place.base))
        with b.if_else(self._differs(pattern, bits, relative), likely=False) as (new, again):
            with new:
                if move is not None:
                    move((first, I64(NO_STEP)))
                scratch = places or self.access.told(offsets)
                kept = self._worth_keeping(pattern)
                with b.if_then(kept):
                    if self.access.deferred:
                        given = scratch, bits, self.access.limit, self.access.row
                        call(self.lanes, "place_window", *given)
                    call(self.lanes, "settle_pattern", scratch, bits, place.slot, self.access.row)
                self._count_by_rules(scratch, bits)
                with b.if_then(kept):
                    self._keep(scratch, bits, place)
                after_new = b.block
            with again:
                self.lanes.add_to(self.lanes.slot(pattern, REPEATS), I64(1))
                known = b.load(self.lanes.slot(pattern, STEP), typ=I64)
                if move is not None:
                    move((first, known))
                after_again = b.block
        step = b.phi(I64)
        step.add_incoming(I64(NO_STEP), after_new)
        step.add_incoming(known, after_again)
        return first, step

    def count_alone(self, bits: Value, places: Value) -> None:
        """Count an access by the device's rules, whatever the row has seen before."""
        self._count_by_rules(places, bits)

    def _keep(self, scratch: Value, bits: Value, place: PatternPlace) -> None:
        """Keep the pattern of what was counted. That is rare, so it takes the offsets from where
        they were told: else they would be kept for it on every way."""
        b = self.b
        offsets = b.load(scratch, typ=vector(I64))
        relative = self.access.told(b.sub(offsets, self.lanes.splat(place.base)))
        call(self.lanes, "keep_pattern", relative, bits, place.slot, self.access.row)
        self.access.told(b.add(b.load(scratch, typ=vector(I64)), self.lanes.splat(place.base)))

    def _differs(self, pattern: Value, bits: Value, relative: Value) -> Value:
        """Returns whether an access is none of a pattern. Mostly a few lanes tell, if it is not."""
        b = self.b
        known = b.load(self.lanes.slot(pattern, OFFSETS), typ=vector(I64), align=8)
        moved = b.xor(relative, known)
        few = b.shuffle_vector(moved, moved, selection(range(FEW)))
        some = b.bitcast(b.icmp_unsigned("!=", few, zero(few.type)), ir.IntType(FEW))
        some = b.and_(some, b.trunc(bits, ir.IntType(FEW)))
        other = b.icmp_unsigned("!=", b.load(self.lanes.slot(pattern, MASK), typ=I64), bits)
        other = b.or_(other, b.icmp_unsigned("!=", some, ir.IntType(FEW)(0)))
        before = b.block
        like, told = (self.access.function.append_basic_block(name) for name in ("like", "told"))
        b.cbranch(other, told, like)
        b.position_at_end(like)
        moved = fold(self.lanes, "or", moved, self.lanes.wide_mask(self.access.bits))
        moved = self.lanes.some(b.icmp_unsigned("!=", moved, zero(moved.type)))
        b.branch(told)
        b.position_at_end(told)
        differs = b.phi(I1)
        differs.add_incoming(I1(1), before)
        differs.add_incoming(moved, like)
        return differs

    def _first(self, bits: Value, places: Value) -> Value:
        """Return the place of the lowest lane that is on; mostly that is lane 0."""
        b, names = self.b, ("lowest", "other", "first")
        lowest, other, done = (self.access.function.append_basic_block(name) for name in names)
        on = b.icmp_unsigned("!=", b.and_(bits, I64(1)), I64(0))
        b.cbranch(on, lowest, other)
        b.position_at_end(lowest)
        zero = self.lanes.lane(places, 0)
        b.branch(done)
        b.position_at_end(other)
        lane = self.lanes.intrinsic("llvm.cttz.i64", I64, [bits, ir.Constant(ir.IntType(1), 1)])
        found = b.load(self.lanes.slot(self.access.told(places), lane), typ=I64)
        b.branch(done)
        b.position_at_end(done)
        first = b.phi(I64)
        first.add_incoming(zero, lowest)
        first.add_incoming(found, other)
        return first

    def _worth_keeping(self, pattern: Value) -> Value:
        """Returns whether a new pattern is kept in place of one (`cost.pattern_table`)."""
        b, at = self.b, self.lanes.slot(self.access.row, NEW_PATTERNS)
        repeats = b.load(self.lanes.slot(pattern, REPEATS), typ=I64)
        came_again = b.icmp_unsigned("!=", repeats, I64(0))
        doubt = b.select(came_again, I64(0), b.add(b.load(at, typ=I64), I64(1)))
        b.store(doubt, at)
        few = b.icmp_unsigned("<", doubt, I64(TRIAL_PATTERNS))
        turn = b.icmp_unsigned("==", b.and_(doubt, I64(SAMPLE_PERIOD - 1)), I64(0))
        return b.or_(few, turn)

    def _count_by_rules(self, scratch: Value, bits: Value) -> None:
        """Count the access by the device's rules, and keep it if it is the worst of its row."""
        access_type, size = self.access.access_type, I64(self.access.access_type.size)
        space = access_type.space.value
        before = self.b.load(self.lanes.slot(self.access.row, TRANSACTIONS), typ=I64)
        cost = self.access.rules.cost(space, access_type.op, route=access_type.route)
        call(self.lanes, cost, scratch, bits, size, self.access.row)
        self._keep_example(scratch, bits, before)
        if access_type.op == "atomic":
            self._count_passes(scratch, bits)
        writes = self.access.rules.writes(space) if access_type.op == "store" else None
        if writes is not None:
            call(self.lanes, writes, scratch, bits, size, self.access.row)

    def _keep_example(self, scratch: Value, bits: Value, before: Value) -> None:
        """Keep the access if it took more transactions than any (`cost.costliest_access`)."""
        row, b = self.access.row, self.b
        now, most = (
            b.load(self.lanes.slot(row, field), typ=I64) for field in (TRANSACTIONS, EXAMPLE_COST)
        )
        with b.if_then(b.icmp_signed(">", b.sub(now, before), most), likely=False):
            if self.access.deferred:  # which came before
                call(self.lanes, "count_deferred_access", scratch, bits, I64(0), row)
                after = b.load(self.lanes.slot(row, TRANSACTIONS), typ=I64)
                before = b.add(before, b.sub(after, now))
            call(self.lanes, "keep_example", scratch, bits, before, row)

    def _count_passes(self, scratch: Value, bits: Value) -> None:
        """Counts the lanes on one address."""
        size = I64(self.access.access_type.size)
        call(self.lanes, "count_passes", scratch, bits, size, self.access.row)

    def look_up(self, bits: Value, offsets: Value) -> None:
        """Count what the caches have of it, where they are counted."""
        access_type, size = self.access.access_type, I64(self.access.access_type.size)
        path = self.access.rules.path(
            access_type.space.value, access_type.op, route=access_type.route
        )
        if path is not None:
            caches = self.b.inttoptr(self.access.slot(Slot.HIERARCHY_AT), PTR)
            where = (self.access.slot(Slot.BLOCK), self._place_of_local())
            given = self.access.told(offsets), bits, size, self.access.row, caches, I64(path)
            call(self.lanes, "count_cached", *given, *where)

    def _place_of_local(self) -> Value:
        """Returns where the warp's local memory begins among the lines of the caches; else 0."""
        if self.access.access_type.space is not Space.LOCAL:
            return I64(0)
        b, block = self.b, self.access.slot(Slot.BLOCK)
        inside = b.sub(b.ptrtoint(self.access.base, I64), self.access.slot(Slot.LOCAL_AT))
        before = b.mul(block, self.access.slot(Slot.LOCAL_BYTES))
        return b.add(I64(LOCAL_BASE), b.add(before, inside))
