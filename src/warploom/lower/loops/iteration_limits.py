"""Emits the number of loop iterations in which values that are linear in the iteration number stay
within bounds: the length of a batch of a strided loop.

    i = 100, step 8, bound i < n = 1000     (1000 - 100 - 1) / 8 + 1 = 113 iterations

Two evaluated iterations give each value's step; all limits together are the minimum of such counts.
Steps and values that could overflow 64 bits give 0 iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from warploom.core.types import ScalarType
from warploom.llvm.lanes import I64, Lanes, Value
from warploom.shapes.vector_shape import VectorShape

MAX_ITERATIONS = 1 << 20
"""Iterations of a batch at most: with steps of at most MAX_STEP and values below MAX_VALUE, no
64-bit sum wraps around."""

MAX_STEP, MAX_VALUE = 1 << 40, 1 << 61


@dataclass(frozen=True)
class LinearOperand:
    """Holds an operand in one iteration: its `value`, one element for each lane run of its vector
    shape, and the type that it is read as. `is_loop_variant`: it may differ in the next iteration.
    """

    value: Value
    shape: VectorShape
    type: ScalarType
    is_loop_variant: bool


class IterationLimits:
    """Collects, while the check of a batch of iterations is emitted (`StridedLoopCode`), the
    conditions for it and the limits of its number of iterations; `count` returns the result."""

    def __init__(self, lanes: Lanes) -> None:
        """Begins without conditions, and with MAX_ITERATIONS as the limit."""
        self.lanes, self.b = lanes, lanes.b
        self._holds: list[Value] = []
        self._counts: list[Value] = [I64(MAX_ITERATIONS)]

    def require(self, condition: Value) -> None:
        """Adds a condition (an i1) without which there is no batch."""
        self._holds.append(condition)

    def forbid(self, condition: Value) -> None:
        """Adds a condition (an i1) with which there is no batch."""
        self._holds.append(self.b.not_(condition))

    def count(self) -> Value:
        """Returns the number of iterations, an i64: the least of the limits and MAX_ITERATIONS; 0
        if a condition does not hold. There must be a condition: each limit adds one.
        """
        least = reduce(self._least, self._counts)
        return self.b.select(reduce(self.b.and_, self._holds), least, I64(0))

    def _least(self, first_count: Value, second_count: Value) -> Value:
        """Returns the lesser of two counts (i64), compared without sign."""
        return self.lanes.intrinsic("llvm.umin.i64", I64, [first_count, second_count])

    def bound(self, value: Value, step: Value) -> None:
        """Limits the iterations to those in which `value` (an i64), to which each one adds `step`,
        is not negative; no limit if `step` is not negative. Adds the condition that `value` is not
        negative in the first, for any step: without it there is no batch."""
        b = self.b
        # `down` is never 0. Of a negative value the quotient means nothing, but then the condition
        # below allows no iteration at all.
        rises = b.icmp_signed(">=", step, I64(0))
        down = b.select(rises, I64(1), b.neg(step))
        times = b.add(b.udiv(value, down), I64(1))
        self.require(b.icmp_signed(">=", value, I64(0)))
        self._counts.append(b.select(rises, I64(MAX_ITERATIONS), times))

    def stays_between(self, offset: Value, last: Value, step: Value) -> None:
        """Limits the iterations to those in which `offset`, to which each one adds `step`, is at
        most `last` (if it rises) or at least 0 (else), all i64, and adds the condition that the
        first is one of them. The other end is not checked."""
        b = self.b
        rises = b.icmp_signed(">", step, I64(0))
        distance = b.select(rises, b.sub(last, offset), offset)
        self.bound(distance, b.select(rises, b.neg(step), step))

    def all_equal(self, values: Value, value: Value) -> Value:
        """Returns true (an i1) if all lanes of a vector are equal to a scalar."""
        differ = self.b.icmp_unsigned("!=", values, self.lanes.splat(value, values.type.count))
        return self.b.not_(self.lanes.some(differ))

    def stays_in_type(self, operand: LinearOperand, next_operand: LinearOperand) -> Value:
        """Limits the iterations to those in which no lane of an operand leaves its type's range,
        and adds the conditions that the first is one of them and that all lanes have one step. Does
        neither if the operand is loop-invariant, without stride and below 64 bits. A 64-bit operand
        gets no limit: the conditions are that its step and its first values are small (MAX_STEP,
        MAX_VALUE). `operand` and `next_operand`: the operand in two successive iterations. Returns
        its step, an i64."""
        b, bits = self.b, operand.type.bits
        # The second value may have wrapped around, and the difference is right all the same: it
        # wraps around in the same type. Read as a signed number it is the shorter way round, and
        # the limit below ends the batch before a value takes it past the end of the type.
        delta = b.sub(next_operand.value, operand.value)
        step = self.lanes.lane(delta, 0)
        if operand.value.type.count > 1 and operand.is_loop_variant:
            self.require(self.all_equal(delta, step))
        step = b.sext(step, I64) if bits < 64 else step
        low, high = self._extremes(operand)
        least, most = _range(operand.type)
        if bits == 64:
            # A 64-bit value has no wider type in which a wraparound could be computed: only small
            # steps and values are accepted. One unsigned comparison tests |step| <= MAX_STEP.
            is_small = b.icmp_unsigned("<=", b.add(step, I64(MAX_STEP)), I64(2 * MAX_STEP))
            self.require(is_small)
            least, most = max(least, -MAX_VALUE), min(most, MAX_VALUE)
        if operand.is_loop_variant or operand.shape.stride or bits == 64:
            self.require(b.icmp_signed(">=", low, I64(least)))
            self.require(b.icmp_signed("<=", high, I64(most)))
        if operand.is_loop_variant and bits < 64:
            rises = b.icmp_signed(">", step, I64(0))
            distance = b.select(rises, b.sub(I64(most), high), b.sub(low, I64(least)))
            self.bound(distance, b.select(rises, b.neg(step), step))
        return step

    def compare(
        self,
        relation: str,
        left: tuple[LinearOperand, LinearOperand],
        right: tuple[LinearOperand, LinearOperand],
    ) -> None:
        """Limits the iterations to those in which `relation` (`lt`, `le`, `gt`, `ge`; `ne` of
        uniform operands only) holds between two operands in all lanes, for `ne` until they are
        equal or cross, and no lane of them leaves its type; no batch if it does not hold in the
        first. `left` and `right` are the operands, each given in two successive iterations."""
        b = self.b
        # Where neither side leaves its type, comparing their numbers in 64 bits, with the type's
        # sign, is what the instruction does: the limits of types come first.
        steps = [self.stays_in_type(*operand) for operand in (left, right)]
        (low, high), (other_low, other_high) = (
            self._extremes(operand[0]) for operand in (left, right)
        )
        if relation in ("lt", "le"):
            span, step = b.sub(other_low, high), b.sub(steps[1], steps[0])
        elif relation in ("gt", "ge"):
            span, step = b.sub(low, other_high), b.sub(steps[0], steps[1])
        else:
            # `ne` holds until the operands are equal: their distance shrinks by the step, from
            # above or below.
            difference, step = b.sub(low, other_low), b.sub(steps[0], steps[1])
            is_above = b.icmp_signed(">", difference, I64(0))
            span = b.select(is_above, difference, b.neg(difference))
            step = b.select(is_above, step, b.neg(step))
        self.bound(span if relation in ("le", "ge") else b.sub(span, I64(1)), step)

    def _extremes(self, operand: LinearOperand) -> tuple[Value, Value]:
        """Returns the least and the greatest value of all lanes of an operand, as i64, from its
        values and its stride.
        """
        b, values = self.b, operand.value
        width = values.type.count
        if operand.type.bits < 64:
            extend = b.sext if operand.type.is_signed else b.zext
            values = extend(values, ir.VectorType(I64, width))
        low, high = (self._reduced(values, name) for name in ("smin", "smax"))
        assert width == operand.shape.width
        extent = operand.shape.extent
        return b.add(low, I64(min(extent, 0))), b.add(high, I64(max(extent, 0)))

    def _reduced(self, values: Value, name: str) -> Value:
        """Returns the signed minimum (`smin`) or maximum (`smax`) of a vector of i64, a scalar."""
        width = values.type.count
        if width == 1:
            return self.lanes.lane(values, 0)
        return self.lanes.intrinsic(f"llvm.vector.reduce.{name}.v{width}i64", I64, [values])


def _range(type: ScalarType) -> tuple[int, int]:
    """Returns the least and the greatest number of an integer type, by its signedness."""
    if type.is_signed:
        return -(1 << type.bits - 1), (1 << type.bits - 1) - 1
    return 0, (1 << type.bits) - 1
