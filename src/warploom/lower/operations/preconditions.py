"""Emits the checks of instructions that require something of their operands, such as an aligned
address (`isa.preconditions`): a lane that violates it faults."""

from __future__ import annotations

from warploom.core.types import U32
from warploom.isa.instruction import Address, Instruction, Operand
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.frame.operands import Operands
from warploom.program.preconditions import operand_checks


class PreconditionCode:
    """Emits the checks of operands in one warp function."""

    def __init__(self, operands: Operands) -> None:
        """Shares the operands and their frame; emits nothing."""
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b

    def check(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits, for each precondition of the instruction, a fault of the lowest executing lane, in
        `on`, whose operands violate it. The fault has the lane's address, and as its size the first
        operand, 0 if that is the address."""
        b = self.b
        for check in operand_checks(instruction):
            values = [self._value(operand) for operand in check.operands]
            holds = self.operands.lower(check.term, values)
            bad = self.lanes.bits(b.and_(on, b.not_(holds)))
            with b.if_then(b.icmp_unsigned("!=", bad, I32(0)), likely=False):
                lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [bad, I1(0)])
                address = self.lanes.lane(self._value(check.address), lane)
                size = I64(0)
                if check.value != check.address:
                    size = b.zext(self.lanes.lane(values[0], lane), I64)
                self.frame.fault(check.precondition.number, index, lane, address, size)

    def _value(self, operand: Operand) -> Value:
        """Returns an address in 64-bit lanes, or the value of a u32 operand in 32-bit lanes."""
        if isinstance(operand, Address):
            return self.operands.address(operand)
        return self.operands.read(operand, U32)
