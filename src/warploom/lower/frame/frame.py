"""The frame of a warp's function: all that its code refers to, each part an object of its own."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from warploom.abi.context_layout import ContextLayout, shared_registers
from warploom.abi.environment import CountLayout
from warploom.abi.nans import open_nan_registers
from warploom.ir.warp_ir import WarpIR
from warploom.lower.frame.active_lanes import ActiveLanes
from warploom.lower.frame.context_registers import ContextRegisters
from warploom.lower.frame.counters import Counters
from warploom.lower.frame.fuel import Fuel
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.node_table import NodeTable
from warploom.lower.frame.register_transfers import RegisterTransfers
from warploom.lower.frame.registers import Registers
from warploom.lower.frame.warp_context import WarpContext
from warploom.ptx.ir import Register


class Frame(FunctionFrame):
    """Holds the function of a warp with the parts of its state, while it is being emitted.

    `facts` is what the passes have found of the kernel, `shapes` the shapes of its registers among
    it. `active` is the active mask, `registers` the registers at the place where code goes now,
    `homes` those in the context, `transfers` moves them from one to the other; `context` finds the
    warp's state and context, `nodes` its SIMT stack; `counters` and `fuel` count instructions.
    `ahead` is how many instructions there are from the one being emitted to the end of its
    block.
    """

    def __init__(
        self,
        module: ir.Module,
        layout: CountLayout,
        facts: WarpIR,
        context: ContextLayout,
        pieces: Mapping[int, Register],
    ) -> None:
        program, variant, shapes = layout.program, facts.variant, facts.uniformity
        super().__init__(module, program, layout, variant)
        self.facts, self.shapes = facts, shapes
        self.context_layout, self.pieces = context, pieces
        self.open_nans = open_nan_registers(program)
        self.shared_over_blocks = shared_registers(program)
        self.ahead = 0
        self.counters = Counters(self.lanes, self.counts)
        self.active = ActiveLanes(self)
        self.context = WarpContext(self, context)
        self.homes = ContextRegisters(self, self.context, context)
        held = () if variant.baseline else (*program.registers, *pieces.values())
        self.registers = Registers(self, shapes, self.homes, self.active, held)
        self.transfers = RegisterTransfers(self, facts, self.homes, self.registers, pieces)
        self.nodes = NodeTable(self, self.context)
        self.fuel = Fuel(self)
