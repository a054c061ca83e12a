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

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from warploom.core.lazy import cached_property
from warploom.isa.kinds import Effect
from warploom.machine.launch import Launch
from warploom.observe import schema
from warploom.program.program import Program
from warploom.simt.block_order import block_at

Numbers = npt.NDArray[np.int64]

NOT_RECORDED = -1
"""Stands for a block that was not recorded."""


@dataclass(frozen=True)
class Residents:
    """Computes the residency of recorded warps (`warps`, with the numbers of their states in
    `states`), whose steps are the columns `steps`."""

    program: Program
    launch: Launch
    warps: Sequence[schema.Warp]
    states: Sequence[schema.State]
    steps: schema.Steps

    @cached_property
    def _warp(self) -> Numbers:
        """Returns the warp of each step."""
        return _column(self.steps.warp)

    @cached_property
    def _instruction(self) -> Numbers:
        """Returns the instruction of each step."""
        return _column(self.steps.instruction)

    @cached_property
    def _state(self) -> Numbers:
        """Returns the number of the state of each step."""
        return _column(self.steps.state)

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
        instruction = int(self._instruction[step])
        exited_before = self.states[int(self._state[step])].off.exited
        size = self.launch.warp_size // 8
        lanes = int.from_bytes(self.steps.executing[step * size : (step + 1) * size], "little")
        exits = self.program.instructions[instruction].operation.has(Effect.ENDS_THREAD)
        return exits and lanes | exited_before == warp.existing

    def _last_steps(self) -> Numbers:
        """Returns the last recorded step of each warp; -1 for none."""
        last = np.full(len(self.warps), -1, np.int64)
        # Steps are in order, so the last of a warp's assignments stays.
        last[self._warp] = np.arange(len(self._warp))
        return last

    def _first_steps(self) -> dict[int, int]:
        """Returns the first recorded step of each recorded block."""
        of_block = np.array([warp.block for warp in self.warps], np.int64)
        blocks, first = np.unique(of_block[self._warp], return_index=True)
        return dict(zip(blocks.tolist(), first.tolist(), strict=True))

    def blocks(self, ended: Sequence[schema.Warp]) -> tuple[schema.BlockResidency, ...]:
        """Returns the residency of the recorded blocks; `ended` are their warps, as `ended_warps`
        returns them. A block without a recorded end is resident to the end of the trace."""
        until: dict[int, int] = {}
        for warp, last in zip(ended, self._last_steps().tolist(), strict=True):
            end = last + 1 if warp.ended else self.steps.count + 1
            until[warp.block] = max(until.get(warp.block, 0), end)
        first, order = self._first_steps(), self._order(until)
        slots, before = self._slots(order, until)
        sms, numbers = self.launch.sms_of_slots(), self._slot_numbers()
        found: list[schema.BlockResidency] = []
        for block, position in order.items():
            since, earlier = 0, before[position]
            if earlier is not None:
                # If the end of the block that frees the slot is not recorded, it was before this.
                since = until.get(earlier, first.get(block, 0))
            sm = int(sms[slots[position]])
            slot = numbers[slots[position]]
            found.append(schema.BlockResidency(block, sm, slot, since, until[block]))
        return tuple(found)

    def _slot_numbers(self) -> list[int]:
        """Returns the number that each slot of the launch has among all of the device's: its own,
        or, where other kernels leave some slots of an SM, the next of that SM."""
        sms, seen = self.launch.sms_of_slots().tolist(), Counter[int]()
        if self.launch.placement is None:
            return list(range(len(sms)))
        numbers: list[int] = []
        for sm in sms:
            numbers.append(sm + self.launch.schedule.sms * seen[sm])
            seen[sm] += 1
        return numbers

    def _order(self, recorded: Mapping[int, int]) -> dict[int, int]:
        """Returns the position of each recorded block in the order in which blocks begin."""
        plan, order = self.launch.schedule.plan(self.launch, self.program), dict[int, int]()
        for position in range(self.launch.blocks):
            block = block_at(plan, position)
            if block in recorded:
                order[block] = position
                if len(order) == len(recorded):
                    break
        return order

    def _slots(
        self, order: Mapping[int, int], until: Mapping[int, int]
    ) -> tuple[dict[int, int], dict[int, int | None]]:
        """Returns, by the position of each recorded block in the order, its slot and the block that
        had it before, None for none. `until` are the recorded ends, by block: if it has those of
        all blocks, they decide; else blocks end in order."""
        size, count = self.launch.cluster_blocks, self.launch.available_slots
        block_of = {position: block for block, position in order.items()}
        whole = len(until) == self.launch.blocks and max(until.values()) <= self.steps.count
        slots: dict[int, int] = {}
        before: dict[int, int | None] = {}
        ends: list[int] = []
        if whole:
            by_end = {
                cluster: max(until[block_of[cluster * size + rank]] for rank in range(size))
                for cluster in range(len(order) // size)
            }
            ends = sorted(by_end, key=lambda cluster: by_end[cluster])
        for position in block_of:
            earlier = position - count
            if earlier < 0:
                slots[position], before[position] = position, None
            elif whole:
                earlier = ends[earlier // size] * size + position % size
                slots[position], before[position] = slots[earlier], block_of[earlier]
            else:
                slots[position] = position % count
                before[position] = block_of.get(earlier, NOT_RECORDED)
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
