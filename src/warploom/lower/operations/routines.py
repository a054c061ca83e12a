"""Emits counts of divisions, reciprocals and square roots whose results would make real machine
code call a slow-path routine (`isa.routines`; as `machine.reference.warp` counts)."""

from __future__ import annotations

from warploom.core.types import U32
from warploom.isa.instruction import Instruction
from warploom.isa.routines import ordinary_results
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.frame.operands import Operands


class RoutineCode:
    """Emits the counts of routines in one warp function."""

    def __init__(self, operands: Operands) -> None:
        """Shares the operands and their frame; emits nothing."""
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b

    def count(self, index: int, instruction: Instruction, on: Value) -> None:
        """Adds 1 to the instruction's counter (`layout.routines`) if the result of some executing
        lane, in `on`, is outside of the range that needs no routine; nothing for instructions that
        never call one. The result is read from its register: it must have been written.
        """
        ordinary = ordinary_results(instruction.operation)
        if ordinary is None:
            return
        b, (least, most) = self.b, ordinary
        bits = self.operands.read(instruction.operands[0], U32)
        magnitude = b.and_(bits, self.lanes.splat(I32(0x7FFF_FFFF)))
        # One unsigned comparison checks both ends: magnitudes below `least` wrap around, those of
        # infinities and NaNs are above `most`.
        above = b.sub(magnitude, self.lanes.splat(I32(least)))
        special = b.icmp_unsigned(">", above, self.lanes.splat(I32(most - least)))
        any_lane = b.icmp_unsigned("!=", self.lanes.bits(b.and_(on, special)), I32(0))
        self.frame.counters.add(self.frame.layout.routines[index], b.zext(any_lane, I64))
