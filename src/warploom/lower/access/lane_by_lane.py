"""Atomics: read, combine and write in each active lane in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from warploom.abi.access_type import record_memory_change
from warploom.abi.environment import Slot
from warploom.helpers.calls import call
from warploom.isa.preconditions import Precondition
from warploom.isa.spec import Operation
from warploom.isa.terms import Term
from warploom.llvm.lanes import I1, I8, I32, I64, LANES, PTR, Value, lane_type, vector, zero
from warploom.lower.access.access_call import Call
from warploom.lower.access.access_moves import AccessMoves
from warploom.lower.terms.terms import Lowering
from warploom.simt.lane_counts import ALL_LANES

AT_ONCE = 4
"""Lanes for one turn of the loop, where all are active."""


PlaceOf = Callable[[Value], Value]
"""Where a lane reaches: its offset."""

PlacesFrom = Callable[[Value], list[Value]]
"""The same of some lanes, from one on."""


@dataclass(frozen=True, slots=True)
class Update:
    """The change of one atomic to memory: the new value from the old one and the operands, the
    condition on the old one, if any, and whether the old values are wanted."""

    combine: Term
    need: Precondition | None
    tells: bool

    @classmethod
    def of(cls, operation: Operation, count: int, space: str, *, tells: bool) -> Update:
        """Return the change by an operation with `count` operands in a space."""
        need = operation.spec.memory_precondition
        return cls(operation.combine(count, space), need, tells)


class LaneByLane:
    """Emits the turns of the lanes of one atomic."""

    def __init__(self, access: Call, moves: AccessMoves, update: Update) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b
        self._moves, self._update = moves, update
        self._changed = None if _changes_by_operand(update.combine) else self.lanes.alloca(I64)
        """How many elements changed, where that is counted one by one."""
        self._agreed: Value | None = None
        """The operand of all lanes, where they are known to agree."""

    def emit(self, bits: Value, places: Value) -> None:
        """Read, combine and write in each active lane in turn, the lowest first unless a policy
        chooses; `places` is where their offsets stand in memory."""
        b = self.b

        def place_of(lane: Value) -> Value:
            # Out of memory, where LLVM would take a vector apart, which costs more.
            return b.load_atomic(self.lanes.slot(places, lane), "monotonic", 8, typ=I64)

        self._begin()
        if self.access.shuffles:
            self._by_policy(bits, places, place_of)
        else:
            everyone = b.icmp_unsigned("==", self.access.bits, I32(ALL_LANES))
            with b.if_else(everyone) as (whole, part):
                with whole:
                    self._all(lambda lane: [place_of(b.add(lane, I64(n))) for n in range(AT_ONCE)])
                with part:
                    self._rising(place_of)
        self._end()

    def emit_whole(self, places_from: PlacesFrom, *, agreed: bool) -> None:
        """Emit the same where all lanes are active and no policy chooses; if `agreed`, one operand
        stands for those of all lanes."""
        if agreed:
            self._agreed = self.b.load(self.access.data, typ=self.access.access_type.element)
        self._begin()
        self._all(places_from)
        self._end()

    def _begin(self) -> None:
        if self._changed is not None:
            self.b.store(I64(0), self._changed)

    def _end(self) -> None:
        """Tell how many elements changed."""
        known = self._changed
        changed = self._told_by_operands() if known is None else self.b.load(known, typ=I64)
        record_memory_change(self.lanes, self.access.environment, changed)

    def _told_by_operands(self) -> Value:
        """Returns how many elements change, where the operands alone say it."""
        b, access_type = self.b, self.access.access_type
        if self._agreed is not None:
            some = b.icmp_unsigned("!=", self._agreed, self._agreed.type(0))
            return b.select(some, I64(LANES), I64(0))
        counts: list[Value] = []
        for part in range(access_type.parts):
            given = b.load(self._place(part, I64(0)), typ=vector(access_type.element), align=16)
            changes = b.icmp_unsigned("!=", given, zero(vector(access_type.element)))
            some = b.and_(self.lanes.bits(changes), self.access.bits)
            counts.append(self.lanes.popcount(some))
        return reduce(b.add, counts)

    def _loop(self, type: ir.IntType, first: Value) -> tuple[Value, Callable[[Value, Value], None]]:
        """Begin a loop over a number: that number, and what ends the body with the next one, to go
        on while a condition holds."""
        b, entry = self.b, self.b.block
        body, done = (self.access.function.append_basic_block(n) for n in ("lanes", "done"))
        b.branch(body)
        b.position_at_end(body)
        number = b.phi(type)
        number.add_incoming(first, entry)

        def again(following: Value, condition: Value) -> None:
            number.add_incoming(following, b.block)
            b.cbranch(condition, body, done)
            b.position_at_end(done)

        return number, again

    def _all(self, places_from: PlacesFrom) -> None:
        lane, again = self._loop(I64, I64(0))
        places = places_from(lane)
        for ahead, place in enumerate(places):
            self._one_lane(place, self.b.add(lane, I64(ahead)))
        following = self.b.add(lane, I64(len(places)))
        again(following, self.b.icmp_unsigned("<", following, I64(LANES)))

    def _rising(self, place_of: PlaceOf) -> None:
        left, again = self._loop(I32, self.access.bits)
        found = self.lanes.intrinsic("llvm.cttz.i32", I32, [left, I1(1)])
        lane = self.b.zext(found, I64)
        self._one_lane(place_of(lane), lane)
        rest = self.b.and_(left, self.b.sub(left, I32(1)))
        again(rest, self.b.icmp_unsigned("!=", rest, I32(0)))

    def _by_policy(self, bits: Value, places: Value, place_of: PlaceOf) -> None:
        """Emit it in the order that `cost.atomics.lane_order` gives."""
        b, block = self.b, self.access.slot(Slot.BLOCK)
        plan = b.inttoptr(self.access.slot(Slot.PLAN_AT), PTR)
        order = call(self.lanes, "lane_order", places, bits, plan, block)
        turn, again = self._loop(I64, I64(0))
        step = b.mul(turn, b.lshr(order, I64(5)))
        lane = b.and_(b.add(order, step), I64(LANES - 1))
        with b.if_then(b.trunc(b.lshr(bits, lane), I1)):
            self._one_lane(place_of(lane), lane)
        following = b.add(turn, I64(1))
        again(following, b.icmp_unsigned("<", following, I64(LANES)))

    def _one_lane(self, place: Value, lane: Value) -> None:
        """Read, combine and write in one lane."""
        b = self.b
        at = self._moves.pointer(place)
        for part in range(self.access.access_type.parts):
            here = b.gep(at, [I64(part * self.access.access_type.type.bytes)], source_etype=I8)
            self._combine(here, part, lane, place)

    def _combine(self, at: Value, part: int, lane: Value, place: Value) -> None:
        """Combine one element of one lane: read it, combine, write it, and keep what was there."""
        b, count = self.b, self.access.access_type.parts
        single = lane_type(self.access.access_type.type, 1)
        old = b.load(at, typ=single, align=1)
        if self._update.need is not None:
            self._require(self._update.need, old, lane, place)
        given = [self._operand(n * count + part, lane, single) for n in (0, 1)]
        new = Lowering(self.lanes, 1)(self._update.combine, [old, *given])
        b.store(new, at, align=1)
        if self._changed is not None:
            bits = ir.VectorType(self.access.access_type.element, 1)
            differs = b.icmp_unsigned("!=", b.bitcast(old, bits), b.bitcast(new, bits))
            self.lanes.add_to(self._changed, b.zext(self.lanes.lane(differs, 0), I64))
        if self._update.tells:
            b.store(old, self._place(2 * count + part, lane), align=1)

    def _require(self, need: Precondition, old: Value, lane: Value, place: Value) -> None:
        """Return with the record of a fault where the word in memory breaks the precondition."""
        b, lanes = self.b, self.lanes
        holds = lanes.lane(Lowering(lanes, 1)(need.of_memory, [old]), 0)
        with b.if_then(b.not_(holds), likely=False):
            record = {
                Slot.FAULT_KIND: I64(need.number),
                Slot.FAULT_LANE: lane,
                Slot.FAULT_ADDRESS: place,
                Slot.FAULT_SIZE: I64(self.access.access_type.size),
            }
            for slot, value in record.items():
                b.store(value, lanes.slot(self.access.environment, int(slot)))
            b.ret(I64(1))

    def _place(self, part: int, lane: Value) -> Value:
        offset = self.b.mul(lane, I64(self.access.access_type.type.bytes))
        return self.b.gep(
            self.access.data,
            [self.b.add(offset, I64(part * self.access.access_type.part_bytes))],
            source_etype=ir.IntType(8),
        )

    def _operand(self, part: int, lane: Value, type: ir.Type) -> Value:
        if self._agreed is not None:
            return self.b.bitcast(self.lanes.splat(self._agreed, 1), type)
        return self.b.load(self._place(part, lane), typ=type, align=1)


def _changes_by_operand(combine: Term) -> bool:
    """Returns whether a value changes where the operand is not 0, and only there."""
    return combine.op in ("add", "xor") and [term.op for term in combine.args] == ["arg", "arg"]
