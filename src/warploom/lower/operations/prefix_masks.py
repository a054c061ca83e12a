"""Emits comparisons of an affine value of stride 1 with a uniform one as scalar arithmetic: the
lanes in which they hold are a prefix of the warp, its complement, or one lane.

    setp.lt.s32 %p1, %tid.x, %r1;   ->   count = clamp(r1 - first tid, 0, 32)
                                         mask  = (1 << count) - 1
    setp.ge: the complement;  setp.eq: bit (r1 - first tid), if it is in 0..31

It holds for 32-bit integers whose lanes do not wrap around, which is checked at run time; otherwise
all lanes are compared. Comparisons with a Boolean operand and of other strides are not handled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.isa.instruction import Instruction, Operand
from warploom.llvm.lanes import I32, I64, LANES, Value
from warploom.lower.frame.operands import Operands
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.prefix_comparisons import COMPLEMENTS, inverted_if, rising_comparison


@dataclass(frozen=True)
class Rise:
    """Describes a comparison (`lt`, `eq`, ...) of values that rise by 1 from lane to lane, from
    `lowest` in lane 0, with the uniform `bound`; both are i64, extended from 32 bits by `signed`.
    """

    comparison: str
    lowest: Value
    bound: Value
    signed: bool

    @property
    def highest(self) -> int:
        """Returns the greatest number of the compared 32-bit type; a lane above it wraps around."""
        return (1 << (31 if self.signed else 32)) - 1


class PrefixMaskCode:
    """Emits comparisons that hold in a prefix of the lanes, in convergent code; warp loops use them
    to count the threads that run their bodies.
    """

    def __init__(self, operands: Operands) -> None:
        """Shares the operands and their frame; emits nothing."""
        self.operands = operands
        self.frame, self.lanes, self.b = operands.frame, operands.lanes, operands.b

    def compare(self, instruction: Instruction, compare_lanes: Callable[[], Value]) -> Value | None:
        """Returns the mask of a `setp` that compares a 32-bit integer, which rises by 1 from lane
        to lane, with a uniform one, computed as a prefix of lanes; None for another, and in
        divergent code. `compare_lanes` emits the comparison of all lanes, which code uses if values
        wrap around."""
        position = self.frame.position
        rise = (
            self._rising_operands(instruction, position.operand_shapes)
            if position.convergent
            else None
        )
        return None if rise is None else self._compare_or_fall_back(rise, compare_lanes)

    def count_prefix(
        self,
        instruction: Instruction,
        operand_shapes: OperandShapes,
        threads: Value,
        *,
        opposite: bool,
    ) -> tuple[Value, Value]:
        """Returns the number of threads, of the first `threads` (an i64), in which a comparison
        accepted by `holds_in_prefix` holds (its complement, if `opposite`). Returns as well an i1
        that is true if the number is valid: no thread's value wraps around, and for `==`, whose
        number is 1, the first thread has the bound."""
        rise, b = self._rising_operands(instruction, operand_shapes), self.b
        assert rise is not None
        last = b.sub(threads, I64(1))
        no_wrap = b.icmp_signed("<=", rise.lowest, b.sub(I64(rise.highest), last))
        distance, comparison = (
            b.sub(rise.bound, rise.lowest),
            inverted_if(rise.comparison, opposite),
        )
        if comparison == "eq":
            return I64(1), b.and_(no_wrap, b.icmp_signed("==", distance, I64(0)))
        return self._prefix_length(comparison, distance, threads), no_wrap

    def _rising_operands(
        self, instruction: Instruction, operand_shapes: OperandShapes
    ) -> Rise | None:
        """Returns the `setp` as a comparison of a rising value with a uniform one, after emitting
        reads of both in lane 0; None if it has another form (`rising_comparison`)."""
        parsed = rising_comparison(operand_shapes, instruction)
        if parsed is None:
            return None
        comparison, *operands = parsed
        lowest, bound = (self._first(operand, instruction) for operand in operands)
        is_signed = instruction.operation.modifiers.scalar().is_signed
        return Rise(comparison, lowest, bound, is_signed)

    def _first(self, operand: Operand, instruction: Instruction) -> Value:
        """Returns an operand's value in lane 0, as an i64 extended by its type's signedness."""
        type = instruction.operation.modifiers.scalar()
        value = self.lanes.lane(self.operands.read(operand, type, width=1), 0)
        return (self.b.sext if type.is_signed else self.b.zext)(value, I64)

    def _compare_or_fall_back(self, rise: Rise, compare_lanes: Callable[[], Value]) -> Value:
        """Returns the mask of a comparison of a value that rises by one from lane to lane with a
        bound: from the prefix's length if, at run time, no lane's value wraps around, else by
        `compare_lanes`.
        """
        b = self.b
        fast, general_block, done = (
            self.b.append_basic_block(n) for n in ("prefix", "general", "compared")
        )
        no_wrap = b.icmp_signed("<=", rise.lowest, I64(rise.highest - (LANES - 1)))
        b.cbranch(no_wrap, fast, general_block).set_weights([1 << 20, 1])
        b.position_at_end(fast)
        prefix = self._mask_bits(rise.comparison, b.sub(rise.bound, rise.lowest))
        b.branch(done)
        b.position_at_end(general_block)
        general = self.lanes.bits(compare_lanes())
        general_end = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I32)
        result.add_incoming(prefix, fast)
        result.add_incoming(general, general_end)
        return self.lanes.mask(result)

    def _mask_bits(self, comparison: str, distance: Value) -> Value:
        """Returns the mask (i32) of the lanes in which a comparison holds with a bound that is
        `distance` (i64) above the value in lane 0, where values rise by 1. It is a prefix of the
        lanes for lt and le, at most one lane for eq, and the complement of le, lt and eq for gt, ge
        and ne."""
        b = self.b
        if comparison in COMPLEMENTS:
            return b.not_(self._mask_bits(COMPLEMENTS[comparison], distance))
        if comparison == "eq":
            # A negative distance is a large unsigned one: no lane. The shift is masked so that it
            # is defined for any distance.
            inside = b.icmp_unsigned("<", distance, I64(LANES))
            lane = b.shl(I32(1), b.trunc(b.and_(distance, I64(LANES - 1)), I32))
            return b.select(inside, lane, I32(0))
        count = self._prefix_length(comparison, distance, I64(LANES))
        # In i64, as a shift of an i32 by 32 is undefined.
        return b.trunc(b.sub(b.shl(I64(1), count), I64(1)), I32)

    def _prefix_length(self, comparison: str, distance: Value, lanes: Value) -> Value:
        """Returns how many of the first `lanes` lanes are less than the bound (`lt`; or at most the
        bound, `le`), an i64 in 0..lanes; `distance` is the bound minus the value in lane 0."""
        count = self.b.add(distance, I64(1)) if comparison == "le" else distance
        count = self.lanes.intrinsic("llvm.smax.i64", I64, [count, I64(0)])
        return self.lanes.intrinsic("llvm.smin.i64", I64, [count, lanes])
