"""Collects the parts of a warp function's state that emitters share: registers, masks, context,
SIMT stack, counters, fuel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from llvmlite import ir

from warploom.abi.context_layout import ContextLayout, shared_registers
from warploom.abi.nans import open_nan_registers
from warploom.ir.warp_ir import WarpIR
from warploom.isa.instruction import Register
from warploom.lower.frame.active_lanes import ActiveLanes
from warploom.lower.frame.context_registers import ContextRegisters
from warploom.lower.frame.counters import Counters
from warploom.lower.frame.fuel import Fuel
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.node_table import NodeTable
from warploom.lower.frame.register_transfers import RegisterTransfers
from warploom.lower.frame.registers import Registers
from warploom.lower.frame.warp_context import WarpContext


class Frame(FunctionFrame):
    """Holds the function that runs a warp, and its state, while it is emitted.

    `active`: the active mask. `registers`: registers in the code being emitted;
    `context_registers`: registers in the warp's context; `transfers` moves them between both.
    `context`: addresses in the warp's context and state; `nodes`: its SIMT stack. `counters` and
    `fuel` count instructions.
    """

    def __init__(
        self,
        module: ir.Module,
        warp_ir: WarpIR,
        context: ContextLayout,
        call_parameter_registers: Mapping[int, Register],
    ) -> None:
        """Declares the function, and creates the emitters of its state: counters, active mask,
        context, registers and their transfers, SIMT stack, fuel. Registers get allocas, but not in
        baseline code. `context`: the layout of a warp's context; `call_parameter_registers`: those
        that hold parameters of inlined calls, by byte offset in the thread's frame."""
        super().__init__(module, warp_ir)
        program, variant, shapes = self.program, self.variant, self.shapes
        self.context_layout, self.call_parameter_registers = context, call_parameter_registers
        self.open_nans = open_nan_registers(program, baseline=variant.baseline)
        self.shared_over_blocks = shared_registers(program)
        spilled = {register: context.together[register] for register in warp_ir.spilled}
        self.position = replace(self.position, spilled=spilled)
        self.counters = Counters(self.lanes, self.counts)
        self.active = ActiveLanes(self)
        self.context = WarpContext(self, context)
        self.context_registers = ContextRegisters(self, self.context, context)
        held = () if variant.baseline else (*program.registers, *call_parameter_registers.values())
        self.registers = Registers(self, shapes, self.context_registers, self.active, held)
        self.transfers = RegisterTransfers(
            self, warp_ir, self.context_registers, self.registers, call_parameter_registers
        )
        self.nodes = NodeTable(self, self.context)
        self.fuel = Fuel(self)
