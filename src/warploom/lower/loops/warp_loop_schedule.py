"""Sweeps and courses of blocks as ways through a warp function: what they ask before they begin,
and where they lead.

Where all warps of a block can go one way (`analysis.warp_loops`), or it is known all that it does
(`analysis.static_schedule`), that is done at once; where not, nothing has happened yet, and the
warps take their turns (`lower.control.warp_order`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.analysis.static_schedule import StaticSchedule
from warploom.analysis.warp_loops import WarpLoop
from warploom.llvm.lanes import I1, I64, Value
from warploom.lower.control.warp_order import WarpOrder
from warploom.lower.control.warp_order_state import END
from warploom.lower.frame.registers import EmittingBlock
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instructions import InstructionCode
from warploom.lower.loops.warp_loop import WarpLoopBody
from warploom.lower.loops.warp_loop_counts import WarpLoopCounts
from warploom.lower.loops.warp_loop_guards import Found, WarpLoopCheck
from warploom.ptx.ir import Register
from warploom.simt.schedule_layout import STATUS


class WarpLoopCode:
    """Emits the sweeps and the course of one warp function. `emitting_block` has code made as in a
    block."""

    def __init__(
        self,
        saved: SpillCode,
        warp_order: WarpOrder,
        instructions: InstructionCode,
        emitting_block: EmittingBlock,
    ) -> None:
        self.saved, self.warp_order = saved, warp_order
        self.frame, self.b = saved.frame, saved.b
        self.loop_check = WarpLoopCheck(saved, instructions)
        self._work = WarpLoopBody(saved, instructions, self.loop_check, emitting_block)
        self._counts, self._standing = WarpLoopCounts(self.frame), emitting_block

    def emit(self, ways: Iterable[WarpLoop], sites: Mapping[int, int]) -> dict[int, ir.Block]:
        """Emit what can be; gives where they begin, by site. `sites` numbers those by blocks."""
        found: dict[int, ir.Block] = {}
        for warp_loop in ways:
            if self._can_be(warp_loop, sites):
                site = END if warp_loop.site is None else sites[warp_loop.site]
                found[site] = self._begin(f"warp_loop{site}")
                self._warp_loop(warp_loop, END if warp_loop.ends else sites[warp_loop.blocks[-1]])
        return found

    def _can_be(self, warp_loop: WarpLoop, sites: Mapping[int, int]) -> bool:
        """Returns whether code can look at a sweep, and it leads to the end or to where warps in
        relay may wait."""
        waits = sites.get(warp_loop.blocks[-1]) in self.warp_order.sites
        return (warp_loop.ends or waits) and self.loop_check.can_be(warp_loop)

    def emit_static_schedule(
        self, static_schedule: StaticSchedule, sites: Mapping[int, int], otherwise: ir.Block | None
    ) -> ir.Block | None:
        """Emit all that a block does, if that can be; gives where it begins. Where a block cannot
        go so, it goes `otherwise`, or its warps take their turns."""
        if not static_schedule or not all(
            self._can_be(warp_loop, sites) for warp_loop in static_schedule
        ):
            return otherwise
        begin = self._begin("static_schedule")
        founds = self._check(static_schedule, otherwise)
        for found in founds:
            with self._beginning(found.warp_loop):
                self._work.go(found, partial(self._keep_own, found))
        self._work.each(I64(0), self.frame.slot(Slot.WARPS), self._end)
        self.warp_order.swept(END, self._counts.count(founds))
        return begin

    def _begin(self, name: str) -> ir.Block:
        block = self.frame.function.append_basic_block(name)
        self.b.position_at_end(block)
        return block

    @contextmanager
    def _beginning(self, warp_loop: WarpLoop) -> Generator[None]:
        """Have code made as where a sweep begins. What is steady need not be so before its end."""
        spilled, self.frame.registers.spilled = self.frame.registers.spilled, {}
        with self._standing(warp_loop.blocks[0], convergent=True):
            yield
        self.frame.registers.spilled = spilled

    def _check(self, warp_loops: Sequence[WarpLoop], otherwise: ir.Block | None) -> list[Found]:
        """Ask what all warps are to do in one sweep after the other; go on where they can."""
        b, founds = self.b, list[Found]()
        with self._beginning(warp_loops[0]):
            self.loop_check.take_up(warp_loops[0])
        for warp_loop in warp_loops:
            with self._beginning(warp_loop):
                founds.append(self.loop_check.look(warp_loop))
        holds = [*self._enough(warp_loops), *(holds for found in founds for holds in found.holds)]
        with b.if_then(b.not_(reduce(b.and_, holds)), likely=False):
            if otherwise is None:
                self.warp_order.take_turns()
            else:
                b.branch(otherwise)
        return founds

    def _enough(self, warp_loops: Sequence[WarpLoop]) -> list[Value]:
        """Returns whether there are instructions enough for all warps, in the turn and in the
        launch."""
        if not self.warp_order.state.scheduled:
            return [I1(1)]
        b, frame = self.b, self.frame
        lengths = [
            warp_loop.length((*warp_loop.blocks, *warp_loop.body_blocks))
            for warp_loop in warp_loops
        ]
        budget = frame.get(frame.lanes.slot(frame.environment, int(Slot.BUDGET)))
        return [
            b.icmp_signed(">=", frame.slot(Slot.FUEL), I64(max(lengths))),
            b.icmp_signed(">=", budget, b.mul(frame.slot(Slot.WARPS), I64(sum(lengths)))),
        ]

    # ---- one sweep ------------------------------------------------------------------------------

    def _warp_loop(self, warp_loop: WarpLoop, site: int) -> None:
        [found] = self._check([warp_loop], None)
        with self._beginning(warp_loop):
            self._work.go(found, partial(self._pass, found))
            kept = warp_loop.live_out or warp_loop.site is None or warp_loop.ends
            if (
                warp_loop.body is not None
                and not warp_loop.needs_all_threads
                and not warp_loop.has_common_work
                and kept
            ):
                rest = self.frame.slot(Slot.WARPS)
                self._work.each(found.full, rest, partial(self._pass, found))
            self.warp_order.swept(site, self._counts.count([found]))

    def _pass(self, found: Found) -> None:
        """Take the running warp past the barrier, or to its end."""
        if found.warp_loop.ends:
            self._end()
            return
        if found.warp_loop.site is None:
            self.saved.save_head()
        self._work.set(found.ends)
        self._keep(found, found.warp_loop.live_out)

    def _end(self) -> None:
        """End the running warp."""
        if self.warp_order.state.scheduled:
            self.frame.context.set_state(STATUS, I64(Status.ENDED))

    # ---- one of several -------------------------------------------------------------------------

    def _keep_own(self, found: Found) -> None:
        """Keep what the running warp has computed itself."""
        self._keep(found, found.warp_loop.live_out - self.loop_check.alike)

    def _keep(self, found: Found, registers: Iterable[Register]) -> None:
        if not found.warp_loop.ends:
            with self._standing(found.warp_loop.next_block, convergent=True):
                self.saved.keep_together(registers)
