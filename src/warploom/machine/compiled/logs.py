"""Allocates the log of a recorded launch, and reads its regions (`abi.log`)."""

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
"""The most entries (words, for control) of the log's regions. The system commits no memory for
pages that are never written."""


@dataclass(frozen=True)
class Log:
    """The log that a recorded launch writes: a header of capacities and offsets, then the
    regions."""

    data: Words

    @classmethod
    def empty(
        cls, launch: Launch, *, warps: int, steps: int, blocks: Collection[int] | None
    ) -> Log:
        """Returns an empty log for a launch, of which the first `warps` warps and `steps`
        instructions of each are recorded, and only warps of `blocks` if that is given (numbers that
        no block has are ignored): the others get the log number NONE and count in LEFT_WARPS.
        Regions have space for `warps * steps` entries, at most MOST_ENTRIES; those of scattered
        addresses and of control words have a fixed size."""
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
        offset = words.HEAD_WORDS + words.KNOWN
        data[words.KNOWN_AT] = words.HEAD_WORDS
        for (capacity, start_word), (rows, width) in sizes.items():
            data[capacity], data[start_word] = rows, offset
            offset += rows * width
        # These two regions have a word for every launched warp; their capacities are the limits.
        data[words.WARP_CAPACITY], data[words.STEP_CAPACITY] = warps, steps
        data[words.CURRENT] = warp_table.NONE
        log = cls(data)
        if blocks is not None:
            excluded = np.ones(launch.blocks, bool)
            excluded[[block for block in blocks if 0 <= block < launch.blocks]] = False
            # Warps of other blocks have the number NONE, with which compiled code records nothing.
            log.numbers(launch)[np.repeat(excluded, launch.warps_per_block)] = warp_table.NONE
            data[words.LEFT_WARPS] = int(excluded.sum()) * launch.warps_per_block
        return log

    def rows(self, count: int, start_word: int, width: int) -> Words:
        """Returns a view of the rows of a region that were written, shape (rows, width); `count`
        and `start_word` are the indices of the header words with their number and with the region's
        offset."""
        start, rows = int(self.data[start_word]), int(self.data[count])
        return self.data[start : start + rows * width].reshape(rows, width)

    def region(self, start_word: int, length: int) -> Words:
        """Returns a view of the first `length` words of the region whose offset is in header word
        `start_word`."""
        return self.data[int(self.data[start_word]) :][:length]

    def numbers(self, launch: Launch) -> Words:
        """Returns a view of the log numbers of warps: for each warp of the launch, one more than
        its number in the log, 0 before it has one, NONE if it is not to be recorded."""
        return self.region(words.NUMBERS_AT, launch.blocks * launch.warps_per_block)
