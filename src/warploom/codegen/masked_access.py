"""Loads and stores of some lanes, the others waiting, at consecutive places or all at one: the
short way.

It is gone where all places are inside of what is known live, those of lanes that wait as well, and
the same lanes have reached there before, as far as that matters for the cost (`rules.patterns`).
Any other goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.analysis.shapes import Reading
from warploom.analysis.strides import UNIFORM
from warploom.codegen.access import STACK, Shape, count_change
from warploom.codegen.lanes import I1, I8, I32, I64, LANES, PTR, Value
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.pattern_places import pattern_place
from warploom.ptx.ir import Address, Instruction, Operand, Register, Space, Symbol
from warploom.rules.patterns import ANY_STEP, MASK, OFFSETS, REPEATS, STEP


class MaskedAccess:
    """Emits accesses under a mask whose addresses have shapes."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b

    def load(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """What a load gives, part by part; None where the short way is none for it."""
        shape, address = self.memory.shape_of("load", index, made), made.operands[1]
        step = self._step(shape, address)
        if step is None:
            return None

        def load_short(pointer: Value) -> Value:
            if step:
                return self.lanes.masked_load(pointer, on, shape.element)
            return self.lanes.splat(self._one(shape, pointer))

        def load_any(addresses: Value) -> Value:
            return self.memory.load_any(index, shape, addresses, on)[0]

        return [self._either(index, shape, address, on, load_short, load_any)]

    def load_agreed(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """The same in 1 lane, where all lanes read one place."""
        shape, address = self.memory.shape_of("load", index, made), made.operands[1]
        if self._step(shape, address) != 0:
            return None

        def load_short(pointer: Value) -> Value:
            return self.lanes.splat(self._one(shape, pointer), 1)

        def load_any(addresses: Value) -> Value:
            [found] = self.memory.load_any(index, shape, addresses, on)
            return self.frame.by_shape(found, self.lanes.bits(on), UNIFORM)

        return [self._either(index, shape, address, on, load_short, load_any)]

    def _one(self, shape: Shape, pointer: Value) -> Value:
        return self.b.load(pointer, typ=shape.element, align=shape.size)

    def _either(
        self,
        index: int,
        shape: Shape,
        address: Operand,
        on: Value,
        load_short: Callable[[Value], Value],
        load_any: Callable[[Value], Value],
    ) -> Value:
        """What a load gives: by the short way from where the first lane reaches, or by any other
        from all lanes' addresses."""
        b, first, step = self.b, self._first(address), self._step(shape, address) or 0
        short, other, done = (b.append_basic_block(n) for n in ("some", "any", "loaded"))
        b.cbranch(self._like_another(index, shape, first, step, on), short, other)
        b.position_at_end(short)
        found = load_short(self._pointer(shape, first))
        b.branch(done)
        b.position_at_end(other)
        others = load_any(self.lanes.fan(self._firsts(address), step))
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(found.type)
        result.add_incoming(found, short)
        result.add_incoming(others, behind)
        return result

    def store(self, index: int, made: Instruction, on: Value) -> bool:
        """Emit a store; False where the short way is none for it."""
        shape, address = self.memory.shape_of("store", index, made), made.operands[0]
        step = self._step(shape, address)
        if step is None or (step == 0 and self.memory.functions.shuffles):
            return False
        first = self._first(address)
        values = [self.memory.operands.bits(s, shape.type) for s in elements(made.operands[1])]
        like = self._like_another(index, shape, first, step, on)
        with self.b.if_else(like) as (short, other):
            with short:
                self._store_short(values[0], self._pointer(shape, first), step, on)
                count_change(self.lanes, self.frame.environment, I64(1))
            with other:
                addresses = self.lanes.fan(self._firsts(address), step)
                self.memory.store_any(index, shape, addresses, values, on)
        return True

    def _store_short(self, value: Value, pointer: Value, step: int, on: Value) -> None:
        if step:
            self.lanes.masked_store(value, pointer, on)
            return
        # Of lanes on one address the highest lasts.
        behind = self.lanes.intrinsic("llvm.ctlz.i32", I32, [self.lanes.bits(on), I1(0)])
        highest = self.b.and_(self.b.sub(I32(LANES - 1), behind), I32(LANES - 1))
        self.b.store(self.lanes.lane(value, highest), pointer, align=value.type.element.width // 8)

    def _step(self, shape: Shape, address: Operand) -> int | None:
        """How far it is from lane to lane: the size of an element, or 0. None where an access is
        not for the short way."""
        if self.memory.never_inlined or shape.parts > 1:
            return None
        if shape.space not in (Space.GLOBAL, Space.SHARED) or shape.route == STACK:
            return None
        known = isinstance(address, Address) and isinstance(address.base, Register | Symbol)
        base = self.reading.address(address)
        return base.stride if known and base.width == 1 and base.stride in (0, shape.size) else None

    def _firsts(self, address: Operand) -> Value:
        return self.memory.operands.address(address, 1)

    def _first(self, address: Operand) -> Value:
        """Where lane 0 reaches, or would."""
        return self.lanes.lane(self._firsts(address), 0)

    def _pointer(self, shape: Shape, first: Value) -> Value:
        if shape.space is Space.GLOBAL:
            return self.b.inttoptr(first, PTR)
        return self.b.gep(self.memory.base_of(shape), [first], source_etype=I8)

    def _like_another(self, index: int, shape: Shape, first: Value, step: int, on: Value) -> Value:
        """Whether such an access has been counted; then it is counted as one more."""
        b, lanes = self.b, self.lanes
        bits = b.zext(lanes.bits(on), I64)
        lowest = lanes.intrinsic("llvm.cttz.i64", I64, [bits, I1(0)])
        reached = b.add(first, b.mul(lowest, I64(step)))
        place = pattern_place(lanes, self.frame.layout.rules, bits, reached)
        pattern = lanes.slot(self.memory.places.row(index, shape.space), place.at)
        lane = b.and_(lowest, I64(LANES - 1))
        offset = self._word(pattern, b.add(lane, I64(OFFSETS)))
        known = self._word(pattern, I64(STEP))
        steady = b.or_(
            b.icmp_unsigned("==", known, I64(step)),
            b.icmp_unsigned("==", known, I64(ANY_STEP)),
        )
        conditions = (
            b.icmp_unsigned("!=", bits, I64(0)),
            b.icmp_unsigned("==", self._word(pattern, I64(MASK)), bits),
            b.icmp_unsigned("==", offset, b.sub(reached, place.base)),
            b.icmp_unsigned("==", b.and_(first, I64(shape.size - 1)), I64(0)),
            self.memory.common.inside(index, shape.space, first, LANES * step or shape.size),
        )
        for condition in conditions:
            steady = b.and_(steady, condition)
        with b.if_then(steady, likely=True):
            lanes.add_to(lanes.slot(pattern, REPEATS), I64(1))
        return steady

    def _word(self, pattern: Value, word: Value) -> Value:
        return self.b.load(self.lanes.slot(pattern, word), typ=I64)
