"""Points of a launch from which it can be run again, and the intervals between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.debug.engines import State
from warploom.machine.memory.snapshots import MemorySnapshot

Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Checkpoint:
    """A point of a launch: its position, how many texts it has printed, memory, the counts since
    the start of the launch, and what an engine needs to go on from here."""

    position: int
    prints: int
    memory: MemorySnapshot
    counts: Words
    state: State


@dataclass(frozen=True)
class Interval:
    """A part of a launch from a checkpoint on, up to another; or to where it stops with an error,
    or as far as it goes."""

    start: Checkpoint
    end: Checkpoint | None

    def may_run(self, blocks: range | None) -> bool:
        """Returns whether one of some blocks of the grid may run in it."""
        own = self.start.state.blocks, None if self.end is None else self.end.state.blocks
        if blocks is None or own[0] is None or (self.end is not None and own[1] is None):
            return True
        last = None if own[1] is None else own[1].stop
        return blocks.stop > own[0].start and (last is None or blocks.start < last)

    @property
    def length(self) -> int | None:
        """Returns the warp instructions in it, None where the number is unknown."""
        return None if self.end is None else self.end.position - self.start.position

    @property
    def counts(self) -> Words | None:
        """Returns the counts of what is executed in it, None where they are not known."""
        return None if self.end is None else self.end.counts - self.start.counts
