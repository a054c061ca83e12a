"""The warps of a block in relay: one call of the warp function runs them all, one after the other.

Where the schedule has nothing to decide — the policy goes in order, and all warps of the block that
live stand whole at one place — a warp that comes to its end or to a barrier hands over to the next
one. When all have come to the same barrier, they go on behind it. Anything else ends the relay; the
schedule is then told how far each warp has come (`helpers.turns.end_relay`).
"""

from __future__ import annotations

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I64, Value
from warploom.lower.control.warp_order_sites import WarpOrderSites
from warploom.lower.control.warp_order_state import END, WarpOrderState
from warploom.lower.frame.frame import Frame
from warploom.simt.warp_table import NONE


class WarpOrder:
    """Emits what warps do that come to their end or to a barrier in one warp function: its relay
    goes on from there. `sites` are those at which they may wait."""

    def __init__(self, frame: Frame, *, scheduled: bool) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.state, self.sites = WarpOrderState(frame, scheduled=scheduled), WarpOrderSites()

    def enter(self, site: Value) -> None:
        """Begin the call: its warp goes on from a site."""
        self.b.store(self.b.icmp_unsigned("!=", site, I64(END)), self.frame.active.fewer)
        self.state.begin_region(site)
        self.b.cbranch(self.state.all_full(), self.state.warp_loop, self.state.turn)

    def end(self) -> None:
        """End the running warp."""
        with self.b.if_else(self.state.together) as (warp_order, alone):
            with warp_order:
                self._arrive(END)
            with alone:
                self.frame.leave(Status.ENDED)
        self.b.unreachable()

    def wait(self, site: int, instruction: int, barrier: int) -> None:
        """Let the running warp, in relay, wait at a barrier of all threads; what it needs later is
        saved. Code goes on where it does not run in relay."""
        self.sites.add(site, instruction, barrier)
        with self.b.if_then(self.state.together):
            self._arrive(site)

    def switch_warp(self, site: int) -> None:
        """Let the running warp, in a round, wait at a barrier of all threads; what it needs later
        is saved. Where none before it has come elsewhere, the next one goes on."""
        b, frame = self.b, self.frame
        waiting_site = frame.get(self.state.site)
        first = b.icmp_signed("==", waiting_site, I64(NONE))
        with b.if_then(
            b.not_(b.or_(first, b.icmp_signed("==", waiting_site, I64(site)))), likely=False
        ):
            self._arrive(site)
        b.store(I64(site), self.state.site)
        self.state.charge_budget()
        following = b.add(frame.warp, I64(1))
        frame.set_warp(following)
        in_region = b.icmp_unsigned("<", following, frame.get(self.state.full_warps))
        b.cbranch(in_region, self.state.region, self.state.after_warp)

    def run_in_order(self) -> None:
        """Let the warps of the round go one after the other, where a sweep cannot be."""
        self.b.branch(self.state.turn)

    def finish_warp_loop(self, site: int, used: Value) -> None:
        """Note that all warps have come to a site at once, or to the end, with so many
        instructions."""
        b, frame = self.b, self.frame
        if self.state.scheduled:
            budget = self.lanes.slot(frame.environment, int(Slot.BUDGET))
            b.store(b.sub(frame.get(budget), used), budget)
            frame.fuel.begin_turn()
        b.store(I64(NONE if site == END else site), self.state.site)
        frame.set_warp(frame.slot(Slot.WARPS))
        b.branch(self.state.over)

    def _arrive(self, site: int) -> None:
        self.b.store(I64(site), self.state.at)
        self.b.branch(self.state.arrived)
