"""What an access costs, counted in its function: like an earlier one of its row, or by the device's
rules; and what the caches have of it."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.access import Call
from warploom.codegen.environment import Slot
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I64, PTR, Value, vector
from warploom.codegen.pattern_places import pattern_place
from warploom.ptx.ir import Space
from warploom.rules.caches import LOCAL_BASE
from warploom.rules.fields import TRANSACTIONS
from warploom.rules.patterns import DOUBT, MASK, OFFSETS, REPEATS, TRIALS


class AccessCosts:
    """Emits the counting of one access."""

    def __init__(self, access: Call) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b

    def count(self, bits: Value, offsets: Value) -> None:
        """Count the access: one more like an earlier one of its row, or by the device's rules."""
        b = self.b
        place = pattern_place(self.lanes, self.access.rules, bits, self._first(bits, offsets))
        pattern = self.lanes.slot(self.access.row, place.at)
        relative = b.sub(offsets, self.lanes.splat(place.base))
        known = b.load(self.lanes.slot(pattern, OFFSETS), typ=vector(I64), align=8)
        moved = b.icmp_unsigned("!=", relative, known)
        moved = self.lanes.any(b.and_(moved, self.lanes.mask(self.access.bits)))
        other = b.icmp_unsigned("!=", b.load(self.lanes.slot(pattern, MASK), typ=I64), bits)
        with b.if_else(b.or_(moved, other), likely=False) as (new, again):
            with new:
                scratch = self.access.told(offsets)
                kept = self._worth_keeping(pattern)
                with b.if_then(kept):
                    call(self.lanes, "settle_pattern", scratch, bits, place.slot, self.access.row)
                self._count_by_rules(scratch, bits)
                with b.if_then(kept):
                    told = self.access.told(relative)
                    call(self.lanes, "keep_pattern", told, bits, place.slot, self.access.row)
            with again:
                self.lanes.add_to(self.lanes.slot(pattern, REPEATS), I64(1))

    def _first(self, bits: Value, places: Value) -> Value:
        """The place of the lowest lane that is on; mostly that is lane 0."""
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
        """Whether a new pattern is kept in place of one (`rules.patterns`)."""
        b, at = self.b, self.lanes.slot(self.access.row, DOUBT)
        repeats = b.load(self.lanes.slot(pattern, REPEATS), typ=I64)
        came_again = b.icmp_unsigned("!=", repeats, I64(0))
        doubt = b.select(came_again, I64(0), b.add(b.load(at, typ=I64), I64(1)))
        b.store(doubt, at)
        few = b.icmp_unsigned("<", doubt, I64(TRIALS))
        turn = b.icmp_unsigned("==", b.and_(doubt, I64(TRIALS - 1)), I64(0))
        return b.or_(few, turn)

    def _count_by_rules(self, scratch: Value, bits: Value) -> None:
        """Count the access by the device's rules, and keep it if it is the worst of its row."""
        shape, size = self.access.shape, I64(self.access.shape.size)
        space = shape.space.value
        before = self.b.load(self.lanes.slot(self.access.row, TRANSACTIONS), typ=I64)
        cost = self.access.rules.cost(space, shape.op, route=shape.route)
        call(self.lanes, cost, scratch, bits, size, self.access.row)
        call(self.lanes, "keep_example", scratch, bits, before, self.access.row)
        if shape.op == "atomic":
            call(self.lanes, "count_passes", scratch, bits, size, self.access.row)
        writes = self.access.rules.writes(space) if shape.op == "store" else None
        if writes is not None:
            call(self.lanes, writes, scratch, bits, size, self.access.row)

    def look_up(self, bits: Value, offsets: Value) -> None:
        """Count what the caches have of it, where they are counted."""
        shape, size = self.access.shape, I64(self.access.shape.size)
        path = self.access.rules.path(shape.space.value, shape.op, route=shape.route)
        if path is not None:
            caches = self.b.inttoptr(self.access.slot(Slot.HIERARCHY_AT), PTR)
            where = (self.access.slot(Slot.BLOCK), self._place_of_local())
            given = self.access.told(offsets), bits, size, self.access.row, caches, I64(path)
            call(self.lanes, "count_cached", *given, *where)

    def _place_of_local(self) -> Value:
        """Where the warp's local memory begins among the lines of the caches; else 0."""
        if self.access.shape.space is not Space.LOCAL:
            return I64(0)
        b, block = self.b, self.access.slot(Slot.BLOCK)
        inside = b.sub(b.ptrtoint(self.access.base, I64), self.access.slot(Slot.LOCAL_AT))
        before = b.mul(block, self.access.slot(Slot.LOCAL_BYTES))
        return b.add(I64(LOCAL_BASE), b.add(before, inside))
