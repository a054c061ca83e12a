"""The log of a launch of recording code: its room, and the regions in it (`abi.log`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.abi import log as words
from warploom.machine.launch import Launch
from warploom.simt import warp_table

Words = npt.NDArray[np.int64]

MOST_ENTRIES = 1 << 22
MOST_CONTROL_WORDS = 1 << 24
MOST_SCATTERED = 1 << 19
"""How much there is room for; memory that is not written is not taken."""


@dataclass(frozen=True)
class Log:
    """The log that a recorded launch writes, and how its warps are numbered."""

    data: Words

    @classmethod
    def empty(
        cls, launch: Launch, *, warps: int, steps: int, blocks: Collection[int] | None
    ) -> Log:
        """Return room for so many warps and so many steps of each; of `blocks`, where they are
        chosen."""
        launched = launch.blocks * launch.warps_per_block
        entries = min(MOST_ENTRIES, max(1, warps * steps))
        sizes = {
            (words.ENTRY_CAPACITY, words.ENTRIES_AT): (entries, words.ENTRY_WORDS),
            (words.GUARD_CAPACITY, words.GUARDS_AT): (entries, words.GUARD_WORDS),
            (words.ACCESS_CAPACITY, words.ACCESSES_AT): (entries, words.ACCESS_WORDS),
            (words.SCATTERED_CAPACITY, words.SCATTERED_AT): (MOST_SCATTERED, words.SCATTERED_WORDS),
            (words.CONTROL_CAPACITY, words.CONTROLS_AT): (MOST_CONTROL_WORDS, 1),
            (words.WARP_CAPACITY, words.NUMBERS_AT): (launched, 1),
            (words.STEP_CAPACITY, words.STEPS_AT): (launched, 1),
        }
        total = words.HEAD_WORDS + words.KNOWN + sum(rows * width for rows, width in sizes.values())
        data = np.zeros(total, np.int64)
        at = words.HEAD_WORDS + words.KNOWN
        data[words.KNOWN_AT] = words.HEAD_WORDS
        for (capacity, place), (rows, width) in sizes.items():
            data[capacity], data[place] = rows, at
            at += rows * width
        data[words.WARP_CAPACITY], data[words.STEP_CAPACITY] = warps, steps
        data[words.CURRENT] = warp_table.NONE
        made = cls(data)
        if blocks is not None:
            others = np.ones(launch.blocks, bool)
            others[[block for block in blocks if 0 <= block < launch.blocks]] = False
            made.numbers(launch)[np.repeat(others, launch.warps_per_block)] = warp_table.NONE
            data[words.LEFT_WARPS] = int(others.sum()) * launch.warps_per_block
        return made

    def rows(self, count: int, place: int, width: int) -> Words:
        """Return the rows of a region that were written."""
        start, rows = int(self.data[place]), int(self.data[count])
        return self.data[start : start + rows * width].reshape(rows, width)

    def region(self, place: int, length: int) -> Words:
        """Return so many words of a region."""
        return self.data[int(self.data[place]) :][:length]

    def numbers(self, launch: Launch) -> Words:
        """Return, by warp of the launch, one more than its number in the log."""
        return self.region(words.NUMBERS_AT, launch.blocks * launch.warps_per_block)
