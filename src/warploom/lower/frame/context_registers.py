"""Emits loads and stores of registers in a warp's context (`abi.context_layout`), where they are in
divergent code and while a warp is suspended."""

from __future__ import annotations

from warploom.abi.context_layout import LINE, ContextLayout
from warploom.isa.instruction import Register
from warploom.llvm.lanes import LANES, Value
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.register_memory import RegisterMemory
from warploom.lower.frame.warp_context import WarpContext


class ContextRegisters(RegisterMemory):
    """Loads and stores registers in the running warp's context, the memory that holds them while it
    waits or has diverged."""

    def __init__(self, frame: FunctionFrame, context: WarpContext, layout: ContextLayout) -> None:
        """Stores the offsets of registers in a context (`layout`); emits nothing."""
        super().__init__(frame.lanes, LINE)
        self.frame, self.context, self.layout = frame, context, layout

    def read(self, register: Register) -> Value:
        """Loads a register from its slot of 32 lanes, which divergent code uses."""
        return self.get(register, self.layout.by_lane[register], LANES)

    def write(self, register: Register, value: Value) -> None:
        """Stores a register to its slot of 32 lanes, which divergent code uses."""
        self.set(register, value, self.layout.by_lane[register])

    def base(self) -> Value:
        """Returns the host address of the registers in the running warp's context, emitted once for
        each warp. It is derived from the function's argument `contexts`: that is `noalias`, so LLVM
        knows that no store through another pointer changes registers."""
        return self.frame.of_warp(
            "registers", lambda: self.context.start_address(self.frame.contexts)
        )
