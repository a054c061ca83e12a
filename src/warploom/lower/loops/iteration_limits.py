"""Emits for how many iterations of a loop what is linear in their number stays within bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from warploom.analysis.vector_shape import VectorShape
from warploom.core.types import ScalarType
from warploom.llvm.lanes import I64, Lanes, Value

MOST = 1 << 20
"""Iterations of a batch at most: with steps of at most `FURTHEST` and values below `LARGEST`, no
sum of 64 bits wraps around."""

FURTHEST, LARGEST = 1 << 40, 1 << 61


@dataclass(frozen=True)
class Linear:
    """An operand in some iteration: its `value` in as many lanes as its shape has, and the type
    that it is read as. It `moves` if it may differ in the next iteration."""

    value: Value
    shape: VectorShape
    type: ScalarType
    moves: bool


class Limits:
    """Collects conditions under which iterations are alike, and how many hold."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.b = lanes, lanes.b
        self._holds: list[Value] = []
        self._counts: list[Value] = [I64(MOST)]

    def require(self, condition: Value) -> None:
        """Lets a condition hold, or there is no batch."""
        self._holds.append(condition)

    def forbid(self, condition: Value) -> None:
        """Lets a condition not hold, or there is no batch."""
        self._holds.append(self.b.not_(condition))

    def count(self) -> Value:
        """Returns how many iterations there may be, an i64; 0 if a condition does not hold."""
        least = reduce(self._least, self._counts)
        return self.b.select(reduce(self.b.and_, self._holds), least, I64(0))

    def _least(self, one: Value, other: Value) -> Value:
        return self.lanes.intrinsic("llvm.umin.i64", I64, [one, other])

    def bound(self, value: Value, step: Value) -> None:
        """Bounds the iterations to those in which `value`, which `step` is added to after each, is
        not below 0."""
        b = self.b
        rises = b.icmp_signed(">=", step, I64(0))
        down = b.select(rises, I64(1), b.neg(step))
        times = b.add(b.udiv(value, down), I64(1))
        self.require(b.icmp_signed(">=", value, I64(0)))
        self._counts.append(b.select(rises, I64(MOST), times))

    def stays_between(self, behind: Value, last: Value, step: Value) -> None:
        """Bounds the iterations to those in which what is `behind` a place by so much, and by
        `step` more after each, is neither before it nor beyond `last`."""
        b = self.b
        rises = b.icmp_signed(">", step, I64(0))
        left = b.select(rises, b.sub(last, behind), behind)
        self.bound(left, b.select(rises, b.neg(step), step))

    def all_equal(self, values: Value, value: Value) -> Value:
        """Returns whether all lanes of a vector are equal to a scalar."""
        differ = self.b.icmp_unsigned("!=", values, self.lanes.splat(value, values.type.count))
        return self.b.not_(self.lanes.some(differ))

    def stays_in_type(self, first: Linear, second: Linear) -> Value:
        """Bounds the iterations to those in which no lane of an operand wraps around; returns by
        how much it advances, an i64."""
        b, bits = self.b, first.type.bits
        moved = b.sub(second.value, first.value)
        step = self.lanes.lane(moved, 0)
        if first.value.type.count > 1 and first.moves:
            self.require(self.all_equal(moved, step))
        step = b.sext(step, I64) if bits < 64 else step
        low, high = self._extremes(first)
        least, most = _range(first.type)
        if bits == 64:
            further = b.icmp_unsigned("<=", b.add(step, I64(FURTHEST)), I64(2 * FURTHEST))
            self.require(further)
            least, most = max(least, -LARGEST), min(most, LARGEST)
        if first.moves or first.shape.stride or bits == 64:
            self.require(b.icmp_signed(">=", low, I64(least)))
            self.require(b.icmp_signed("<=", high, I64(most)))
        if first.moves and bits < 64:
            rises = b.icmp_signed(">", step, I64(0))
            left = b.select(rises, b.sub(I64(most), high), b.sub(low, I64(least)))
            self.bound(left, b.select(rises, b.neg(step), step))
        return step

    def compare(
        self, relation: str, left: tuple[Linear, Linear], right: tuple[Linear, Linear]
    ) -> None:
        """Bounds the iterations to those in which a relation of two operands holds in all lanes.
        Each operand is given as it is in two iterations."""
        b = self.b
        steps = [self.stays_in_type(*one) for one in (left, right)]
        (low, high), (other_low, other_high) = (self._extremes(one[0]) for one in (left, right))
        if relation in ("lt", "le"):
            span, step = b.sub(other_low, high), b.sub(steps[1], steps[0])
        elif relation in ("gt", "ge"):
            span, step = b.sub(low, other_high), b.sub(steps[0], steps[1])
        else:
            ahead, step = b.sub(low, other_low), b.sub(steps[0], steps[1])
            is_ahead = b.icmp_signed(">", ahead, I64(0))
            span = b.select(is_ahead, ahead, b.neg(ahead))
            step = b.select(is_ahead, step, b.neg(step))
        self.bound(span if relation in ("le", "ge") else b.sub(span, I64(1)), step)

    def _extremes(self, operand: Linear) -> tuple[Value, Value]:
        """Returns the least and the greatest that some lane has, as i64."""
        b, values = self.b, operand.value
        width = values.type.count
        if operand.type.bits < 64:
            extend = b.sext if operand.type.is_signed else b.zext
            values = extend(values, ir.VectorType(I64, width))
        low, high = (self._reduced(values, name) for name in ("smin", "smax"))
        extent = VectorShape(width, operand.shape.stride).extent
        return b.add(low, I64(min(extent, 0))), b.add(high, I64(max(extent, 0)))

    def _reduced(self, values: Value, name: str) -> Value:
        width = values.type.count
        if width == 1:
            return self.lanes.lane(values, 0)
        return self.lanes.intrinsic(f"llvm.vector.reduce.{name}.v{width}i64", I64, [values])


def _range(type: ScalarType) -> tuple[int, int]:
    """Returns the least and the greatest number of a type."""
    if type.is_signed:
        return -(1 << type.bits - 1), (1 << type.bits - 1) - 1
    return 0, (1 << type.bits) - 1
