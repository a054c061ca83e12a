"""Loads and stores of some lanes, the others waiting, at consecutive places: the short way.

It is gone where all 32 places are inside of what is known live, and the same lanes have reached
there before, as far as that matters for the cost (`rules.patterns`). Any other goes the general
way.
"""

from __future__ import annotations

from warploom.analysis.shapes import Reading
from warploom.codegen.access import STACK, Shape, count_change
from warploom.codegen.lanes import I1, I8, I64, LANES, PTR, Value
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.pattern_places import pattern_place
from warploom.ptx.ir import Address, Instruction, Operand, Register, Space
from warploom.rules.patterns import ANY_STEP, MASK, OFFSETS, REPEATS, STEP


class MaskedAccess:
    """Emits accesses under a mask whose addresses have shapes."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b

    def load(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """What a load gives, part by part; None where the short way is none for it."""
        shape, address = self.memory.shape_of("load", index, made), made.operands[1]
        if not self._can(shape, address):
            return None
        b, first = self.b, self._first(address)
        short, other, done = (b.append_basic_block(n) for n in ("some", "any", "loaded"))
        b.cbranch(self._like_another(index, shape, first, on), short, other)
        b.position_at_end(short)
        found = self.lanes.masked_load(self._pointer(shape, first), on, shape.element)
        b.branch(done)
        b.position_at_end(other)
        addresses = self.lanes.fan(self._firsts(address), shape.size)
        [others] = self.memory.load_any(index, shape, addresses, on)
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(found.type)
        result.add_incoming(found, short)
        result.add_incoming(others, behind)
        return [result]

    def store(self, index: int, made: Instruction, on: Value) -> bool:
        """Emit a store; False where the short way is none for it."""
        shape, address = self.memory.shape_of("store", index, made), made.operands[0]
        if not self._can(shape, address):
            return False
        first = self._first(address)
        values = [self.memory.operands.bits(s, shape.type) for s in elements(made.operands[1])]
        with self.b.if_else(self._like_another(index, shape, first, on)) as (short, other):
            with short:
                self.lanes.masked_store(values[0], self._pointer(shape, first), on)
                count_change(self.lanes, self.frame.environment, I64(1))
            with other:
                addresses = self.lanes.fan(self._firsts(address), shape.size)
                self.memory.store_any(index, shape, addresses, values, on)
        return True

    def _can(self, shape: Shape, address: Operand) -> bool:
        if self.memory.never_inlined or shape.parts > 1:
            return False
        if shape.space not in (Space.GLOBAL, Space.SHARED) or shape.route == STACK:
            return False
        known = isinstance(address, Address) and isinstance(address.base, Register)
        base = self.reading.address(address)
        return known and base.width == 1 and base.stride == shape.size

    def _firsts(self, address: Operand) -> Value:
        return self.memory.operands.address(address, 1)

    def _first(self, address: Operand) -> Value:
        """Where lane 0 reaches, or would."""
        return self.lanes.lane(self._firsts(address), 0)

    def _pointer(self, shape: Shape, first: Value) -> Value:
        if shape.space is Space.GLOBAL:
            return self.b.inttoptr(first, PTR)
        return self.b.gep(self.memory.base_of(shape), [first], source_etype=I8)

    def _like_another(self, index: int, shape: Shape, first: Value, on: Value) -> Value:
        """Whether such an access has been counted; then it is counted as one more."""
        b, lanes = self.b, self.lanes
        bits = b.zext(lanes.bits(on), I64)
        lowest = lanes.intrinsic("llvm.cttz.i64", I64, [bits, I1(0)])
        reached = b.add(first, b.mul(lowest, I64(shape.size)))
        place = pattern_place(lanes, self.frame.layout.rules, bits, reached)
        pattern = lanes.slot(self.memory.places.row(index, shape.space), place.at)
        lane = b.and_(lowest, I64(LANES - 1))
        offset = self._word(pattern, b.add(lane, I64(OFFSETS)))
        step = self._word(pattern, I64(STEP))
        steady = b.or_(
            b.icmp_unsigned("==", step, I64(shape.size)),
            b.icmp_unsigned("==", step, I64(ANY_STEP)),
        )
        conditions = (
            b.icmp_unsigned("!=", bits, I64(0)),
            b.icmp_unsigned("==", self._word(pattern, I64(MASK)), bits),
            b.icmp_unsigned("==", offset, b.sub(reached, place.base)),
            b.icmp_unsigned("==", b.and_(first, I64(shape.size - 1)), I64(0)),
            self.memory.common.inside(index, shape.space, first, LANES * shape.size),
        )
        for condition in conditions:
            steady = b.and_(steady, condition)
        with b.if_then(steady, likely=True):
            lanes.add_to(lanes.slot(pattern, REPEATS), I64(1))
        return steady

    def _word(self, pattern: Value, word: Value) -> Value:
        return self.b.load(self.lanes.slot(pattern, word), typ=I64)
