"""The state of warps in relay (`lower.control.warp_order`): where they are, and the blocks of its
code."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I1, I64, LANES, Value
from warploom.lower.frame.frame import Frame
from warploom.simt.warp_table import NONE

END = 0
"""The site at which a warp ends; where it ends none waits. Others are numbered from 1, as in a
state's RESUME."""


class WarpOrderState:
    """Holds the variables of the relay in one warp function, and the blocks to which its code goes.

    `start` is the site from which the warps of this round go, `site` the one that they have come
    to, NONE as long as none waits, `at` the one to which the running warp has come. `restarts`
    counts the barriers that they have passed. `together` says whether this call runs the whole
    block, `fewer_before` whether threads of the block may have ended before this round (the frame
    knows whether so by now). `full_warps` is how many warps go as in a round: each with all of 32
    threads. `warp_loops` says whether the blocks of the launch are such that one sweep may do for
    all warps. `scheduled`: the schedule decides what goes on where the relay ends.
    """

    def __init__(self, frame: Frame, *, scheduled: bool) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.scheduled = scheduled
        together_slot = frame.slot(Slot.TOGETHER)
        self.together = frame.prologue.b.icmp_unsigned("!=", together_slot, I64(0))
        self.start, self.site, self.restarts, self.at = (frame.variable(I64) for _ in range(4))
        self.fewer_before, self.full_warps = frame.variable(I1), frame.variable(I64)
        names = ("turn", "region", "arrived", "after", "over", "warp_loop")
        blocks = (self.append(f"warp_order.{name}") for name in names)
        self.turn, self.region, self.arrived, self.after_warp, self.over, self.warp_loop = blocks
        self.warp_loops: Value = I1(0)

    def append(self, name: str) -> ir.Block:
        """Returns a new block at the end of the function."""
        return self.frame.function.append_basic_block(name)

    def begin_region(self, site: Value) -> None:
        """Warps are to go on from a site."""
        b, frame = self.b, self.frame
        fewer = b.load(frame.active.fewer, typ=I1)
        b.store(site, self.start)
        b.store(I64(NONE), self.site)
        b.store(fewer, self.fewer_before)
        warps = b.udiv(frame.slot(Slot.THREADS), I64(LANES))
        b.store(b.select(b.and_(self.together, b.not_(fewer)), warps, I64(0)), self.full_warps)

    def all_full(self) -> Value:
        """Returns whether all warps are in the round, and one sweep may do for them."""
        full_warps, b = self.frame.get(self.full_warps), self.b
        every = b.icmp_unsigned("==", full_warps, self.frame.slot(Slot.WARPS))
        return b.and_(every, self.warp_loops)

    def charge_budget(self) -> None:
        """Take what the turn used from the budget of the launch."""
        b, frame = self.b, self.frame
        budget = self.lanes.slot(frame.environment, int(Slot.BUDGET))
        used = b.sub(frame.slot(Slot.FUEL), frame.get(frame.fuel.left))
        left = b.sub(frame.get(budget), used)
        b.store(left, budget)
        frame.fuel.begin_turn()
        with b.if_then(b.icmp_signed("<", left, I64(0)), likely=False):
            frame.leave(Status.LIMIT)

    def record(self) -> None:
        """Tell the caller how far the relay has come; it looks only where there was one."""
        frame = self.frame
        frame.record(Slot.WARP, frame.warp)
        frame.record(Slot.SITE, frame.get(self.site))
        frame.record(Slot.START, frame.get(self.start))
