"""Emits the execution of all warps of a thread block by one call of the warp function, in *warp
order*.

This is for launches in which the schedule has no choice: the policy is in order, and all living
warps of the block wait at one site with their lanes together. A warp that ends or arrives at a
barrier jumps to the next one; when all wait at the same barrier, they continue after it:

    warp 0: A; barrier   warp 1: A; barrier   warp 0: B; end   warp 1: B; end

Full warps run region versions of the code between barriers (`lower.frame.blocks`). Anything else
ends warp order: the function returns, and the schedule gets the progress of each warp
(`helpers.turns.end_warp_order`).
"""

from __future__ import annotations

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I64, Value
from warploom.lower.control.warp_order_sites import WarpOrderSites
from warploom.lower.control.warp_order_state import END, WarpOrderState
from warploom.lower.frame.frame import Frame
from warploom.simt.schedule_layout import Plan
from warploom.simt.warp_table import NONE


class WarpOrder:
    """Emits what warps do at their end or at a barrier in one warp function. In warp order one call
    runs all warps of a block in turn, each to its next barrier or end. `sites` are the barriers at
    which they may wait, `state` has the variables. `scheduled`: a schedule decides what runs where
    warp order ends."""

    def __init__(self, frame: Frame, *, scheduled: bool) -> None:
        """Allocates the state of warp order, and begins without sites. `scheduled`: the schedule
        decides what runs after warp order ends."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.state, self.sites = WarpOrderState(frame, scheduled=scheduled), WarpOrderSites()

    def enter(self, site: Value) -> None:
        """Emits the begin of a call, in which warps continue from `site` (END: from the kernel's
        begin): enters the warp loop of that barrier region if `all_full` holds, else the turn of
        the running warp, in warp order the first one. A call that runs one warp alone begins here,
        too. `fewer` is set unless the kernel begins, or all warps of the block are at the header of
        a loop, where they meet with all of their threads."""
        b = self.b
        # At the beginning of a block no thread has ended; in a later region some may have.
        fewer = b.icmp_unsigned("!=", site, I64(END))
        if self.frame.warp_ir.strided_loops:
            at_loop = b.icmp_unsigned(">", site, I64(len(self.frame.program.blocks)))
            none_ended = b.icmp_unsigned(
                "!=", self.frame.get(self.frame.plan(Plan.none_ended)), I64(0)
            )
            full = b.and_(b.and_(self.state.together, at_loop), none_ended)
            fewer = b.and_(fewer, b.not_(full))
        b.store(fewer, self.frame.active.fewer)
        self.state.begin_region(site)
        self.b.cbranch(self.state.all_full(), self.state.warp_loop, self.state.turn)

    def end(self) -> None:
        """Emits the end of the running warp: in warp order a jump to the switch to the next warp,
        else the return ENDED."""
        with self.b.if_else(self.state.together) as (warp_order, single):
            with warp_order:
                self._arrive(END)
            with single:
                self.frame.leave(Status.ENDED)
        self.b.unreachable()

    def wait(self, site: int, instruction: int, barrier: int) -> None:
        """Records a site at which warps wait in warp order, and emits the jump to the next warp,
        taken if warps run in order; the running warp's state has been saved. Code continues for
        warps that do not run in order.
        """
        self.sites.add(site, instruction, barrier)
        with self.b.if_then(self.state.together):
            self._arrive(site)

    def meet(self, site: int, instruction: int) -> None:
        """Records a site at which warps of a block meet though no barrier makes them wait, and
        emits the jump to the next warp; only for warps that run in order. The running warp's state
        has been saved, with the basic block at which it continues."""
        self.sites.add(site, instruction, NONE)
        self._arrive(site)

    def switch_warp(self, site: int) -> None:
        """Emits the wait of a warp in a region version at a barrier of all threads; its state is
        saved. Stores `site` as the one at which this region's warps wait, charges the budget, and
        continues with the next warp, in the region version if that warp is full. If an earlier warp
        waits at another site, code jumps to the general switch, which ends warp order."""
        b, frame = self.b, self.frame
        waiting_site = frame.get(self.state.site)
        none_waits = b.icmp_signed("==", waiting_site, I64(NONE))
        with b.if_then(
            b.not_(b.or_(none_waits, b.icmp_signed("==", waiting_site, I64(site)))), likely=False
        ):
            self._arrive(site)
        b.store(I64(site), self.state.site)
        self.state.charge_budget()
        following = b.add(frame.warp, I64(1))
        frame.set_warp(following)
        in_region = b.icmp_unsigned("<", following, frame.get(self.state.full_warps))
        # Past the full warps there may be a partial one, or none: `after_warp` finds out.
        b.cbranch(in_region, self.state.region, self.state.after_warp)

    def run_in_order(self) -> None:
        """Emits the jump to the LLVM block `state.turn`, where the running warp, the first of the
        block in this barrier region, begins its turn as ordinary code. It is for the case that the
        checks of a warp loop fail: the warps then run the region one after the other."""
        self.b.branch(self.state.turn)

    def finish_warp_loop(self, site: int, used: Value) -> None:
        """Emits the end of a warp loop, which has moved all warps to a site (END: to their ends) by
        `used` warp instructions (an i64). If there is a schedule, subtracts these from the launch's
        budget and resets the turn's fuel. Stores the site (NONE for END) as the one at which warps
        wait, and continues with the next region."""
        b, frame = self.b, self.frame
        if self.state.scheduled:
            budget = self.lanes.slot(frame.environment, int(Slot.BUDGET))
            b.store(b.sub(frame.get(budget), used), budget)
            frame.fuel.begin_turn()
        b.store(I64(NONE if site == END else site), self.state.site)
        # `over` expects the number after the last warp, which `record` also reports if the call
        # returns.
        frame.set_warp(frame.slot(Slot.WARPS))
        b.branch(self.state.over)

    def _arrive(self, site: int) -> None:
        """Stores the site at which the running warp has arrived, and jumps to the code that
        switches warps.
        """
        self.b.store(I64(site), self.state.at)
        self.b.branch(self.state.arrived)
