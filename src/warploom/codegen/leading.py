"""Comparisons of lanes that rise by one with what is the same for all: by arithmetic on the first.

`tid < n` holds in a number of leading lanes, or in all but those; `tid == n` in one at most.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.analysis.shapes import Reading
from warploom.analysis.strides import UNIFORM, Shape
from warploom.codegen.lanes import I32, I64, LANES, Value
from warploom.codegen.operands import Operands
from warploom.ptx.ir import Instruction, Operand

RISING = Shape(1, 1)

_PLAIN = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_OPPOSITE = {"gt": "le", "ge": "lt", "ne": "eq"}
"""Comparisons by those of which they are the opposite."""


class LeadingCode:
    """Emits such comparisons in the convergent copies."""

    def __init__(self, operands: Operands, reading: Reading) -> None:
        self.operands, self.reading = operands, reading
        self.frame, self.lanes, self.b = operands.frame, operands.lanes, operands.b

    def compare(self, made: Instruction, anyhow: Callable[[], Value]) -> Value | None:
        """The lanes in which a `setp` of 32-bit integers holds, None where it is not such a
        comparison. `anyhow` emits any, for where a lane wraps around."""
        name, modifiers = made.operation.name, made.operation.modifiers
        if name != "setp" or "bool" in modifiers or not self.frame.convergent:
            return None
        type = modifiers.scalar()
        if not type.is_integer or type.bits != 32:
            return None
        comparison = str(modifiers["cmp"])
        comparison, (first, second) = _PLAIN.get(comparison, comparison), made.operands[1:3]
        shapes = [self.reading.shape(operand, type) for operand in (first, second)]
        if shapes == [UNIFORM, RISING]:
            comparison, first, second = _SWAPPED[comparison], second, first
        elif shapes != [RISING, UNIFORM]:
            return None
        lowest, bound = (self._first(operand, made) for operand in (first, second))
        return self._unless_it_wraps(lowest, type.is_signed, anyhow, comparison, bound)

    def _first(self, operand: Operand, made: Instruction) -> Value:
        """What lane 0 has of an operand, as an i64."""
        type = made.operation.modifiers.scalar()
        value = self.lanes.lane(self.operands.read(operand, type, width=1), 0)
        return (self.b.sext if type.is_signed else self.b.zext)(value, I64)

    def _unless_it_wraps(
        self,
        lowest: Value,
        signed: bool,
        anyhow: Callable[[], Value],
        comparison: str,
        bound: Value,
    ) -> Value:
        b, highest = self.b, (1 << (31 if signed else 32)) - 1
        short, other, done = (self.b.append_basic_block(n) for n in ("rise", "wrap", "compared"))
        stays = b.icmp_signed("<=", lowest, I64(highest - (LANES - 1)))
        b.cbranch(stays, short, other).set_weights([1 << 20, 1])
        b.position_at_end(short)
        leading = self._bits(comparison, b.sub(bound, lowest))
        b.branch(done)
        b.position_at_end(other)
        found = self.lanes.bits(anyhow())
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(I32)
        result.add_incoming(leading, short)
        result.add_incoming(found, behind)
        return self.lanes.mask(result)

    def _bits(self, comparison: str, ahead: Value) -> Value:
        """The lanes, as an i32, that compare so with a bound which lies so far above lane 0."""
        b = self.b
        if comparison in _OPPOSITE:
            return b.not_(self._bits(_OPPOSITE[comparison], ahead))
        if comparison == "eq":
            inside = b.icmp_unsigned("<", ahead, I64(LANES))
            lane = b.shl(I32(1), b.trunc(b.and_(ahead, I64(LANES - 1)), I32))
            return b.select(inside, lane, I32(0))
        count = b.add(ahead, I64(1)) if comparison == "le" else ahead
        count = self._bounded("llvm.smax.i64", count, 0)
        count = self._bounded("llvm.smin.i64", count, LANES)
        return b.trunc(b.sub(b.shl(I64(1), count), I64(1)), I32)

    def _bounded(self, bound: str, count: Value, by: int) -> Value:
        return self.lanes.intrinsic(bound, I64, [count, I64(by)])
