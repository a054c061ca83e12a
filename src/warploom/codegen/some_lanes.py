"""What some lanes load and store at consecutive places, or at one, while the others wait.

The short way is for accesses of which all places are inside of what is known live, those of lanes
that wait as well, and where the same lanes have reached before, as far as that matters for the cost
(`rules.patterns`): such an access is counted as one more like that one.
"""

from __future__ import annotations

from functools import reduce

from warploom.analysis.shapes import Reading
from warploom.codegen.access import STACK, Shape
from warploom.codegen.lanes import I1, I8, I32, I64, LANES, PTR, Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.pattern_places import pattern_place
from warploom.ptx.ir import Address, Operand, Register, Space, Symbol
from warploom.rules.patterns import ANY_STEP, MASK, OFFSETS, REPEATS, STEP


class SomeLanes:
    """Emits the short way of such accesses. Where they are is said by where lane 0 reaches, or
    would, and by the step from lane to lane: the size of an element, or 0."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b

    def step(self, shape: Shape, address: Operand) -> int | None:
        """The step of an access; None where it is not for the short way."""
        if self.memory.never_inlined or shape.parts > 1:
            return None
        if shape.space not in (Space.GLOBAL, Space.SHARED) or shape.route == STACK:
            return None
        known = isinstance(address, Address) and isinstance(address.base, Register | Symbol)
        base = self.reading.address(address)
        chosen = shape.op == "store" and self.memory.functions.shuffles  # which lane's value lasts
        steps = (shape.size,) if chosen else (0, shape.size)
        return base.stride if known and base.width == 1 and base.stride in steps else None

    def first(self, address: Operand) -> Value:
        """Where lane 0 reaches, or would."""
        return self.lanes.lane(self.memory.operands.address(address, 1), 0)

    def like_another(
        self, index: int, shape: Shape, first: Value, step: int, bits: Value
    ) -> tuple[Value, Value]:
        """Whether such an access by some lanes (an i32) has been counted, and its pattern then."""
        b, lanes = self.b, self.lanes
        bits = b.zext(bits, I64)
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
            steady,
            b.icmp_unsigned("!=", bits, I64(0)),
            b.icmp_unsigned("==", self._word(pattern, I64(MASK)), bits),
            b.icmp_unsigned("==", offset, b.sub(reached, place.base)),
            b.icmp_unsigned("==", b.and_(first, I64(shape.size - 1)), I64(0)),
            self.memory.common.inside(index, shape.space, first, LANES * step or shape.size),
        )
        return reduce(b.and_, conditions), pattern

    def count(self, pattern: Value, times: Value) -> None:
        """So many more accesses were like that."""
        self.lanes.add_to(self.lanes.slot(pattern, REPEATS), times)

    def load(self, shape: Shape, first: Value, step: int, on: Value) -> Value:
        """What lanes load: in 32 lanes, or in 1 where they agree on a place."""
        pointer = self.pointer(shape, first)
        if step:
            return self.lanes.masked_load(pointer, on, shape.element)
        return self.lanes.splat(self.b.load(pointer, typ=shape.element, align=shape.size), 1)

    def store(self, shape: Shape, first: Value, step: int, value: Value, on: Value) -> None:
        """Lanes store their elements of a value."""
        pointer = self.pointer(shape, first)
        if step:
            self.lanes.masked_store(value, pointer, on)
            return
        # Of lanes on one address the highest lasts.
        behind = self.lanes.intrinsic("llvm.ctlz.i32", I32, [self.lanes.bits(on), I1(0)])
        highest = self.b.and_(self.b.sub(I32(LANES - 1), behind), I32(LANES - 1))
        self.b.store(self.lanes.lane(value, highest), pointer, align=shape.size)

    def pointer(self, shape: Shape, first: Value) -> Value:
        """Where lane 0 reaches on the host."""
        if shape.space is Space.GLOBAL:
            return self.b.inttoptr(first, PTR)
        return self.b.gep(self.memory.base_of(shape), [first], source_etype=I8)

    def _word(self, pattern: Value, word: Value) -> Value:
        return self.b.load(self.lanes.slot(pattern, word), typ=I64)
