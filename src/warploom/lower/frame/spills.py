"""Saves the state of a warp into its context (`abi.context_layout`), and restores it.

Steady registers, which one instruction writes, go into the context as soon as they are written, so
that waiting costs nothing for them: while all lanes are together, their places always hold what
they are, and the head of the table says that no lanes have parted.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.llvm.lanes import I32, I64, Value
from warploom.llvm.opt_level import is_long
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.in_flight import FlightCode
from warploom.lower.frame.node_table import ALL_NODES
from warploom.ptx.ir import Register
from warploom.simt.warp_table import FREE, LIVE, NONE, TOP
from warploom.simt.warp_table import MASK as ACTIVE


class Saved:
    """Emits what keeps the state of a warp. `delays`: products of a warp group may stay in flight
    (`lower.frame.in_flight`)."""

    def __init__(self, frame: Frame, *, delays: bool) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._is_long, self._delays = is_long(frame.program), delays
        self._together = frame.context_layout.together

    def spill(self, spilled: Iterable[Register]) -> None:
        """Put these into the context whenever they are written while all lanes are together."""
        self.frame.registers.spilled = {register: self._together[register] for register in spilled}

    def settle(self) -> None:
        """Note that all lanes are together again: no node of the table is in use."""
        self.b.store(I64(NONE), self.frame.context.table(TOP))
        self.b.store(I64(ALL_NODES), self.frame.context.table(FREE))

    # ---- all lanes together ---------------------------------------------------------------------

    def save_together(self, live: Iterable[Register]) -> None:
        """Put what all lanes together will need into the context."""
        if self.frame.registers.spilled:
            self._save_lanes()
        else:
            self.save_head()
        self.save_registers(live)

    def save_registers(self, live: Iterable[Register]) -> None:
        """Save the registers of a warp that has all lanes that it had when it was taken up
        together: the head of its table is as it was."""
        for register in self._kept(live):
            if register not in self.frame.registers.spilled:
                self.frame.registers.keep(register, self._together[register])

    def keep_together(self, registers: Iterable[Register]) -> None:
        """Put these where all lanes together will find them."""
        for register in sorted(registers, key=lambda r: r.name):
            self.frame.registers.keep(register, self._together[register])

    def take_up_together(self, live: Iterable[Register], *, whole: bool) -> None:
        """Restore what `save_together` saved. `whole`: all 32 lanes of the warp are known to
        live."""
        b, frame = self.b, self.frame
        self._stand(I32(-1) if whole else b.trunc(frame.get(frame.context.table(LIVE)), I32))
        if not (self._is_long or frame.variant.baseline):  # the optimiser never sees those
            frame.transfers.clear(live)
        for register in self._kept(live):
            frame.registers.fetch(register, self._together[register])

    def fetch_together(self, registers: Iterable[Register]) -> None:
        """Restore some registers of a warp, the rest being as it is."""
        for register in sorted(registers, key=lambda r: r.name):
            self.frame.registers.fetch(register, self._together[register])

    def begin(self, lanes: Value) -> None:
        """Begin a warp with these lanes (an i32); its registers hold zeros."""
        self.frame.transfers.clear()
        if self._delays:
            FlightCode(self.frame).clear()
        self._stand(lanes)

    def _stand(self, lanes: Value) -> None:
        """Note that all lanes that live, these, are together."""
        b, frame = self.b, self.frame
        b.store(lanes, frame.active.live)
        frame.active.set(lanes)
        for place, value in (
            (frame.nodes.top, NONE),
            (frame.nodes.point, NONE),
            (frame.nodes.free, ALL_NODES),
        ):
            b.store(I64(value), place)

    # ---- lane by lane ---------------------------------------------------------------------------

    def save(self, live: Iterable[Register]) -> None:
        """Put what all lanes together hold lane by lane, whatever their shapes, and the head of the
        table into the context."""
        self.frame.transfers.part(live)
        self.save_head()

    def save_head(self) -> None:
        """Put the head of the table into the context."""
        self._save_lanes()
        self.b.store(self.frame.get(self.frame.nodes.top), self.frame.context.table(TOP))
        self.b.store(self.frame.get(self.frame.nodes.free), self.frame.context.table(FREE))

    def _save_lanes(self) -> None:
        b, frame = self.b, self.frame
        b.store(b.zext(frame.active.bits(), I64), frame.context.table(ACTIVE))
        b.store(b.zext(b.load(frame.active.live, typ=I32), I64), frame.context.table(LIVE))

    def restore_head(self) -> None:
        """Restore what `save_head` saved; the table may name other lanes by now."""
        b, frame = self.b, self.frame
        frame.active.set(b.trunc(frame.get(frame.context.table(ACTIVE)), I32))
        b.store(b.trunc(frame.get(frame.context.table(LIVE)), I32), frame.active.live)
        b.store(frame.get(frame.context.table(FREE)), frame.nodes.free)
        frame.nodes.set_top(frame.get(frame.context.table(TOP)))

    def _kept(self, live: Iterable[Register]) -> list[Register]:
        if self.frame.variant.baseline:
            return []  # all are in the context already
        return [*sorted(live, key=lambda r: r.name), *self.frame.pieces.values()]
