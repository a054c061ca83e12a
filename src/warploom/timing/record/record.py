"""Defines the record of a launch: the paths and accesses of its warps, which the model of time
replays.

Most warps of a kernel follow the same path and access memory in the same patterns, from base
addresses of their own. So the path of a warp is stored once, as a *stream*: its basic blocks, and
its accesses, each as a pattern and the distance from the first access of the same instruction (a
*site*). A warp is the number of its stream and the base addresses of its sites. For saxpy, with two
loads and a store, that is one stream of three accesses, and for each warp four words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from warploom.machine.launch import Launch
from warploom.timing.record.patterns import PatternTable
from warploom.timing.records import StreamEntry, TimedAccess

Words = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Record:
    """Holds the warps of the first `blocks` blocks of a launch, in order, and their streams.

    - `streams`: a `WarpStream` in each row.
    - `entries`: a `StreamEntry` in each row. A basic block b at whose barrier only a part of a
      warp's lanes arrives, before the others, has the number b plus the number of basic blocks
      (`timing.record.spins`).
    - `accesses`: a `TimedAccess` in each row. Accesses of an entry are in the order of the program
      or, for a replay of PTX, in the order of issue (`in_order`).
    - `warps`: a `TimedWarp` in each row.
    """

    launch: Launch
    blocks: int
    streams: Words
    entries: Words
    accesses: Words
    warps: Words
    patterns: PatternTable
    poll_counts: Words
    """By warp, how often it polled memory for other warps (`timing.record.spins`)."""
    bulk: npt.NDArray[np.bool_]
    """By PTX instruction, whether the Tensor Memory Accelerator carries it out."""
    copies: bool
    """True if the Tensor Memory Accelerator copied anything."""
    masks: Words | None = None
    """By entry, the active lanes, where they were recorded."""
    predicted: int = 0
    """How many of the blocks, the last ones, were not recorded but predicted
    (`timing.record.predicted`)."""
    placement: Words | None = None
    """By block of the launch, the SM that `%smid` showed it; None if the kernel does not read
    that."""
    offsets: Offsets | None = None
    """By recorded warp and site, shape (warps, sites), the bytes between the base address, which is
    a multiple of `patterns.unit`, and the address of the first access; None where this is not
    recorded."""

    @property
    def phases(self) -> int:
        """Returns the most phases of mbarriers with arrivals that a block has; 0 if none."""
        return int(self.accesses[:, TimedAccess.phase_id].max(initial=0))

    @property
    def phase_accesses(self) -> int:
        """Returns how many accesses of the streams arrive at phases of mbarriers, or wait for
        them."""
        return int(np.count_nonzero(self.accesses[:, TimedAccess.phase_id]))

    @property
    def sampled(self) -> bool:
        """Returns whether only a part of the launch is recorded."""
        return self.blocks < self.launch.blocks

    def in_order(self, order: list[list[int]]) -> Record:
        """Returns the record with the accesses of each entry sorted by the order in which their
        instructions issue; `order` has, by basic block, the indices of its instructions in that
        order (`order.issue_order`). Accesses of one instruction stay in order."""
        issued = np.array([index for block in order for index in block], np.int64)
        position = np.zeros(1 + issued.max(initial=0), np.int64)
        position[issued] = np.arange(len(issued))
        first_accesses, numbers = self.entries[:, StreamEntry.access], np.arange(len(self.accesses))
        entries_of = np.searchsorted(first_accesses, numbers, side="right")
        permutation = np.lexsort((position[self.accesses[:, TimedAccess.instruction]], entries_of))
        return replace(self, accesses=self.accesses[permutation])

    @property
    def nbytes(self) -> int:
        """Returns the bytes of its streams, entries, accesses and warps."""
        return sum(a.nbytes for a in (self.streams, self.entries, self.accesses, self.warps))
