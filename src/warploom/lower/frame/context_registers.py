"""Registers in a warp's context, where code for diverged lanes and suspended warps keep them."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.context_layout import ContextLayout
from warploom.core.types import PRED
from warploom.llvm.lanes import I1, I8, I32, I64, LANES, Value, storage_type
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.warp_context import WarpContext
from warploom.ptx.ir import Register


class ContextRegisters:
    """Reads and writes registers at their places in the running warp's context."""

    def __init__(self, frame: FunctionFrame, context: WarpContext, layout: ContextLayout) -> None:
        self.frame, self.lanes, self.context, self.layout = frame, frame.lanes, context, layout

    def read(self, register: Register) -> Value:
        """Returns a register as code for lanes that have parted has left it."""
        return self.get(register, self.layout.by_lane[register], LANES)

    def write(self, register: Register, value: Value) -> None:
        """Writes a register as code for lanes that have parted finds it."""
        self.set(register, value, self.layout.by_lane[register])

    def home(self, register: Register) -> Value:
        """Returns the place of a register in this warp's context, lane by lane."""
        return self._held(self.layout.by_lane[register])

    def set(self, register: Register, value: Value, offset: int) -> None:
        """Writes a value of a register into the context."""
        b = self.lanes.b
        if register.type == PRED:
            single = value.type.count == 1
            value = b.zext(value, ir.VectorType(I8, 1)) if single else self.lanes.bits(value)
        b.store(value, self._held(offset), align=alignment(offset))

    def get(self, register: Register, offset: int, width: int) -> Value:
        """Returns the value of a register in the context, of so many lanes."""
        b, at, align = self.lanes.b, self._held(offset), alignment(offset)
        if register.type != PRED:
            return b.load(at, typ=storage_type(register.type, width), align=align)
        if width == 1:
            return b.trunc(b.load(at, typ=ir.VectorType(I8, 1)), ir.VectorType(I1, 1))
        return self.lanes.mask(b.load(at, typ=I32))

    def base(self) -> Value:
        """Returns the address of this warp's context, through which registers are reached."""
        return self.frame.of_warp("registers", lambda: self.context.begin(self.frame.contexts))

    def _held(self, offset: int) -> Value:
        """Returns the address of a register in this warp's context."""
        return self.lanes.b.gep(self.base(), [I64(offset)], source_etype=I8)


def alignment(offset: int) -> int:
    """Returns how a place in a context is aligned: contexts begin at lines of 64 bytes."""
    return min(64, offset & -offset)
