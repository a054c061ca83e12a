"""Emits the transfers of registers between convergent code, which holds them as values, and
divergent code, which holds them in the warp's context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from warploom.ir.warp_ir import WarpIR
from warploom.isa.instruction import Register
from warploom.llvm.lanes import storage_type, zero
from warploom.lower.frame.context_registers import ContextRegisters
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.registers import Registers


class RegisterTransfers:
    """Moves registers where lanes diverge or reconverge, or where a register becomes varying.
    `call_parameter_registers`: the parameters of inlined calls, by offset (`abi.pieces`)."""

    def __init__(
        self,
        frame: FunctionFrame,
        warp_ir: WarpIR,
        context_registers: ContextRegisters,
        registers: Registers,
        call_parameter_registers: Mapping[int, Register],
    ) -> None:
        """Stores the registers in the code being emitted (`registers`) and those in the context,
        between which it moves values; `call_parameter_registers` count as live everywhere."""
        self._frame, self._warp_ir, self._call_parameter_registers = (
            frame,
            warp_ir,
            call_parameter_registers,
        )
        self._shapes = warp_ir.uniformity
        self._context_registers, self._registers = context_registers, registers

    def clear(self, retained: Iterable[Register] = ()) -> None:
        """Emits the zeros that registers hold at the begin of a warp; they also let LLVM drop the
        values of the previous warp. In code of several copies (`lower.frame.blocks`), sets to zero
        the allocas of the registers that basic blocks share, but for those in `retained`: the one
        of 32 lanes, and the short one of an affine register, if any. In code of one copy, sets to
        zero in the context the registers that are live at the program's begin, whatever is
        `retained`."""
        if self._frame.variant.has_one_copy:
            for register in _sorted(self._warp_ir.live(0)):
                self._context_registers.write(register, zero(storage_type(register.type)))
            return
        layout = self._context_registers.layout
        for register in _sorted(layout.by_lane.keys() - set(retained)):
            slot = self._registers.slot(register)
            self._frame.lanes.b.store(zero(storage_type(register.type)), slot)
            shaped = self._registers.affine_slot(register)
            if shaped is not None:
                whole = storage_type(register.type, self._shapes.by_register[register].width)
                self._frame.lanes.b.store(zero(whole), shaped)

    def to_varying(self, origin: int, index: int) -> None:
        """Stores in 32 lanes, in their allocas, the registers that become varying on the edge from
        basic block `origin` to block `index`. Emitted while the position has `origin`'s shapes, in
        convergent code."""
        for register in _sorted(
            self._frame.position.shapes.keys() & self.becomes_varying(origin, index)
        ):
            self._registers.store_varying(register, self._registers.load(register))

    def becomes_varying(self, origin: int, index: int) -> frozenset[Register]:
        """Returns the registers that are uniform or affine in block `origin`, varying in block
        `index`, and live there."""
        live = self._warp_ir.live(index)
        return live & self._shapes.becomes_varying(index) - self._shapes.becomes_varying(origin)

    def save_diverging(self, live: Iterable[Register]) -> None:
        """Emits stores of live registers before lanes diverge, so that divergent code finds them.
        Registers that basic blocks share are stored to the context, in 32 lanes and, if they are
        uniform or affine here, in their short slots as well. Those of one basic block that are
        uniform or affine here are stored to their allocas of 32 lanes. Parameters of inlined calls
        count as live."""
        layout = self._context_registers.layout
        retained = {*live, *self._call_parameter_registers.values()}
        # The short form is saved beside the 32 lanes: if the register is not written while lanes
        # are diverged, it is still right when they reconverge, and need not be recomputed.
        for register in _sorted(retained & layout.by_lane.keys()):
            self._context_registers.write(register, self._registers.load(register))
            if register in self._frame.position.shapes:
                self._registers.save(register, layout.shaped[register])
        for register in _sorted(
            retained & self._frame.position.shapes.keys() - layout.by_lane.keys()
        ):
            self._registers.store_varying(register, self._registers.load(register))

    def load_reconverged(self, registers: Iterable[Register]) -> None:
        """Loads `registers`, and parameters of inlined calls, from the context after lanes have
        reconverged: varying ones from their slots of 32 lanes, uniform and affine ones from their
        short slots. Other varying shared registers are dead; they are set to zero, or LLVM would
        hold their old values alive in phi nodes."""
        layout, live = (
            self._context_registers.layout,
            {*registers, *self._call_parameter_registers.values()},
        )
        for register in _sorted(layout.by_lane.keys() - self._frame.position.shapes.keys()):
            retained = register in live
            value = (
                self._context_registers.read(register)
                if retained
                else zero(storage_type(register.type))
            )
            self._registers.store_varying(register, value)
        for register in _sorted(layout.shaped.keys() & self._frame.position.shapes.keys() & live):
            self._registers.restore(register, layout.shaped[register])


def _sorted(registers: Iterable[Register]) -> list[Register]:
    """Returns registers in the order of their names."""
    return sorted(registers, key=lambda register: register.name)
