"""Emits how one warp in relay hands over to the next (`lower.control.warp_order`)."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I1, I64
from warploom.lower.control.warp_order_state import END, WarpOrderState
from warploom.simt.schedule_layout import STATUS
from warploom.simt.warp_table import NONE

MOST_RESTARTS = 64
"""Barriers that a block may pass before the schedule looks whether others should go on."""


class WarpSwitch:
    """Emits the blocks of the relay in which no warp runs: from the end of one to the next."""

    def __init__(self, state: WarpOrderState) -> None:
        self.state, self.frame, self.b = state, state.frame, state.b

    def emit(
        self,
        ways: Mapping[int, ir.Block],
        restarts: Mapping[int, ir.Block],
        warp_loops: Mapping[int, ir.Block],
    ) -> None:
        """Emit the hand-over. `ways` are the blocks in which a warp goes on, by site; `restarts`
        those in which one in relay does, `warp_loops` those in which all do at once."""
        b, frame = self.b, self.frame
        b.position_at_end(self.state.turn)
        frame.fuel.begin_turn()
        if restarts:
            alone = self.state.append("warp_order.alone")
            in_round = b.icmp_unsigned("<", frame.warp, frame.get(self.state.whole))
            b.cbranch(in_round, self.state.round, alone)
            b.position_at_end(alone)
        self._choose(ways)
        b.position_at_end(self.state.round)
        self._choose({**ways, **restarts})
        b.position_at_end(self.state.warp_loop)
        self._choose({site: warp_loops.get(site, self.state.turn) for site in ways})
        b.position_at_end(self.state.arrived)
        if self.state.scheduled:
            self.state.pay()
            self._note()
        self._hand_over()

    def _choose(self, ways: Mapping[int, ir.Block]) -> None:
        switch = self.b.switch(self.frame.get(self.state.start), ways[END])
        for site, block in ways.items():
            if site != END:
                switch.add_case(I64(site), block)

    def _note(self) -> None:
        """Note where the warp is; leave where others that wait have come elsewhere."""
        b, frame = self.b, self.frame
        at, site = frame.get(self.state.at), frame.get(self.state.site)
        with b.if_else(b.icmp_unsigned("==", at, I64(END)), likely=False) as (ended, waits):
            with ended:
                frame.context.set_state(STATUS, I64(Status.ENDED))
                b.store(I1(1), frame.active.fewer)
            with waits:
                first = b.icmp_signed("==", site, I64(NONE))
                same = b.or_(first, b.icmp_signed("==", site, at))
                with b.if_then(b.not_(same), likely=False):
                    frame.record(Slot.OWN_SITE, at)
                    frame.leave(Status.BARRIER)
                b.store(at, self.state.site)

    def _hand_over(self) -> None:
        """Go on with the next warp that lives, after the last with the first of the next round."""
        b, frame = self.b, self.frame
        following, known, look = (
            self.state.append(f"warp_order.{n}") for n in ("next", "known", "look")
        )
        b.branch(following)
        b.position_at_end(following)
        frame.set_warp(b.add(frame.warp, I64(1)))
        b.branch(self.state.behind)
        b.position_at_end(self.state.behind)
        more = b.icmp_unsigned("<", frame.warp, frame.slot(Slot.WARPS))
        b.cbranch(more, known if self.state.scheduled else self.state.turn, self.state.over)
        b.position_at_end(known)
        b.cbranch(b.load(self.state.fewer_before, typ=I1), look, self.state.turn)
        b.position_at_end(look)
        ended = b.icmp_unsigned("==", frame.get(frame.context.state(STATUS)), I64(Status.ENDED))
        b.cbranch(ended, following, self.state.turn)
        b.position_at_end(self.state.over)
        if self.state.scheduled:
            self._next_round()
        else:
            frame.leave(Status.ENDED)

    def _next_round(self) -> None:
        """Go on where all warps have ended, or all that live go on behind the barrier."""
        b, frame = self.b, self.frame
        site = frame.get(self.state.site)
        restarts = b.add(frame.get(self.state.restarts), I64(1))
        b.store(restarts, self.state.restarts)
        none = b.icmp_signed("==", site, I64(NONE))
        long = b.icmp_unsigned(">", restarts, I64(MOST_RESTARTS))
        with b.if_then(b.or_(none, long)):
            frame.leave(Status.ENDED)
        self.state.begin_round(site)
        frame.set_warp(I64(0))
        b.cbranch(self.state.all_whole(), self.state.warp_loop, self.state.behind)
