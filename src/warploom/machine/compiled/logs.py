"""Allocates the log of a recorded launch, and reads its regions (`abi.log`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.abi.log import (
    TABLE_SLOTS,
    LogAccess,
    LogEntry,
    LogGuard,
    LogHead,
    LogRegion,
    ScatteredRow,
)
from warploom.machine.launch import Launch
from warploom.simt.warp_table import NONE

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
        instructions of each are recorded. If `blocks` is given, only warps of these blocks are
        (numbers that no block has are ignored); the others get the log number NONE and count in
        `left_warps`. Regions have space for `warps * steps` entries, at most MOST_ENTRIES; those of
        scattered addresses and of control words have a fixed size."""
        launched = launch.blocks * launch.warps_per_block
        entries = min(MOST_ENTRIES, max(1, warps * steps))
        sizes = {
            "entries": (entries, LogEntry.WORDS),
            "guards": (entries, LogGuard.WORDS),
            "accesses": (entries, LogAccess.WORDS),
            "scattered": (MOST_SCATTERED, ScatteredRow.WORDS),
            "controls": (MOST_CONTROL_WORDS, 1),
        }
        offset = LogHead.WORDS + TABLE_SLOTS
        total = offset + sum(rows * width for rows, width in sizes.values()) + 2 * launched
        log = cls(np.zeros(total, np.int64))
        head = log.head
        for name, (rows, width) in sizes.items():
            region: LogRegion = getattr(head, name)
            region.capacity, region.start = rows, offset
            offset += rows * width
        head.table_at, head.current = LogHead.WORDS, NONE
        head.warp_capacity, head.step_capacity = warps, steps
        head.numbers_at, head.steps_at = offset, offset + launched
        if blocks is not None:
            excluded = np.ones(launch.blocks, bool)
            excluded[[block for block in blocks if 0 <= block < launch.blocks]] = False
            # Warps of other blocks have the number NONE, with which compiled code records nothing.
            log.numbers(launch)[np.repeat(excluded, launch.warps_per_block)] = NONE
            head.left_warps = int(excluded.sum()) * launch.warps_per_block
        return log

    @property
    def head(self) -> LogHead:
        """Returns the header, as a view of the log's first words."""
        return LogHead(self.data, 0)

    def rows(self, region: LogRegion, width: int) -> Words:
        """Returns a view of the rows of a region that were written, shape (rows, width)."""
        end = region.start + region.count * width
        return self.data[region.start : end].reshape(region.count, width)

    def numbers(self, launch: Launch) -> Words:
        """Returns a view of the log numbers of warps: for each warp of the launch, one more than
        its number in the log, 0 before it has one, NONE if it is not to be recorded."""
        return self.data[self.head.numbers_at :][: launch.blocks * launch.warps_per_block]
