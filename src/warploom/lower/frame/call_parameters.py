"""Emits `ld.param` and `st.param` of inlined calls, whose parameters are registers: pieces of the
thread's frame (`abi.pieces`)."""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import ScalarType, unsigned
from warploom.isa.instruction import Register
from warploom.llvm.lanes import Value, splat_constant, vector
from warploom.lower.frame.operands import Operands


class CallParameterCode:
    """Emits loads and stores of parameters of inlined calls as moves of registers; offsets are in
    bytes of the thread's frame, and an access covers whole registers."""

    def __init__(self, operands: Operands) -> None:
        """Stores the operands, which write registers, and the frame, which has the registers of
        parameters."""
        self.operands, self.frame, self.b = operands, operands.frame, operands.b

    def load(self, offset: int, type: ScalarType, parts: int) -> list[Value]:
        """Returns `parts` consecutive values of `type` from byte `offset` on, as integers in 32
        lanes, each assembled by shift and or from the registers that begin in its bytes; other
        bytes are 0."""
        values: list[Value] = []
        whole = vector(ir.IntType(type.bits))
        for start in range(offset, offset + parts * type.bytes, type.bytes):
            value: Value = ir.Constant(whole, None)
            for at, register in self._covered(start, type):
                piece = self.frame.registers.load(register)
                if register.type.bits < type.bits:
                    piece = self.b.zext(piece, whole)
                    shift = splat_constant(8 * (at - start), ir.IntType(type.bits))
                    piece = self.b.shl(piece, shift)
                value = self.b.or_(value, piece)
            values.append(value)
        return values

    def store(self, offset: int, type: ScalarType, values: list[Value], mask: Value) -> None:
        """Writes consecutive values from `offset` on, in the lanes of a mask, to the registers that
        begin in their bytes: each gets the value shifted down, truncated to its width."""
        for number, value in enumerate(values):
            start = offset + number * type.bytes
            for at, register in self._covered(start, type):
                shift = splat_constant(8 * (at - start), value.type.element)
                piece = self.b.lshr(value, shift)
                self.operands.write(register, piece, unsigned_of(value), mask)

    def _covered(self, start: int, type: ScalarType) -> list[tuple[int, Register]]:
        """Returns the registers, with their offsets, that begin within a value of `type` at
        `start`.
        """
        return [
            (at, r)
            for at, r in self.frame.call_parameter_registers.items()
            if start <= at < start + type.bytes
        ]


def unsigned_of(value: Value) -> ScalarType:
    """Returns the unsigned type that is as wide as a vector's elements."""
    return unsigned(value.type.element.width)
