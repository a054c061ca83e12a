"""Computes where the recorded thread blocks of a launch are resident, and from when until when.

Blocks take the slots of the SMs as `simt.block_slots` describes: the first, as many as the device
holds, are resident from the start of the launch on, and each later one takes the slot of the next
block that ends. Six blocks on two SMs with a slot each, of which block 1 ends before block 0:

    block   0  1  2  3
    slot    0  1  1  0      block 2 is resident on SM 1 from the end of block 1 on

When blocks that were not recorded end is not known: if there are any, blocks are taken to end in
the order in which they begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from warploom.isa.kinds import Effect
from warploom.machine.launch import Launch
from warploom.observe import schema
from warploom.program.program import Program
from warploom.simt.block_order import block_at
from warploom.simt.placement import sm_of

Numbers = npt.NDArray[np.int64]

MOST_ORDERED = 1 << 16
"""The most blocks whose order is computed; beyond, they count as in grid order."""


@dataclass(frozen=True)
class Residents:
    """Computes the residency of recorded warps (`warps`, with the numbers of their states in
    `states`), whose steps are the columns `steps`."""

    program: Program
    launch: Launch
    warps: Sequence[schema.Warp]
    states: Sequence[schema.State]
    steps: schema.Steps

    def ended_warps(self) -> tuple[schema.Warp, ...]:
        """Returns the warps, each with whether its last recorded step ended it (`Warp.ended`)."""
        last = self._last_steps()
        ended = (self._ends(warp, int(step)) for warp, step in zip(self.warps, last, strict=True))
        return tuple(replace(w, ended=e) for w, e in zip(self.warps, ended, strict=True))

    def _ends(self, warp: schema.Warp, step: int) -> bool:
        """Returns whether all lanes of a warp have exited, the last of them in this step."""
        final = self.states[warp.final].off.exited
        if step < 0 or final != warp.existing:
            return False
        instruction = int(_column(self.steps.instruction)[step])
        exited_before = self.states[int(_column(self.steps.state)[step])].off.exited
        size = self.launch.warp_size // 8
        lanes = int.from_bytes(self.steps.executing[step * size : (step + 1) * size], "little")
        exits = self.program.instructions[instruction].operation.has(Effect.ENDS_THREAD)
        return exits and lanes | exited_before == warp.existing

    def _last_steps(self) -> Numbers:
        """Returns the last recorded step of each warp; -1 for none."""
        warp = _column(self.steps.warp)
        last = np.full(len(self.warps), -1, np.int64)
        np.maximum.at(last, warp, np.arange(len(warp)))
        return last

    def _first_steps(self) -> dict[int, int]:
        """Returns the first recorded step of each recorded block."""
        of_block = np.array([warp.block for warp in self.warps], np.int64)
        blocks, first = np.unique(of_block[_column(self.steps.warp)], return_index=True)
        return dict(zip(blocks.tolist(), first.tolist(), strict=True))

    def blocks(self, ended: Sequence[schema.Warp]) -> tuple[schema.BlockResidency, ...]:
        """Returns the residency of the recorded blocks; `ended` are their warps, as `ended_warps`
        returns them. A block without a recorded end is resident to the end of the trace."""
        until: dict[int, int] = {}
        for warp, last in zip(ended, self._last_steps().tolist(), strict=True):
            end = last + 1 if warp.ended else self.steps.count + 1
            until[warp.block] = max(until.get(warp.block, 0), end)
        first = self._first_steps()
        order = self._order()
        slots, before = self._slots(order, until)
        size, sms = self.launch.cluster_blocks, self.launch.schedule.sms
        found: list[schema.BlockResidency] = []
        for block, slot, earlier in zip(order, slots, before, strict=True):
            if block not in until:
                continue
            since = 0
            if earlier >= 0:
                # If the end of the block that frees the slot is not recorded, it was before this.
                since = until.get(order[earlier], first.get(block, 0))
            sm = sm_of(slot, size, sms)
            found.append(schema.BlockResidency(block, sm, slot, since, until[block]))
        return tuple(found)

    def _order(self) -> list[int]:
        """Returns the blocks in the order in which they begin."""
        blocks = self.launch.blocks
        if blocks > MOST_ORDERED:
            return list(range(blocks))
        plan = self.launch.schedule.plan(self.launch, self.program)
        return [block_at(plan, position) for position in range(blocks)]

    def _slots(self, order: list[int], until: dict[int, int]) -> tuple[list[int], list[int]]:
        """Returns for each position in the order of blocks its slot, and the position of the block
        that had it before, -1 for none. `until` are the recorded ends, by block: if it has those of
        all blocks, they decide."""
        size = self.launch.cluster_blocks
        count = self.launch.schedule.slots(self.launch)
        clusters = range(len(order) // size)
        ends: list[int] = list(clusters)
        if len(until) == len(order) and max(until.values()) <= self.steps.count:
            by_end = {c: max(until[b] for b in order[c * size : (c + 1) * size]) for c in clusters}
            ends.sort(key=lambda cluster: by_end[cluster])
        slots, before = list(range(count)), [-1] * count
        for position in range(count, len(order)):
            cluster = ends[(position - count) // size]
            earlier = cluster * size + position % size
            slots.append(slots[earlier])
            before.append(earlier)
        return slots, before


def without_returns(program: Program, steps: schema.Steps) -> schema.Steps:
    """Returns the steps without marks of reconvergence where lanes are together again only to end:
    before a block of `Program.exit_blocks`."""
    warp, instruction = _column(steps.warp), _column(steps.instruction)
    order = np.argsort(warp, kind="stable")
    before, after = order[:-1], order[1:]
    same_warp = warp[before] == warp[after]
    ends = np.zeros(program.size, np.bool_)
    ends[[program.blocks[block].start for block in program.exit_blocks]] = True
    marks = np.frombuffer(steps.marks, np.uint8).copy()
    marks[before[same_warp & ends[instruction[after]]]] &= ~np.uint8(schema.MET)
    return replace(steps, marks=marks.tobytes())


def _column(data: bytes) -> Numbers:
    """Returns a column of u32."""
    return np.frombuffer(data, "<u4").astype(np.int64)
