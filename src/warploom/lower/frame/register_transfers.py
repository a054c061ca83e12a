"""Transfers of registers between code for all lanes together and code for diverged lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from warploom.ir.warp_ir import WarpIR
from warploom.llvm.lanes import storage_type, zero
from warploom.lower.frame.context_registers import ContextRegisters
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.lower.frame.registers import Registers
from warploom.ptx.ir import Register


class RegisterTransfers:
    """Moves registers where lanes diverge, reconverge, or come to blocks in which their shapes are
    unknown. `pieces` are the parameters of inlined calls, by offset (`abi.pieces`)."""

    def __init__(
        self,
        frame: FunctionFrame,
        facts: WarpIR,
        homes: ContextRegisters,
        registers: Registers,
        pieces: Mapping[int, Register],
    ) -> None:
        self._frame, self._facts, self._pieces = frame, facts, pieces
        self._shapes = facts.uniformity
        self._homes, self._registers = homes, registers

    def clear(self, kept: Iterable[Register] = ()) -> None:
        """Fills the registers that blocks share with zeros, as at the begin of the function; but
        for those that are kept."""
        if self._frame.variant.baseline:
            for register in _sorted(self._facts.live(0)):
                self._homes.write(register, zero(storage_type(register.type)))
            return
        places = self._homes.layout
        for register in _sorted(places.memory & self._facts.live(0) - set(kept)):
            self._homes.write(register, zero(storage_type(register.type)))
        for register in _sorted(places.by_lane.keys() - places.memory - set(kept)):
            place = self._registers.place(register)
            self._frame.lanes.b.store(zero(storage_type(register.type)), place)
            shaped = self._registers.place_by_shape(register)
            if shaped is not None:
                whole = storage_type(register.type, self._shapes.by_register[register].width)
                self._frame.lanes.b.store(zero(whole), shaped)

    def to_varying(self, origin: int, index: int) -> None:
        """Let all lanes go on from one block to another: keep lane by lane what has no shape
        there."""
        for register in _sorted(self._registers.here.keys() & self.becomes_varying(origin, index)):
            self._registers.put_loose(register, self._registers.load(register))

    def becomes_varying(self, origin: int, index: int) -> frozenset[Register]:
        """Return the registers that have a shape in block `origin` and none in the next, which
        reads them."""
        live = self._facts.live(index)
        return live & self._shapes.becomes_varying(index) - self._shapes.becomes_varying(origin)

    def part(self, live: Iterable[Register]) -> None:
        """Lanes that were together are about to part, and will read these registers: put them
        where code for lanes that have parted finds them."""
        places = self._homes.layout
        kept = {*live, *self._pieces.values()} - places.memory
        for register in _sorted(kept & places.by_lane.keys()):
            self._homes.write(register, self._registers.load(register))
            if register in self._registers.here:
                self._registers.keep(register, places.shaped[register])
        for register in _sorted(kept & self._registers.here.keys() - places.by_lane.keys()):
            self._registers.put_loose(register, self._registers.load(register))

    def join(self, registers: Iterable[Register]) -> None:
        """Take the registers that are read from here on from where `part` has put them. All others
        hold nothing any more; zeros tell the optimiser so, which else would carry along what they
        were."""
        places, live = self._homes.layout, {*registers, *self._pieces.values()}
        for register in _sorted(
            places.by_lane.keys() - places.memory - self._registers.here.keys()
        ):
            kept = register in live
            value = self._homes.read(register) if kept else zero(storage_type(register.type))
            self._registers.put_loose(register, value)
        for register in _sorted(places.shaped.keys() & self._registers.here.keys() & live):
            self._registers.fetch(register, places.shaped[register])


def _sorted(registers: Iterable[Register]) -> list[Register]:
    return sorted(registers, key=lambda register: register.name)
