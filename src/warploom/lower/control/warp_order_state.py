"""Holds the variables and LLVM blocks that code in warp order shares in one warp function: code by
which one call runs all warps of a thread block in turn (`lower.control.warp_order`).
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot, Status
from warploom.llvm.lanes import I1, I64, LANES, Value
from warploom.lower.frame.frame import Frame
from warploom.simt.warp_table import NONE

END = 0
"""The site at which a warp ends. Other sites are numbered from 1, as in the `resume` value of a
warp's state."""


class WarpOrderState:
    """Holds the variables of warp order (one call runs all warps of a block in turn) in one warp
    function, and the LLVM blocks of its code.

    `start` is the site (numbered barrier) from which the warps of this region continue, `site` the
    one at which they wait, NONE while none waits, `at` the one at which the running warp has
    arrived. `restarts` counts the barriers that they have passed in this call. `together` is true
    if this call runs the whole thread block, `fewer_before` if threads of the block may have ended
    before this region (`frame.active.fewer`: by now). `full_warps` is the number of warps that run
    region versions: those with 32 threads. `scheduled`: the schedule
    decides what runs where warp order ends."""

    def __init__(self, frame: Frame, *, scheduled: bool) -> None:
        """Allocates the variables and appends the blocks, which `WarpSwitch` and `WarpOrder` fill:
        `turn` starts the running warp, `region` a full one in its region version, `arrived` handles
        its arrival at a site, `after_warp` and `over` follow a warp and the last warp, `warp_loop`
        runs all warps at once."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.scheduled = scheduled
        together_slot = frame.slot(Slot.TOGETHER)
        self.together = frame.prologue.b.icmp_unsigned("!=", together_slot, I64(0))
        self.start, self.site, self.restarts, self.at = (frame.variable(I64) for _ in range(4))
        self.fewer_before, self.full_warps = frame.variable(I1), frame.variable(I64)
        names = ("turn", "region", "arrived", "after", "over", "warp_loop")
        blocks = (self.append(f"warp_order.{name}") for name in names)
        self.turn, self.region, self.arrived, self.after_warp, self.over, self.warp_loop = blocks

    def append(self, name: str) -> ir.Block:
        """Returns a new LLVM block at the end of the function."""
        return self.frame.function.append_basic_block(name)

    def begin_region(self, site: Value) -> None:
        """Emits the start of a region (code from one barrier to the next), in which warps continue
        from `site` and none waits yet. Computes how many warps run region versions (`full_warps`):
        all with 32 threads if the call runs the whole block and no thread has ended, else none."""
        b, frame = self.b, self.frame
        fewer = b.load(frame.active.fewer, typ=I1)
        b.store(site, self.start)
        b.store(I64(NONE), self.site)
        b.store(fewer, self.fewer_before)
        warps = b.udiv(frame.slot(Slot.THREADS), I64(LANES))
        b.store(b.select(b.and_(self.together, b.not_(fewer)), warps, I64(0)), self.full_warps)

    def all_full(self) -> Value:
        """Returns true (an i1) if `full_warps` is the number of warps of the block: this call runs
        the whole block, and all its warps had 32 living threads when the region began. Constant
        false in a kernel without code that runs all warps at once."""
        warp_ir = self.frame.warp_ir
        if not (warp_ir.warp_loops or warp_ir.static_schedule or warp_ir.strided_loops):
            return I1(0)
        full_warps = self.frame.get(self.full_warps)
        return self.b.icmp_unsigned("==", full_warps, self.frame.slot(Slot.WARPS))

    def charge_budget(self) -> None:
        """Subtracts the instructions that the running warp has used from the launch's budget and
        resets its fuel for the next warp; leaves with LIMIT if the budget falls below 0."""
        b, frame = self.b, self.frame
        budget = self.lanes.slot(frame.environment, int(Slot.BUDGET))
        used = b.sub(frame.slot(Slot.FUEL), frame.get(frame.fuel.left))
        left = b.sub(frame.get(budget), used)
        b.store(left, budget)
        frame.fuel.begin_turn()
        with b.if_then(b.icmp_signed("<", left, I64(0)), likely=False):
            frame.leave(Status.LIMIT)

    def record(self) -> None:
        """Stores the running warp's number, the site at which warps wait, and the site where the
        region began in the environment (WARP, SITE, START), at every return; `run` and
        `end_warp_order` read them after a call in warp order."""
        frame = self.frame
        frame.record(Slot.WARP, frame.warp)
        frame.record(Slot.SITE, frame.get(self.site))
        frame.record(Slot.START, frame.get(self.start))
