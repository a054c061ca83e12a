"""Emits the switch from one warp to the next in warp order: code by which one call runs all warps
of a thread block in turn, from barrier to barrier (`lower.control.warp_order`)."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I1, I64, Value
from warploom.lower.control.warp_order_state import END, WarpOrderState
from warploom.simt.schedule_layout import WarpState
from warploom.simt.warp_table import NONE

MOST_RESTARTS = 64
"""Barriers that a block may pass in one call before the schedule considers other blocks, so that
blocks that wait for one another progress."""


class WarpSwitch:
    """Emits the LLVM blocks between the end of one warp's turn and the start of the next warp's, in
    warp order: one call runs all warps of a block in turn, from barrier to barrier."""

    def __init__(self, state: WarpOrderState) -> None:
        """Stores the state of warp order, whose blocks `emit` fills."""
        self.state, self.frame, self.b = state, state.frame, state.b

    def emit(
        self,
        resumes: Mapping[int, ir.Block],
        restarts: Mapping[int, ir.Block],
        all_at_once: Mapping[int, ir.Block],
    ) -> None:
        """Emits the blocks of the switch: those that start a turn, a region version or a warp loop
        at the region's site, and the one that warps jump to when they arrive at a barrier or end,
        where a scheduled launch charges their instructions.

        `resumes`: entries of a warp, by site; `restarts`: entries of region versions, which replace
        these in full warps; `all_at_once`: code that runs all warps at once. Sites without it start
        the first warp's turn."""
        b, frame = self.b, self.frame
        b.position_at_end(self.state.turn)
        frame.fuel.begin_turn()
        if restarts:
            # A warp of fewer than 32 threads has no region version.
            partial_warp = self.state.append("warp_order.partial_warp")
            in_region = b.icmp_unsigned("<", frame.warp, frame.get(self.state.full_warps))
            b.cbranch(in_region, self.state.region, partial_warp)
            b.position_at_end(partial_warp)
        self._dispatch(resumes)
        b.position_at_end(self.state.region)
        self._dispatch({**resumes, **restarts})
        b.position_at_end(self.state.warp_loop)
        self._dispatch({site: all_at_once.get(site, self.state.turn) for site in resumes})
        b.position_at_end(self.state.arrived)
        if self.state.scheduled:
            self.state.charge_budget()
            self._record_site()
        self._next_warp()

    def _dispatch(self, resumes: Mapping[int, ir.Block]) -> None:
        """Emits a switch on the site from which the warps of this region continue (`state.start`)
        to its entry in `resumes`; to that of END if the site has none."""
        switch = self.b.switch(self.frame.get(self.state.start), resumes[END])
        for site, block in resumes.items():
            if site != END:
                switch.add_case(I64(site), block)

    def _record_site(self) -> None:
        """Stores the site at which the running warp has arrived as the one where this region's
        warps wait; for END stores instead ENDED as the warp's status, and in `fewer` that threads
        have ended. If earlier warps wait at another site, `warp` returns (`_leave_at`), which ends
        warp order."""
        b, frame = self.b, self.frame
        at, site = frame.get(self.state.at), frame.get(self.state.site)
        with b.if_else(b.icmp_unsigned("==", at, I64(END)), likely=False) as (ended, waits):
            with ended:
                frame.context.set_state(WarpState.status, I64(Status.ENDED))
                b.store(I1(1), frame.active.fewer)
            with waits:
                none_waits = b.icmp_signed("==", site, I64(NONE))
                same = b.or_(none_waits, b.icmp_signed("==", site, at))
                with b.if_then(b.not_(same), likely=False):
                    self._leave_at(at)
                b.store(at, self.state.site)

    def _leave_at(self, at: Value) -> None:
        """Emits the return of the running warp, which has arrived at a site, with the site in
        OWN_SITE: BARRIER, or at the header of a loop TURN_END."""
        b, frame = self.b, self.frame
        frame.record(Slot.OWN_SITE, at)
        at_loop = b.icmp_unsigned(">", at, I64(len(frame.program.blocks)))
        with b.if_then(at_loop):
            frame.leave(Status.TURN_END)
        frame.leave(Status.BARRIER)

    def _next_warp(self) -> None:
        """Emits the jump to the turn of the next warp that has not ended, and after the last one to
        the next region (`_next_region`). In a launch without a schedule no warp waits at a barrier:
        no warp is skipped, and after the last one the block ends (ENDED). Emits `after_warp` and
        `over` of the state as well."""
        b, frame = self.b, self.frame
        next_block, check_fewer, check_ended = (
            self.state.append(f"warp_order.{n}") for n in ("next", "known", "look")
        )
        b.branch(next_block)
        b.position_at_end(next_block)
        frame.set_warp(b.add(frame.warp, I64(1)))
        b.branch(self.state.after_warp)
        b.position_at_end(self.state.after_warp)
        has_more = b.icmp_unsigned("<", frame.warp, frame.slot(Slot.WARPS))
        b.cbranch(
            has_more, check_fewer if self.state.scheduled else self.state.turn, self.state.over
        )
        # Warps that have ended are skipped; their states are read only if threads may have ended
        # before.
        b.position_at_end(check_fewer)
        b.cbranch(b.load(self.state.fewer_before, typ=I1), check_ended, self.state.turn)
        b.position_at_end(check_ended)
        ended = b.icmp_unsigned(
            "==", frame.get(frame.context.state(WarpState.status)), I64(Status.ENDED)
        )
        b.cbranch(ended, next_block, self.state.turn)
        b.position_at_end(self.state.over)
        if self.state.scheduled:
            self._next_region()
        else:
            frame.leave(Status.ENDED)

    def _next_region(self) -> None:
        """Emits the start of the next region from warp 0 on, as a warp loop if `all_full` holds.
        Emits the return ENDED instead if no warp waits, or if the block has passed more than
        MOST_RESTARTS barriers in this call, so that the schedule can run other blocks. For the
        caller ENDED with a SITE other than NONE is a pause."""
        b, frame = self.b, self.frame
        site = frame.get(self.state.site)
        restarts = b.add(frame.get(self.state.restarts), I64(1))
        # Counted in a variable that only a call of the function clears: the limit is on one call.
        b.store(restarts, self.state.restarts)
        none = b.icmp_signed("==", site, I64(NONE))
        long = b.icmp_unsigned(">", restarts, I64(MOST_RESTARTS))
        with b.if_then(b.or_(none, long)):
            frame.leave(Status.ENDED)
        self.state.begin_region(site)
        frame.set_warp(I64(0))
        b.cbranch(self.state.all_full(), self.state.warp_loop, self.state.after_warp)
