"""Emits the counts of warp loops (`lower.loops.warp_loop`), once for all warps: of blocks, threads,
branches, accesses and instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from warploom.abi.access_type import record_memory_change
from warploom.abi.environment import Slot
from warploom.ir.loops import StepKind
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.frame import Frame
from warploom.lower.loops.warp_loop_guards import WarpLoopPlan
from warploom.shapes.vector_shape import LANES


class WarpLoopCounts:
    """Emits, after warp loops, the counts of what all warps have executed in them."""

    def __init__(self, frame: Frame) -> None:
        """Shares the frame and its IR builder; emits nothing."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.program = frame.program

    def count(self, plans: Sequence[WarpLoopPlan]) -> Value:
        """Emits the addition to the launch's counters of all that warps have executed in
        consecutive warp loops (at least one), the sums of all loops at once. Adds to the schedule's
        count of memory changes one for each store of each warp. Returns the number of warp
        instructions (an i64)."""
        with self.frame.counters.adding_up():
            used = reduce(self.b.add, map(self._count, plans))
        changes = reduce(self.b.add, (n for plan in plans for n in self._changes(plan)), I64(0))
        record_memory_change(self.lanes, self.frame.environment, changes)
        return used

    def _count(self, plan: WarpLoopPlan) -> Value:
        """Adds the blocks, threads, branches and accesses of one warp loop to the counters, of its
        body only for the warps and threads that entered it; returns its number of instructions (an
        i64) in all warps."""
        b, frame, warp_loop = self.b, self.frame, plan.warp_loop
        warps, threads = frame.slot(Slot.WARPS), frame.slot(Slot.THREADS)
        for block in warp_loop.blocks:
            self._count_block(plan, block, warps, warps, threads)
        for branch, taken in warp_loop.choices.items():
            if taken:
                frame.counters.add(frame.layout.guarded[branch], threads)
        used = b.mul(warps, I64(warp_loop.length(warp_loop.blocks)))
        if warp_loop.body is None:
            return used
        body_threads, partial_warps = (
            b.add(b.mul(plan.full_warps, I64(LANES)), plan.partial_threads),
            plan.partial_warps(b),
        )
        entered_warps = b.add(plan.full_warps, partial_warps)
        self._count_block(plan, warp_loop.body, plan.full_warps, entered_warps, body_threads)
        block = self.program.blocks[warp_loop.before[-1]]
        taken_threads = (
            body_threads if warp_loop.body == block.successors[0] else b.sub(threads, body_threads)
        )
        frame.counters.add(frame.layout.guarded[block.stop - 1], taken_threads)
        if warp_loop.allows_partial_warp:
            self._count_partial_warp(plan, frame.layout.branches[block.stop - 1], partial_warps)
        return b.add(used, b.mul(entered_warps, I64(warp_loop.length(warp_loop.body_blocks))))

    def _count_block(
        self, plan: WarpLoopPlan, block: int, full_warps: Value, warps: Value, threads: Value
    ) -> None:
        """Emits the counts of one block of a warp loop, for all warps at once: adds the number of
        `warps` that entered it and of their `threads` to the block's two counters, and
        `full_warps`, the number of them that entered with all threads, to the range caches'
        counters of the block's extrapolated accesses. Accesses of a warp that entered with some
        threads are counted elsewhere (`_count_partial_warp`)."""
        self.frame.counters.add(2 * block, warps)
        self.frame.counters.add(2 * block + 1, threads)
        for index in plan.warp_loop.steps((block,)):
            if index in plan.warp_loop.extrapolated:
                plan.access.count(index, full_warps)

    def _changes(self, plan: WarpLoopPlan) -> Iterator[Value]:
        """Yields, for each store of the loop, the number of warps that execute it (an i64)."""
        warp_loop = plan.warp_loop
        entered_warps = self.b.add(plan.full_warps, plan.partial_warps(self.b))
        for blocks, warps in (
            (warp_loop.blocks, self.frame.slot(Slot.WARPS)),
            (warp_loop.body_blocks, entered_warps),
        ):
            for index in warp_loop.steps(blocks):
                stores = self.program.instructions[index].operation.kind is OpKind.STORE
                if stores and warp_loop.kinds[index] is StepKind.ACCESS:
                    yield warps

    def _count_partial_warp(self, plan: WarpLoopPlan, branch: int, partial_warps: Value) -> None:
        """Counts the warp of which only some threads have run the body, if there is one
        (`partial_warps`, 0 or 1): its divergence and reconvergence at the body's branch, whose
        first counter is `branch`, and its accesses.
        """
        for count in (branch, branch + 1):
            self.frame.counters.add(count, partial_warps)
        for index in plan.warp_loop.steps(plan.warp_loop.body_blocks):
            if plan.warp_loop.kinds[index] is StepKind.ACCESS:
                plan.partial.count(index, partial_warps)
