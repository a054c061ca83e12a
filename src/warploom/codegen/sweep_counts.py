"""Counts at once the instructions of a block's warps in sweeps (`codegen.sweep`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from warploom.analysis.strides import LANES
from warploom.analysis.sweeps import Kind
from warploom.codegen.access import count_change
from warploom.codegen.environment import Slot
from warploom.codegen.frame import Frame
from warploom.codegen.lanes import I64, Value
from warploom.codegen.survey import Found


class SweepCounts:
    """Emits the counting of sweeps in one warp function."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.program = frame.program

    def count(self, founds: Sequence[Found]) -> Value:
        """Count what all warps have done in one sweep after the other; gives their instructions."""
        with self.frame.counters.adding_up():
            used = reduce(self.b.add, map(self._count, founds))
        changes = reduce(self.b.add, (n for found in founds for n in self._changes(found)), I64(0))
        count_change(self.lanes, self.frame.environment, changes)
        return used

    def _count(self, found: Found) -> Value:
        b, frame, sweep = self.b, self.frame, found.sweep
        warps, threads = frame.slot(Slot.WARPS), frame.slot(Slot.THREADS)
        for block in sweep.blocks:
            self._count_block(found, block, warps, warps, threads)
        for branch, taken in sweep.choices.items():
            if taken:
                frame.counters.add(frame.layout.guarded[branch], threads)
        used = b.mul(warps, I64(sweep.length(sweep.blocks)))
        if sweep.body is None:
            return used
        inside, partly = b.add(b.mul(found.full, I64(LANES)), found.some), found.partly(b)
        entered = b.add(found.full, partly)
        self._count_block(found, sweep.body, found.full, entered, inside)
        block = self.program.blocks[sweep.before[-1]]
        goes = inside if sweep.body == block.successors[0] else b.sub(threads, inside)
        frame.counters.add(frame.layout.guarded[block.stop - 1], goes)
        if not sweep.asks_all:
            self._count_part(found, frame.layout.branches[block.stop - 1], partly)
        return b.add(used, b.mul(entered, I64(sweep.length(sweep.own))))

    def _count_block(
        self, found: Found, block: int, full: Value, warps: Value, threads: Value
    ) -> None:
        """Count those that have gone through a block, `full` of the warps with all their
        threads."""
        self.frame.counters.add(2 * block, warps)
        self.frame.counters.add(2 * block + 1, threads)
        for index in found.sweep.steps((block,)):
            if found.sweep.kinds[index] is Kind.ACCESS and index in found.access.goes_on:
                found.access.count(index, full)

    def _changes(self, found: Found) -> Iterator[Value]:
        """Yield how often warps have stored."""
        sweep = found.sweep
        entered = self.b.add(found.full, found.partly(self.b))
        for blocks, warps in ((sweep.blocks, self.frame.slot(Slot.WARPS)), (sweep.own, entered)):
            for index in sweep.steps(blocks):
                stores = self.program.instructions[index].operation.name == "st"
                if stores and sweep.kinds[index] is Kind.ACCESS:
                    yield warps

    def _count_part(self, found: Found, branch: int, partly: Value) -> None:
        """Once or never, some threads of a warp have gone through the body: they part from the
        others before it, and meet again behind it."""
        for count in (branch, branch + 1):
            self.frame.counters.add(count, partly)
        for index in found.sweep.steps(found.sweep.own):
            if found.sweep.kinds[index] is Kind.ACCESS:
                found.part.count(index, partly)
