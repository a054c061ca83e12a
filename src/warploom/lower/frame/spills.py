"""Saves the state of a warp in its context (`abi.context_layout`) when it is suspended, and
restores it when it is resumed.

Registers that the pass `spills` has selected are stored to the context at each write, so that
suspending a convergent warp costs nothing for them. While lanes are convergent, the slots of these
registers are up to date, and the head of the warp's table states that no lanes have diverged.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.isa.instruction import Register
from warploom.llvm.lanes import I32, I64, Value
from warploom.llvm.opt_level import is_long
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.in_flight import InFlightCode
from warploom.lower.frame.node_table import ALL_NODES
from warploom.simt.warp_table import NONE, WarpTable


class SpillCode:
    """Emits saves and restores of a warp's state: active and live lanes, SIMT stack, registers.

    "Convergent" names the form of a convergent warp: registers in the form that convergent code
    has, at the offsets `ContextLayout.together`; the other form has 32 lanes of each. The head of
    the warp's table (`simt.warp_table`) holds lanes and top of the stack. `delays`: operations may
    be in flight (`lower.frame.in_flight`)."""

    def __init__(self, frame: Frame, *, delays: bool) -> None:
        """Emits nothing. `delays`: operations may be in flight; `begin` then empties their ring."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._is_long, self._delays = is_long(frame.program), delays
        self._together = frame.context_layout.together

    def store_empty_stack(self) -> None:
        """Writes to the context that no node of the SIMT stack is in use: lanes have reconverged.
        Called in kernels with spilled registers, where `save_convergent` does not store the
        stack."""
        self.b.store(I64(NONE), self.frame.context.table(WarpTable.top))
        self.b.store(I64(ALL_NODES), self.frame.context.table(WarpTable.free))

    # ---- all lanes together ---------------------------------------------------------------------

    def save_convergent(self, live: Iterable[Register]) -> None:
        """Saves a convergent warp in its context in the form of convergent code: its active and
        live lanes, its live registers (but for spilled ones, which are there) and its SIMT stack,
        unless some registers are spilled: then `store_empty_stack` has stored the stack as
        empty."""
        # In a kernel with spilled registers the context is kept as that of a converged warp: the
        # stack there was stored as empty when lanes reconverged, and has not changed since.
        if self.frame.position.spilled:
            self._save_lanes()
        else:
            self.save_head()
        self.save_registers(live)

    def save_registers(self, live: Iterable[Register]) -> None:
        """Saves the live registers of a convergent warp, but for spilled ones, in its context. Its
        lanes and its SIMT stack are not stored: it is for a warp none of whose lanes has exited
        since it was resumed.
        """
        for register in self._registers_to_save(live):
            if register not in self.frame.position.spilled:
                self.frame.registers.save(register, self._together[register])

    def save_registers_convergent(self, registers: Iterable[Register]) -> None:
        """Saves these registers, whether live or not, to the slots from which a convergent warp is
        restored.
        """
        for register in sorted(registers, key=lambda r: r.name):
            self.frame.registers.save(register, self._together[register])

    def restore_convergent(self, live: Iterable[Register], *, whole: bool) -> None:
        """Restores the live lanes, which become the active ones, and the `live` registers that
        `save_convergent` has saved; the SIMT stack becomes empty. `whole`: all 32 lanes are known
        to be live, so that the live mask is a constant. The other registers that basic blocks share
        are dead here; they become zero, for LLVM's optimizer alone, unless the kernel is too long
        for it or code has one copy of each block."""
        b, frame = self.b, self.frame
        self._set_convergent(
            I32(-1) if whole else b.trunc(frame.get(frame.context.table(WarpTable.live)), I32)
        )
        # Dead registers are set to zero for LLVM's optimizer only, which does not run on large
        # kernels and on baseline code; code of one copy reads the context alone.
        if not (self._is_long or frame.variant.has_one_copy):
            frame.transfers.clear(live)
        for register in self._registers_to_save(live):
            frame.registers.restore(register, self._together[register])

    def restore_registers_convergent(self, registers: Iterable[Register]) -> None:
        """Restores these registers from the slots to which `save_registers_convergent` has saved
        them."""
        for register in sorted(registers, key=lambda r: r.name):
            self.frame.registers.restore(register, self._together[register])

    def begin(self, lanes: Value) -> None:
        """Initializes a warp with these lanes (an i32), live and active: registers that basic
        blocks share hold zeros, no operation is in flight, the SIMT stack is empty.
        """
        self.frame.transfers.clear()
        if self._delays:
            InFlightCode(self.frame).clear()
        self._set_convergent(lanes)

    def _set_convergent(self, lanes: Value) -> None:
        """Makes these lanes (an i32) live and active, with an empty SIMT stack."""
        b, frame = self.b, self.frame
        b.store(lanes, frame.active.live)
        frame.active.set(lanes)
        for address, value in (
            (frame.nodes.top, NONE),
            (frame.nodes.point, NONE),
            (frame.nodes.free, ALL_NODES),
        ):
            b.store(I64(value), address)

    # ---- lane by lane ---------------------------------------------------------------------------

    def save(self, live: Iterable[Register]) -> None:
        """Saves a convergent warp in the form that divergent code reads: live registers in 32 lanes
        (`RegisterTransfers.save_diverging`), and the head of its table."""
        self.frame.transfers.save_diverging(live)
        self.save_head()

    def save_head(self) -> None:
        """Saves the head of the warp's table in its context: active and live lanes, top of the SIMT
        stack and unused nodes.
        """
        self._save_lanes()
        self.b.store(self.frame.get(self.frame.nodes.top), self.frame.context.table(WarpTable.top))
        self.b.store(
            self.frame.get(self.frame.nodes.free), self.frame.context.table(WarpTable.free)
        )

    def _save_lanes(self) -> None:
        """Stores the active and the live mask to the head of the warp's table."""
        b, frame = self.b, self.frame
        b.store(b.zext(frame.active.bits(), I64), frame.context.table(WarpTable.mask))
        b.store(
            b.zext(b.load(frame.active.live, typ=I32), I64), frame.context.table(WarpTable.live)
        )

    def restore_head(self) -> None:
        """Restores active and live lanes and the SIMT stack from the head of the warp's table,
        which the scheduler may have changed since `save_head`.
        """
        b, frame = self.b, self.frame
        frame.active.set(b.trunc(frame.get(frame.context.table(WarpTable.mask)), I32))
        b.store(b.trunc(frame.get(frame.context.table(WarpTable.live)), I32), frame.active.live)
        b.store(frame.get(frame.context.table(WarpTable.free)), frame.nodes.free)
        frame.nodes.set_top(frame.get(frame.context.table(WarpTable.top)))

    def _registers_to_save(self, live: Iterable[Register]) -> list[Register]:
        """Returns the live registers, by name (not by hash, so that emitted code is reproducible),
        then the parameters of inlined calls; none in code of one copy, whose registers are in
        the context already."""
        if self.frame.variant.has_one_copy:
            return []  # all are in the context already
        return [*sorted(live, key=lambda r: r.name), *self.frame.call_parameter_registers.values()]
