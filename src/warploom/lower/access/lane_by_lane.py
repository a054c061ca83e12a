"""Emits the loop of an atomic that reads, combines and writes in each active lane in turn.

`atom.shared.add.u32 %r1, [%r2], %r3` with all lanes active becomes

    for lane in 0, 4, 8, ...:      ; four lanes an iteration
        old = load [address of lane]; store old + operand of lane
        result of lane = old

Lanes run lowest first, or in the order that a policy chooses (`cost.atomics.lane_order`). There is
no vectorized form: lanes may have one address.

Where several workers share a launch (`Slot.IS_SHARED`), updates of global memory that leave the
same in any order, and whose old values nobody reads, are atomic operations of the host. They have a
loop of their own, for these last several times as long as a load and a store. Updates whose order
shows are appended to the worker's log, if it has one (`lower.access.logged_updates`). In code for
workers that may conflict (`AccessCall.concurrent`) all updates of global memory are atomic; those
that the host has no operation for compare and exchange until nobody comes between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from warploom.abi.access_type import record_memory_change
from warploom.abi.environment import Slot
from warploom.helpers.calls import call
from warploom.isa.commuting import commuting_operator, is_deferrable
from warploom.isa.instruction import Space
from warploom.isa.preconditions import Precondition
from warploom.isa.spec import Operation
from warploom.isa.terms import Term
from warploom.llvm.lanes import I1, I8, I32, I64, LANES, PTR, Value, lane_type, vector, zero
from warploom.lower.access.access_call import AccessCall
from warploom.lower.access.access_moves import AccessMoves
from warploom.lower.access.logged_updates import LoggedUpdates
from warploom.lower.terms.terms import Lowering
from warploom.simt.lane_counts import ALL_LANES

AT_ONCE = 4
"""Lanes in one iteration of the loop, if all are active."""


OffsetOf = Callable[[Value], Value]
"""Returns the offset of one lane's element."""

Combine = Callable[[Value, int, Value, Value], None]
"""Emits the update of one element: its host address, its part, its lane, the lane's offset."""

OffsetsFrom = Callable[[Value], list[Value]]
"""Returns the offsets of several lanes' elements, beginning with a lane."""


@dataclass(frozen=True, slots=True)
class AtomicUpdate:
    """Describes the change of one atomic to memory: `combine` computes the new value from the old
    one and the operands, `need` is a precondition on the old one (None: no condition), and
    `returns_old` is true if old values are results. `operator` is the operator of an update that
    leaves the same in any order; None if the order shows. `is_deferrable`: it may be performed
    later, in order."""

    combine: Term
    need: Precondition | None
    returns_old: bool
    operator: str | None
    is_deferrable: bool

    @classmethod
    def of(cls, operation: Operation, count: int, space: str, *, returns_old: bool) -> AtomicUpdate:
        """Returns the update of an operation with `count` operands in a space (by its name; "" for
        any)."""
        need, combine = operation.spec.memory_precondition, operation.combine(count, space)
        operator = None if need or returns_old else commuting_operator(combine)
        may_be_late = not returns_old and operator is None and is_deferrable(operation)
        return cls(combine, need, returns_old, operator, may_be_late)


class LaneByLane:
    """Emits the loop over the lanes of one atomic in its access function (`access`). An element is
    counted as changed for the launch's count of memory changes. Operands and old values are in the
    data buffer, which has 32 lanes of each part (element of a `.v2` or `.v4` atomic)."""

    def __init__(self, access: AccessCall, moves: AccessMoves, update: AtomicUpdate) -> None:
        """Allocates the counter of changed elements, unless the operands alone determine it (`add`,
        `xor`)."""
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b
        self._moves, self._update = moves, update
        self._changed = None if _changes_by_operand(update.combine) else self.lanes.alloca(I64)
        """A counter of changed elements; None where the operands alone determine it."""
        self._uniform_operand: Value | None = None
        """The operand of all lanes, where it is uniform."""

    def emit(self, bits: Value, offsets: Value) -> None:
        """Emits the update of each active lane, one after the other, and the count of changed
        elements. Lanes run lowest first, or in the order of the launch's policy if there is one
        (`access.shuffles`). `bits` is the active mask, an i64; `offsets` is a pointer to 32 i64:
        the lanes' offsets in the space.

        An update is a load, an operation and a store, unless other workers may update the same
        memory. In global memory, without a policy, it is an atomic operation of the host, or a loop
        of compare and exchange where the host has no such operation, if workers may conflict
        (`access.concurrent`). If they merely share the launch, which is tested at run time
        (`Slot.IS_SHARED`), it is an atomic operation for operators whose order does not show. One
        whose order shows goes to the worker's log if it has one (`Slot.UPDATE_LOG_AT`)."""
        b = self.b

        def offset_of(lane: Value) -> Value:
            """Returns the offset of a lane's element in its space."""
            # Reads the offset from memory: extracting a lane from the vector costs more. The load
            # is atomic so that LLVM does not turn it into an extraction.
            return b.load_atomic(self.lanes.slot(offsets, lane), "monotonic", 8, typ=I64)

        self._begin()
        if self.access.shuffles:
            self._policy_order(bits, offsets, offset_of)
        elif self.access.access_type.space is not Space.GLOBAL:
            self._in_order(offset_of)
        elif self.access.concurrent:
            has_operation = self._update.operator is not None
            combine = self._combine_atomically if has_operation else self._combine_by_exchange
            self._lowest_first(offset_of, combine)
        elif self._update.operator is not None:
            is_shared = b.icmp_unsigned("!=", self.access.slot(Slot.IS_SHARED), I64(0))
            with b.if_else(is_shared, likely=False) as (shared, alone):
                with shared:
                    self._lowest_first(offset_of, self._combine_atomically)
                with alone:
                    self._in_order(offset_of)
        elif self._update.is_deferrable:
            log = self.access.slot(Slot.UPDATE_LOG_AT)
            with b.if_else(b.icmp_unsigned("!=", log, I64(0)), likely=False) as (logged, alone):
                with logged:
                    self._append_all(b.inttoptr(log, PTR), offset_of)
                with alone:
                    self._in_order(offset_of)
        else:
            self._in_order(offset_of)
        self._end()

    def _append_all(self, log: Value, offset_of: OffsetOf) -> None:
        """Emits the appending of each active lane's elements to the worker's log, in the order in
        which they would be updated. Each counts as changed, where operands do not show whether it
        is."""
        access_type, single = self.access.access_type, lane_type(self.access.access_type.type, 1)
        updates = LoggedUpdates(self.access, log, self._update.combine)

        def append(at: Value, part: int, lane: Value, _: Value) -> None:
            """Emits the appending of the element at host address `at`."""
            updates.append(at, self._operand(part, lane, single))

        elements = self.b.mul(self.lanes.popcount(self.access.bits), I64(access_type.parts))
        with updates.space_for(elements):
            self._lowest_first(offset_of, append)
        if self._changed is not None:
            self.b.store(elements, self._changed)

    def _in_order(self, offset_of: OffsetOf) -> None:
        """Emits the update of each active lane, the lowest first; full masks have a loop of their
        own."""
        b = self.b
        # With a full mask the next lane is the number plus one: no search for the lowest set bit,
        # which each iteration would have to wait for.
        all_on = b.icmp_unsigned("==", self.access.bits, I32(ALL_LANES))
        with b.if_else(all_on) as (whole, part):
            with whole:
                self._all_lanes(
                    lambda lane: [offset_of(b.add(lane, I64(n))) for n in range(AT_ONCE)]
                )
            with part:
                self._lowest_first(offset_of, self._combine)

    def emit_whole(self, offsets_from: OffsetsFrom, *, uniform: bool) -> None:
        """Emits the update of all lanes, which are active, in order, and the count of changed
        elements. If `uniform`, the operand at the begin of the data buffer serves all lanes."""
        if uniform:
            self._uniform_operand = self.b.load(
                self.access.data, typ=self.access.access_type.element
            )
        self._begin()
        self._all_lanes(offsets_from)
        self._end()

    def _begin(self) -> None:
        """Emits a store of 0 to the counter of changed elements, if there is one."""
        if self._changed is not None:
            self.b.store(I64(0), self._changed)

    def _end(self) -> None:
        """Emits the addition of the number of changed elements, from the counter or from the
        operands, to the launch's count of memory changes (`record_memory_change`), by which
        spinning warps are recognized."""
        changed_at = self._changed
        changed = (
            self._count_changed_by_operands()
            if changed_at is None
            else self.b.load(changed_at, typ=I64)
        )
        record_memory_change(self.lanes, self.access.environment, changed)

    def _count_changed_by_operands(self) -> Value:
        """Returns how many elements an `add` or `xor` changes, an i64: those of active lanes whose
        operand is not 0; with a uniform operand all 32 or none."""
        b, access_type = self.b, self.access.access_type
        if self._uniform_operand is not None:
            some = b.icmp_unsigned("!=", self._uniform_operand, self._uniform_operand.type(0))
            return b.select(some, I64(LANES), I64(0))
        counts: list[Value] = []
        for part in range(access_type.parts):
            operands = b.load(
                self._buffer_address(part, I64(0)), typ=vector(access_type.element), align=16
            )
            changes = b.icmp_unsigned("!=", operands, zero(vector(access_type.element)))
            some = b.and_(self.lanes.bits(changes), self.access.bits)
            counts.append(self.lanes.popcount(some))
        return reduce(b.add, counts)

    def _loop(self, type: ir.IntType, start: Value) -> tuple[Value, Callable[[Value, Value], None]]:
        """Begins a loop over a number that starts at `start`, whose body is run at least once.
        Returns the number's phi, and a function that ends the body with the next number and the
        condition to continue."""
        b, entry = self.b, self.b.block
        body, done = (self.access.function.append_basic_block(n) for n in ("lanes", "done"))
        b.branch(body)
        b.position_at_end(body)
        number = b.phi(type)
        number.add_incoming(start, entry)

        def continue_loop(following: Value, condition: Value) -> None:
            """Ends the body; code after it follows the loop."""
            number.add_incoming(following, b.block)
            b.cbranch(condition, body, done)
            b.position_at_end(done)

        return number, continue_loop

    def _all_lanes(self, offsets_from: OffsetsFrom) -> None:
        """Emits the loop for full masks, lane 0 first; an iteration updates as many consecutive
        lanes as `offsets_from(lane)` returns offsets, a divisor of 32."""
        lane, continue_loop = self._loop(I64, I64(0))
        offsets = offsets_from(lane)
        for number, address in enumerate(offsets):
            self._one_lane(address, self.b.add(lane, I64(number)), self._combine)
        following = self.b.add(lane, I64(len(offsets)))
        continue_loop(following, self.b.icmp_unsigned("<", following, I64(LANES)))

    def _lowest_first(self, offset_of: OffsetOf, combine: Combine) -> None:
        """Emits the loop over the active lanes of a mask, which is not empty, the lowest lane
        first."""
        remaining, continue_loop = self._loop(I32, self.access.bits)
        # 1: the result for 0 does not matter, for which LLVM needs no test. The mask is not empty.
        next_lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [remaining, I1(1)])
        lane = self.b.zext(next_lane, I64)
        self._one_lane(offset_of(lane), lane, combine)
        # Clears the lowest set bit. The mask has one: the access function returns early without.
        rest = self.b.and_(remaining, self.b.sub(remaining, I32(1)))
        continue_loop(rest, self.b.icmp_unsigned("!=", rest, I32(0)))

    def _policy_order(self, bits: Value, offsets: Value, offset_of: OffsetOf) -> None:
        """Emits the loop over the active lanes in the order that `cost.atomics.lane_order` returns:
        its low five bits are the first lane, the rest is the step from lane to lane (modulo 32);
        inactive lanes are skipped."""
        b, block = self.b, self.access.slot(Slot.BLOCK)
        plan = b.inttoptr(self.access.slot(Slot.PLAN_AT), PTR)
        order = call(self.lanes, "lane_order", offsets, bits, plan, block)
        turn, continue_loop = self._loop(I64, I64(0))
        step = b.mul(turn, b.lshr(order, I64(5)))
        lane = b.and_(b.add(order, step), I64(LANES - 1))
        with b.if_then(b.trunc(b.lshr(bits, lane), I1)):
            self._one_lane(offset_of(lane), lane, self._combine)
        following = b.add(turn, I64(1))
        continue_loop(following, b.icmp_unsigned("<", following, I64(LANES)))

    def _one_lane(self, address: Value, lane: Value, combine: Combine) -> None:
        """Emits the update of all elements of one lane by `combine`; `address` is its offset in the
        space."""
        b = self.b
        at = self._moves.pointer(address)
        for part in range(self.access.access_type.parts):
            element_at = b.gep(
                at, [I64(part * self.access.access_type.type.bytes)], source_etype=I8
            )
            combine(element_at, part, lane, address)

    def _combine(self, at: Value, part: int, lane: Value, address: Value) -> None:
        """Emits the update of part `part` of one lane, at host address `at`, as a load, an
        operation and a store. Emits the exit from the function with a fault if the old value
        violates the precondition; counts the element if its bits changed (unless operands determine
        that); and stores the old value to the data buffer if that is a result. `address` is the
        lane's offset in the space, for the fault."""
        b, count = self.b, self.access.access_type.parts
        single = lane_type(self.access.access_type.type, 1)
        old = b.load(at, typ=single, align=1)
        if self._update.need is not None:
            self._require(self._update.need, old, lane, address)
        # Operand n has parts n * count to n * count + count - 1 of the buffer; old values follow
        # two operands. A missing second operand is read but not used.
        operands = [self._operand(n * count + part, lane, single) for n in (0, 1)]
        new = Lowering(self.lanes, 1)(self._update.combine, [old, *operands])
        b.store(new, at, align=1)
        self._count_change(old, new)
        if self._update.returns_old:
            b.store(old, self._buffer_address(2 * count + part, lane), align=1)

    def _combine_atomically(self, at: Value, part: int, lane: Value, _: Value) -> None:
        """Emits the update of part `part` of one lane, at host address `at`, as an atomic operation
        of the host, and counts it if its bits changed (unless operands determine that)."""
        b, single = self.b, lane_type(self.access.access_type.type, 1)
        operand = self._operand(part, lane, single)
        operator = self._update.operator
        if operator in ("min", "max") and not self._update.combine.type.is_signed:
            operator = f"u{operator}"
        element = self.lanes.lane(operand, 0)
        # Where blocks may conflict, they may also synchronize by this atomic, which then has to
        # order their other accesses. Where they only share the launch, nothing but the sum can
        # show.
        order = "seq_cst" if self.access.concurrent else "monotonic"
        old = self.lanes.splat(b.atomic_rmw(operator, at, element, order), 1)
        self._count_change(old, Lowering(self.lanes, 1)(self._update.combine, [old, operand]))

    def _combine_by_exchange(self, at: Value, part: int, lane: Value, _: Value) -> None:
        """Emits the update of part `part` of one lane, at host address `at`, as a loop of compare
        and exchange: it ends once no other worker has changed the old value in between. Counts the
        element if its bits changed (unless operands determine that), and stores the old value to
        the data buffer if that is a result."""
        b, access_type = self.b, self.access.access_type
        single, bits = lane_type(access_type.type, 1), ir.VectorType(access_type.element, 1)
        operands = [self._operand(n * access_type.parts + part, lane, single) for n in (0, 1)]
        seen = b.load_atomic(at, "monotonic", access_type.type.bytes, typ=access_type.element)
        before, body, done = (
            b.block,
            *(self.access.function.append_basic_block(n) for n in ("exchange", "exchanged")),
        )
        b.branch(body)
        b.position_at_end(body)
        expected = b.phi(access_type.element)
        expected.add_incoming(seen, before)
        old = b.bitcast(self.lanes.splat(expected, 1), single)
        new = Lowering(self.lanes, 1)(self._update.combine, [old, *operands])
        element = self.lanes.lane(b.bitcast(new, bits), 0)
        exchanged = b.cmpxchg(at, expected, element, "seq_cst")
        expected.add_incoming(b.extract_value(exchanged, 0), b.block)
        b.cbranch(b.extract_value(exchanged, 1), done, body)
        b.position_at_end(done)
        self._count_change(old, new)
        if self._update.returns_old:
            b.store(old, self._buffer_address(2 * access_type.parts + part, lane), align=1)

    def _count_change(self, old: Value, new: Value) -> None:
        """Emits the count of an element whose bits an update changed, unless operands determine
        that."""
        if self._changed is None:
            return
        b, bits = self.b, ir.VectorType(self.access.access_type.element, 1)
        differs = b.icmp_unsigned("!=", b.bitcast(old, bits), b.bitcast(new, bits))
        self.lanes.add_to(self._changed, b.zext(self.lanes.lane(differs, 0), I64))

    def _require(self, need: Precondition, old: Value, lane: Value, address: Value) -> None:
        """Emits the exit with a fault record if the word in memory (`old`) breaks the precondition
        `need`: kind, lane, address and size are stored to the environment, and the function returns
        1."""
        b, lanes = self.b, self.lanes
        holds = lanes.lane(Lowering(lanes, 1)(need.of_memory, [old]), 0)
        with b.if_then(b.not_(holds), likely=False):
            record = {
                Slot.FAULT_KIND: I64(need.number),
                Slot.FAULT_LANE: lane,
                Slot.FAULT_ADDRESS: address,
                Slot.FAULT_SIZE: I64(self.access.access_type.size),
            }
            for slot, value in record.items():
                b.store(value, lanes.slot(self.access.environment, int(slot)))
            b.ret(I64(1))

    def _buffer_address(self, part: int, lane: Value) -> Value:
        """Returns the address, in the data buffer, of part `part` of a lane's operands or
        results.
        """
        offset = self.b.mul(lane, I64(self.access.access_type.type.bytes))
        return self.b.gep(
            self.access.data,
            [self.b.add(offset, I64(part * self.access.access_type.part_bytes))],
            source_etype=ir.IntType(8),
        )

    def _operand(self, part: int, lane: Value, type: ir.Type) -> Value:
        """Returns part `part` of a lane's operands from the data buffer, in 1 lane of `type`. An
        operand that all lanes share is in `_uniform_operand` instead, and is the same for each
        part."""
        if self._uniform_operand is not None:
            return self.b.bitcast(self.lanes.splat(self._uniform_operand, 1), type)
        return self.b.load(self._buffer_address(part, lane), typ=type, align=1)


def _changes_by_operand(combine: Term) -> bool:
    """Returns true if an update, `add` or `xor` of the old value and one operand, changes its
    element exactly if the operand is not 0."""
    return combine.op in ("add", "xor") and [term.op for term in combine.args] == ["arg", "arg"]
