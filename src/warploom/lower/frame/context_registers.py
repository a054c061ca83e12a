"""Emits loads and stores of registers in a warp's context (`abi.context_layout`), where they are in
divergent code and while a warp is suspended."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.context_layout import ContextLayout
from warploom.core.types import PRED
from warploom.isa.instruction import Register
from warploom.llvm.lanes import I1, I8, I32, I64, LANES, Value, storage_type
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.warp_context import WarpContext


class ContextRegisters:
    """Loads and stores registers in the running warp's context, the memory that holds them while it
    waits or has diverged. A predicate of 32 lanes is an i32 of bits there, a uniform one an i8."""

    def __init__(self, frame: FunctionFrame, context: WarpContext, layout: ContextLayout) -> None:
        """Stores the offsets of registers in a context (`layout`); emits nothing."""
        self.frame, self.lanes, self.context, self.layout = frame, frame.lanes, context, layout

    def read(self, register: Register) -> Value:
        """Loads a register from its slot of 32 lanes, which divergent code uses."""
        return self.get(register, self.layout.by_lane[register], LANES)

    def write(self, register: Register, value: Value) -> None:
        """Stores a register to its slot of 32 lanes, which divergent code uses."""
        self.set(register, value, self.layout.by_lane[register])

    def set(self, register: Register, value: Value, offset: int) -> None:
        """Stores a register's value, of 32 lanes or fewer, at a byte offset of the running warp's
        context; a predicate as an i32 of bits, of 1 lane as an i8."""
        b = self.lanes.b
        if register.type == PRED:
            single = value.type.count == 1
            value = b.zext(value, ir.VectorType(I8, 1)) if single else self.lanes.bits(value)
        b.store(value, self._address(offset), align=alignment(offset))

    def get(self, register: Register, offset: int, width: int) -> Value:
        """Returns a register's value of `width` lanes, loaded from the byte offset of the running
        warp's context at which `set` stored it; a predicate as `width` i1 (1 or 32), whatever its
        form in memory."""
        b, at, align = self.lanes.b, self._address(offset), alignment(offset)
        if register.type != PRED:
            return b.load(at, typ=storage_type(register.type, width), align=align)
        if width == 1:
            return b.trunc(b.load(at, typ=ir.VectorType(I8, 1)), ir.VectorType(I1, 1))
        return self.lanes.mask(b.load(at, typ=I32))

    def base(self) -> Value:
        """Returns the host address of the registers in the running warp's context, emitted once for
        each warp. It is derived from the function's argument `contexts`: that is `noalias`, so LLVM
        knows that no store through another pointer changes registers."""
        return self.frame.of_warp(
            "registers", lambda: self.context.start_address(self.frame.contexts)
        )

    def _address(self, offset: int) -> Value:
        """Returns the address at an offset of this warp's context."""
        return self.lanes.b.gep(self.base(), [I64(offset)], source_etype=I8)


def alignment(offset: int) -> int:
    """Returns the alignment in bytes of a byte offset in a context: the greatest power of two that
    divides the offset, at most 64, to which contexts themselves are aligned."""
    return min(64, offset & -offset)
