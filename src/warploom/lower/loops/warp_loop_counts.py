"""Counts at once the instructions of a block's warps in sweeps (`lower.loops.warp_loop`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from warploom.abi.access_type import record_memory_change
from warploom.abi.environment import Slot
from warploom.analysis.vector_shape import LANES
from warploom.analysis.warp_loops import StepKind
from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.frame import Frame
from warploom.lower.loops.warp_loop_guards import Found


class WarpLoopCounts:
    """Emits the counting of sweeps in one warp function."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.program = frame.program

    def count(self, founds: Sequence[Found]) -> Value:
        """Count what all warps have done in one sweep after the other; gives their instructions."""
        with self.frame.counters.adding_up():
            used = reduce(self.b.add, map(self._count, founds))
        changes = reduce(self.b.add, (n for found in founds for n in self._changes(found)), I64(0))
        record_memory_change(self.lanes, self.frame.environment, changes)
        return used

    def _count(self, found: Found) -> Value:
        b, frame, warp_loop = self.b, self.frame, found.warp_loop
        warps, threads = frame.slot(Slot.WARPS), frame.slot(Slot.THREADS)
        for block in warp_loop.blocks:
            self._count_block(found, block, warps, warps, threads)
        for branch, taken in warp_loop.choices.items():
            if taken:
                frame.counters.add(frame.layout.guarded[branch], threads)
        used = b.mul(warps, I64(warp_loop.length(warp_loop.blocks)))
        if warp_loop.body is None:
            return used
        inside, partly = b.add(b.mul(found.full, I64(LANES)), found.some), found.partly(b)
        entered = b.add(found.full, partly)
        self._count_block(found, warp_loop.body, found.full, entered, inside)
        block = self.program.blocks[warp_loop.before[-1]]
        goes = inside if warp_loop.body == block.successors[0] else b.sub(threads, inside)
        frame.counters.add(frame.layout.guarded[block.stop - 1], goes)
        if not warp_loop.needs_all_threads:
            self._count_part(found, frame.layout.branches[block.stop - 1], partly)
        return b.add(used, b.mul(entered, I64(warp_loop.length(warp_loop.body_blocks))))

    def _count_block(
        self, found: Found, block: int, full: Value, warps: Value, threads: Value
    ) -> None:
        """Count those that have gone through a block, `full` of the warps with all their
        threads."""
        self.frame.counters.add(2 * block, warps)
        self.frame.counters.add(2 * block + 1, threads)
        for index in found.warp_loop.steps((block,)):
            if found.warp_loop.kinds[index] is StepKind.ACCESS and index in found.access.goes_on:
                found.access.count(index, full)

    def _changes(self, found: Found) -> Iterator[Value]:
        """Yield how often warps have stored."""
        warp_loop = found.warp_loop
        entered = self.b.add(found.full, found.partly(self.b))
        for blocks, warps in (
            (warp_loop.blocks, self.frame.slot(Slot.WARPS)),
            (warp_loop.body_blocks, entered),
        ):
            for index in warp_loop.steps(blocks):
                stores = self.program.instructions[index].operation.name == "st"
                if stores and warp_loop.kinds[index] is StepKind.ACCESS:
                    yield warps

    def _count_part(self, found: Found, branch: int, partly: Value) -> None:
        """Once or never, some threads of a warp have gone through the body: they part from the
        others before it, and meet again behind it."""
        for count in (branch, branch + 1):
            self.frame.counters.add(count, partly)
        for index in found.warp_loop.steps(found.warp_loop.body_blocks):
            if found.warp_loop.kinds[index] is StepKind.ACCESS:
                found.part.count(index, partly)
