"""Emits the cost counting (transactions, sectors, bank conflicts) in an out-of-line access
function, into the instruction's access record: one increment if the pattern of addresses was seen
before, else a call of the device's cost rules.

An access whose pattern the record has seen before (`cost.pattern_table`) costs one increment: its
mask and the offsets of its lanes from a multiple of the device's unit are compared with a stored
pattern. Any other is counted by the device's rules, and its pattern may be stored. Example: lanes
at 0x1080 + 4l and later at 0x2080 + 4l have equal offsets from their 128-byte lines, so the second
one is an increment.

Simulated caches (`cost.caches`), where they are counted, are looked up for every access: their
state depends on the addresses themselves.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.cost.caches import LOCAL_BASE
from warploom.cost.fields import CostRecord
from warploom.cost.pattern_table import (
    NO_STEP,
    SAMPLE_PERIOD,
    TRIAL_PATTERNS,
    CostTable,
    StoredPattern,
)
from warploom.helpers.calls import call
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I1, I64, PTR, Value, selection, vector, zero
from warploom.llvm.vector_shuffles import reduce_to_8_lanes
from warploom.lower.access.access_call import AccessCall
from warploom.lower.access.pattern_slots import PatternSlot, pattern_slot

COMPARED_FIRST = 8
"""Lanes that are compared before all others: most patterns that differ do so in these."""

MoveData = Callable[[tuple[Value, Value]], None]


class AccessCosts:
    """Emits the cost counting of one access function, into its access record. A pattern is an
    active mask and the offsets of its lanes from a multiple of the device's unit; the record has a
    table of eight, with their costs. `bits` is the active mask as an i64, `scratch` the address of
    the 32 offsets in memory."""

    def __init__(self, access: AccessCall) -> None:
        """Stores the access function to whose code the counting is emitted."""
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b

    def count(
        self,
        bits: Value,
        offsets: Value,
        stored_offsets: Value | None,
        move: MoveData | None = None,
    ) -> tuple[Value, Value]:
        """Emits the count of the access. If its pattern equals the one stored in its slot, which
        mask and first offset choose, adds 1 to the repetitions of that. Else counts by the device's
        rules, and if `_should_store` allows it, replaces the pattern in the slot (and for deferred
        atomics moves the record's window).

        `offsets` are the lanes' offsets as a vector, `stored_offsets` is their address if they are
        in memory already. Returns the offset of the lowest active lane, and the stored pattern's
        stride from lane to lane (`cost.pattern_table`): ANY_STEP with one active lane, NO_STEP if
        it varies, is negative, or the pattern is new. `move`, given these two, moves the data, for
        a new pattern before the rules are called: a load from the host's memory may last longer
        than they do, and so overlaps with them."""
        b = self.b
        first_offset = self._first(bits, offsets)
        table_slot = pattern_slot(self.lanes, self.access.rules, bits, first_offset)
        pattern = self.lanes.slot(self.access.record, table_slot.at)
        relative = b.sub(offsets, self.lanes.splat(table_slot.base))
        with b.if_else(self._differs(pattern, bits, relative), likely=False) as (new, repeated):
            with new:
                if move is not None:
                    move((first_offset, I64(NO_STEP)))
                scratch = stored_offsets or self.access.store_lanes(offsets)
                should_store = self._should_store(pattern)
                with b.if_then(should_store):
                    if self.access.deferred:
                        arguments = scratch, bits, self.access.limit, self.access.record
                        call(self.lanes, "move_window", *arguments)
                    # Adds the evicted pattern's repetitions, and stores the negated counters as the
                    # new one's costs; `store_pattern` adds the counters again after the rules have
                    # counted, which leaves what these added.
                    call(
                        self.lanes,
                        "settle_pattern",
                        scratch,
                        bits,
                        table_slot.slot,
                        self.access.record,
                    )
                self._count_by_rules(scratch, bits)
                with b.if_then(should_store):
                    self._record_pattern(scratch, bits, table_slot)
                after_new = b.block
            with repeated:
                self.lanes.add_to(self.lanes.slot(pattern, StoredPattern.repeats), I64(1))
                recorded = b.load(self.lanes.slot(pattern, StoredPattern.step), typ=I64)
                if move is not None:
                    move((first_offset, recorded))
                after_again = b.block
        step = b.phi(I64)
        step.add_incoming(I64(NO_STEP), after_new)
        step.add_incoming(recorded, after_again)
        return first_offset, step

    def count_without_pattern(self, bits: Value, stored_offsets: Value) -> None:
        """Counts an access by the device's rules and neither compares it with the stored patterns
        nor stores its own. `stored_offsets` is the address of the offsets in memory.
        """
        self._count_by_rules(stored_offsets, bits)

    def _record_pattern(self, scratch: Value, bits: Value, table_slot: PatternSlot) -> None:
        """Stores the pattern of the access that was just counted, with its costs, in slot
        `table_slot` of the record. Reads the offsets back from `scratch`: as an SSA value they
        would stay live, and be spilled, on every path. Leaves `scratch` as it was, since an atomic
        reads it afterwards."""
        b = self.b
        offsets = b.load(scratch, typ=vector(I64))
        relative = self.access.store_lanes(b.sub(offsets, self.lanes.splat(table_slot.base)))
        call(self.lanes, "store_pattern", relative, bits, table_slot.slot, self.access.record)
        self.access.store_lanes(
            b.add(b.load(scratch, typ=vector(I64)), self.lanes.splat(table_slot.base))
        )

    def _differs(self, pattern: Value, bits: Value, relative: Value) -> Value:
        """Returns true (an i1) if an access differs from the stored pattern at the address
        `pattern`: in its mask, or in some active lane's offset, `relative` to a multiple of the
        unit. Compares the mask and the first 8 lanes before it compares all."""
        b = self.b
        recorded = b.load(self.lanes.slot(pattern, StoredPattern.offsets), typ=vector(I64), align=8)
        difference = b.xor(relative, recorded)
        first_lanes = b.shuffle_vector(difference, difference, selection(range(COMPARED_FIRST)))
        some = b.bitcast(
            b.icmp_unsigned("!=", first_lanes, zero(first_lanes.type)), ir.IntType(COMPARED_FIRST)
        )
        some = b.and_(some, b.trunc(bits, ir.IntType(COMPARED_FIRST)))
        mismatch = b.icmp_unsigned(
            "!=", b.load(self.lanes.slot(pattern, StoredPattern.mask), typ=I64), bits
        )
        mismatch = b.or_(mismatch, b.icmp_unsigned("!=", some, ir.IntType(COMPARED_FIRST)(0)))
        before = b.block
        same_first, done = (
            self.access.function.append_basic_block(name) for name in ("compare_rest", "compared")
        )
        b.cbranch(mismatch, done, same_first)
        b.position_at_end(same_first)
        difference = reduce_to_8_lanes(
            self.lanes, "or", difference, self.lanes.wide_mask(self.access.bits)
        )
        difference = self.lanes.some(b.icmp_unsigned("!=", difference, zero(difference.type)))
        b.branch(done)
        b.position_at_end(done)
        differs = b.phi(I1)
        differs.add_incoming(I1(1), before)
        differs.add_incoming(difference, same_first)
        return differs

    def _first(self, bits: Value, offsets: Value) -> Value:
        """Returns the lowest active lane's element (an i64) of `offsets`, a vector; some lane is
        active. May store the vector to the function's scratch."""
        b, names = self.b, ("lowest", "other", "first")
        # Lane 0 is active nearly always, and its element is an extract with a constant index; a
        # variable index would go through memory on every access.
        lowest, mismatch, done = (self.access.function.append_basic_block(name) for name in names)
        on = b.icmp_unsigned("!=", b.and_(bits, I64(1)), I64(0))
        b.cbranch(on, lowest, mismatch)
        b.position_at_end(lowest)
        zero = self.lanes.lane(offsets, 0)
        b.branch(done)
        b.position_at_end(mismatch)
        lane = self.lanes.intrinsic("llvm.cttz.i64", I64, [bits, ir.Constant(ir.IntType(1), 1)])
        element = b.load(self.lanes.slot(self.access.store_lanes(offsets), lane), typ=I64)
        b.branch(done)
        b.position_at_end(done)
        first_offset = b.phi(I64)
        first_offset.add_incoming(zero, lowest)
        first_offset.add_incoming(element, mismatch)
        return first_offset

    def _should_store(self, pattern: Value) -> Value:
        """Returns true (an i1) if the new pattern replaces the one at address `pattern`. The record
        counts new patterns in succession, and begins again at 0 where the pattern replaced has been
        repeated: while the count is below TRIAL_PATTERNS all replace, then one in SAMPLE_PERIOD."""
        b, at = self.b, self.lanes.slot(self.access.record, CostTable.new_patterns)
        repeats = b.load(self.lanes.slot(pattern, StoredPattern.repeats), typ=I64)
        came_again = b.icmp_unsigned("!=", repeats, I64(0))
        doubt = b.select(came_again, I64(0), b.add(b.load(at, typ=I64), I64(1)))
        b.store(doubt, at)
        first_lanes = b.icmp_unsigned("<", doubt, I64(TRIAL_PATTERNS))
        # After TRIAL_PATTERNS patterns without a repetition only one in SAMPLE_PERIOD is stored:
        # storing costs time, and random addresses never repeat.
        turn = b.icmp_unsigned("==", b.and_(doubt, I64(SAMPLE_PERIOD - 1)), I64(0))
        return b.or_(first_lanes, turn)

    def _count_by_rules(self, scratch: Value, bits: Value) -> None:
        """Emits the calls of the device's rules that add the access's costs to the record: those of
        its operation and space, the passes of an atomic, and the writes of a store if the rules
        count them. Stores the access as the record's example if it is the costliest so far."""
        access_type, size = self.access.access_type, I64(self.access.access_type.size)
        space = access_type.space.value
        before = self.b.load(self.lanes.slot(self.access.record, CostRecord.transactions), typ=I64)
        cost = self.access.rules.cost(space, access_type.op, route=access_type.route)
        call(self.lanes, cost, scratch, bits, size, self.access.record)
        self._record_example(scratch, bits, before)
        if access_type.op == "atomic":
            self._count_passes(scratch, bits)
        writes = self.access.rules.writes(space) if access_type.op == "store" else None
        if writes is not None:
            call(self.lanes, writes, scratch, bits, size, self.access.record)

    def _record_example(self, scratch: Value, bits: Value, before: Value) -> None:
        """Stores the access (mask and addresses) as the record's example if it needed more
        transactions than any before (`cost.costliest_access`); `before` is the record's count of
        transactions before it. Accesses still in the list of deferred atomics came earlier: they
        are counted first."""
        record, b = self.access.record, self.b
        now, worst = (
            b.load(self.lanes.slot(record, field), typ=I64)
            for field in (CostRecord.transactions, CostRecord.example_cost)
        )
        with b.if_then(b.icmp_signed(">", b.sub(now, before), worst), likely=False):
            # Accesses that are still in the deferred list came before this one, and one of them may
            # be costlier: count them first.
            if self.access.deferred:
                call(self.lanes, "count_deferred_access", scratch, bits, I64(0), record)
                after = b.load(self.lanes.slot(record, CostRecord.transactions), typ=I64)
                before = b.add(before, b.sub(after, now))
            call(self.lanes, "store_example", scratch, bits, before, record)

    def _count_passes(self, scratch: Value, bits: Value) -> None:
        """Emits the call that adds the passes of an atomic to the record: the most active lanes
        that have one address."""
        size = I64(self.access.access_type.size)
        call(self.lanes, "count_passes", scratch, bits, size, self.access.record)

    def count_in_caches(self, bits: Value, offsets: Value) -> None:
        """Emits the call that looks the access at `offsets` up in the simulated caches and adds its
        hits and misses to the record; nothing if the device's rules have no caches on the path of
        this space and operation."""
        access_type, size = self.access.access_type, I64(self.access.access_type.size)
        path = self.access.rules.path(
            access_type.space.value, access_type.op, route=access_type.route
        )
        if path is not None:
            caches = self.b.inttoptr(self.access.slot(Slot.HIERARCHY_AT), PTR)
            location = (self.access.slot(Slot.BLOCK), self._local_line_offset())
            arguments = (
                self.access.store_lanes(offsets),
                bits,
                size,
                self.access.record,
                caches,
                I64(path),
            )
            call(self.lanes, "count_cached", *arguments, *location)

    def _local_line_offset(self) -> Value:
        """Returns the address at which the simulated caches see the warp's local memory: LOCAL_BASE
        plus the bytes of local memory of the blocks before it and of the block's warps before it; 0
        for other spaces."""
        if self.access.access_type.space is not Space.LOCAL:
            return I64(0)
        b, block = self.b, self.access.slot(Slot.BLOCK)
        inside = b.sub(b.ptrtoint(self.access.base, I64), self.access.slot(Slot.LOCAL_AT))
        before = b.mul(block, self.access.slot(Slot.LOCAL_BYTES))
        return b.add(I64(LOCAL_BASE), b.add(before, inside))
