"""Emits warp loops (`analysis.warp_loops`), and static schedules of several such loops
(`analysis.static_schedule`), as entries of a warp function.

    region check for site 2:  br (all conditions), warp loop, run warps in order
    static schedule:          br (conditions of all loops), loop 1, loop 2, ..., end of block

If a condition fails, nothing has been executed yet, and warps run in order
(`lower.control.warp_order`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.ir.loops import WarpLoop
from warploom.isa.instruction import Register
from warploom.llvm.lanes import I1, I64, Value
from warploom.lower.control.warp_order import WarpOrder
from warploom.lower.control.warp_order_state import END
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instructions import InstructionCode
from warploom.lower.loops.warp_loop import WarpLoopBody
from warploom.lower.loops.warp_loop_counts import WarpLoopCounts
from warploom.lower.loops.warp_loop_guards import WarpLoopCheck, WarpLoopPlan
from warploom.simt.schedule_layout import WarpState


class WarpLoopCode:
    """Emits the warp loops and the static schedule of one warp function."""

    def __init__(
        self,
        spills: SpillCode,
        warp_order: WarpOrder,
        instructions: InstructionCode,
    ) -> None:
        """Creates the emitters of checks, bodies and counts, on the frame of `spills`; emits
        nothing."""
        self.spills, self.warp_order = spills, warp_order
        self.frame, self.b = spills.frame, spills.b
        self.loop_check = WarpLoopCheck(spills, instructions)
        self._body = WarpLoopBody(spills, instructions, self.loop_check)
        self._counts = WarpLoopCounts(self.frame)

    def emit(self, warp_loops: Iterable[WarpLoop], sites: Mapping[int, int]) -> dict[int, ir.Block]:
        """Emits the warp loops that lead to the kernel's end or to a site at which warps may wait
        (others have no code), each with its check; returns their LLVM entry blocks by the site from
        which they begin (END: the kernel's begin). `sites` has the numbers of sites by the block
        that ends with the barrier."""
        entries: dict[int, ir.Block] = {}
        for warp_loop in warp_loops:
            if self._ends_at_site(warp_loop, sites):
                site = END if warp_loop.site is None else sites[warp_loop.site]
                entries[site] = self._begin_block(f"warp_loop{site}")
                self._warp_loop(warp_loop, END if warp_loop.ends else sites[warp_loop.blocks[-1]])
        return entries

    def _ends_at_site(self, warp_loop: WarpLoop, sites: Mapping[int, int]) -> bool:
        """Returns true if a warp loop leads to the end or to a site at which warps may wait."""
        return warp_loop.ends or sites.get(warp_loop.blocks[-1]) in self.warp_order.sites

    def emit_static_schedule(
        self,
        static_schedule: Sequence[WarpLoop],
        sites: Mapping[int, int],
    ) -> ir.Block | None:
        """Emits the static schedule, which runs a thread block from its begin to its end as
        consecutive warp loops; returns its entry, None if it is empty or a loop leads to a site at
        which warps may not wait. If a check fails at run time, warps run in order."""
        if not static_schedule or not all(
            self._ends_at_site(warp_loop, sites) for warp_loop in static_schedule
        ):
            return None
        begin = self._begin_block("static_schedule")
        plans = self._make_plans(static_schedule)
        # Each loop runs all warps before the next one begins, which is what its barrier demands.
        for plan in plans:
            with self._at_beginning(plan.warp_loop):
                # Between loops only the warp's own results need its context: affine registers are
                # recomputed from the first warp's.
                self._body.emit_all(plan, partial(self._save_own, plan))
        self.frame.for_each_warp(I64(0), self.frame.slot(Slot.WARPS), self._end_warp)
        self.warp_order.finish_warp_loop(END, self._counts.count(plans))
        return begin

    def _begin_block(self, name: str) -> ir.Block:
        """Appends an LLVM block, continues code in it, and returns it."""
        block = self.frame.function.append_basic_block(name)
        self.b.position_at_end(block)
        return block

    @contextmanager
    def _at_beginning(self, warp_loop: WarpLoop) -> Generator[None]:
        """Sets the frame's position to the first block of a warp loop, in convergent code, while
        the context is open, and restores it afterwards. Meanwhile registers that are written are
        not spilled to the context: the check of the loop's guards, which is emitted here, changes
        none there, and the loop saves them at its end."""
        unspilled = replace(self.frame.position, spilled={})
        with self.frame.at(unspilled), self.frame.at_block(warp_loop.blocks[0], convergent=True):
            yield

    def _make_plans(self, warp_loops: Sequence[WarpLoop]) -> list[WarpLoopPlan]:
        """Emits the checks of consecutive warp loops, on the first warp, which stays the running
        one with registers as after the last. If a condition fails, or fuel does not suffice, code
        runs warps in order; else it continues. Returns the plans."""
        b, plans = self.b, list[WarpLoopPlan]()
        # All conditions are evaluated before the first loop runs, so that a failed one leaves
        # nothing to undo.
        with self._at_beginning(warp_loops[0]):
            self.loop_check.resume_first_warp(warp_loops[0])
        for warp_loop in warp_loops:
            with self._at_beginning(warp_loop):
                plans.append(self.loop_check.make_plan(warp_loop))
        holds = [
            *self._fuel_suffices(warp_loops),
            *(condition for plan in plans for condition in plan.conditions),
        ]
        with b.if_then(b.not_(reduce(b.and_, holds)), likely=False):
            self.warp_order.run_in_order()
        return plans

    def _fuel_suffices(self, warp_loops: Sequence[WarpLoop]) -> list[Value]:
        """Returns conditions (i1) that the instructions of a turn suffice for the longest loop, and
        those left in the launch for all loops of all warps; constant true without a schedule."""
        if not self.warp_order.state.scheduled:
            return [I1(1)]
        b, frame = self.b, self.frame
        lengths = [
            warp_loop.length((*warp_loop.blocks, *warp_loop.body_blocks))
            for warp_loop in warp_loops
        ]
        # A limit that would be passed in the middle of a loop has to be found by ordinary code,
        # which tests it after each warp and can stop there.
        budget = frame.get(frame.lanes.slot(frame.environment, int(Slot.BUDGET)))
        return [
            b.icmp_signed(">=", frame.slot(Slot.FUEL), I64(max(lengths))),
            b.icmp_signed(">=", budget, b.mul(frame.slot(Slot.WARPS), I64(sum(lengths)))),
        ]

    # ---- one warp loop --------------------------------------------------------------------------

    def _warp_loop(self, warp_loop: WarpLoop, site: int) -> None:
        """Emits one warp loop, which ends at a site (END: the kernel's end): its check, its warps,
        and its counts. Warps that `emit_all` leaves out or does not finish get a loop of their own
        if they have registers to store, or begin or end here."""
        [plan] = self._make_plans([warp_loop])
        with self._at_beginning(warp_loop):
            self._body.emit_all(plan, partial(self._finish_warp, plan))
            must_save = warp_loop.live_out or warp_loop.site is None or warp_loop.ends
            if warp_loop.body is not None and not warp_loop.has_common_work and must_save:
                rest = self.frame.slot(Slot.WARPS)
                self.frame.for_each_warp(plan.full_warps, rest, partial(self._finish_warp, plan))
            self.warp_order.finish_warp_loop(site, self._counts.count([plan]))

    def _finish_warp(self, plan: WarpLoopPlan) -> None:
        """Emits the end of the running warp's part of a loop: saves its live registers in its
        context as after the barrier, with its lanes and SIMT stack if it has just begun; or ends
        the warp."""
        if plan.warp_loop.ends:
            self._end_warp()
            return
        if plan.warp_loop.site is None:
            self.spills.save_head()
        self._body.set_registers(plan.ends)
        self._save(plan, plan.warp_loop.live_out)

    def _end_warp(self) -> None:
        """Stores ENDED as the running warp's status, where the scheduler reads it; nothing in a
        launch without a schedule.
        """
        if self.warp_order.state.scheduled:
            self.frame.context.set_state(WarpState.status, I64(Status.ENDED))

    # ---- one of several -------------------------------------------------------------------------

    def _save_own(self, plan: WarpLoopPlan) -> None:
        """Saves the running warp's live registers that do not follow from the first warp's, for the
        next loop of a static schedule.
        """
        self._save(plan, plan.warp_loop.live_out - self.loop_check.block_affine_registers)

    def _save(self, plan: WarpLoopPlan, registers: Iterable[Register]) -> None:
        """Saves registers of the running warp in its context, in the form that the basic block
        after the loop reads; nothing if the kernel ends in the loop.
        """
        if not plan.warp_loop.ends:
            with self.frame.at_block(plan.warp_loop.next_block, convergent=True):
                self.spills.save_registers_convergent(registers)
