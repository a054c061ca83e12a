"""Chooses which launches of a timeline are recorded and replayed, so that a program of thousands of
launches needs neither the records nor the replays of all.

Launches are *equal* if they are of one kernel, grid and block, and their warps take the same paths
and access memory in the same patterns, wherever their buffers are: they take one time.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from warploom.core.lazy import cached_property
from warploom.host.arguments import Arguments
from warploom.host.run import Run
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.timing import layout as w
from warploom.timing.record.record import Record
from warploom.timing.records import TimedWarp
from warploom.timing.timeline.demands import launch_demand
from warploom.timing.timeline.work import Demand

REPLAYED = 8
"""Launches of a kernel in one shape that are recorded at most; further ones get the mean of their
times."""

SETTLED = 2
"""So many launches with the same arguments that are equal stand for all with these arguments."""

ADDRESS_BYTES = 8


def inputs_of(arguments: Arguments, memory: DeviceMemory) -> Hashable:
    """Returns the arguments of a launch without the addresses of buffers, of which the bytes
    allocated and the position in a line of 128 bytes remain. Arguments in which these differ can
    lead to other paths or transactions."""
    data = bytes(arguments.data)
    found: list[Hashable] = []
    for at in range(0, len(data), ADDRESS_BYTES):
        word = data[at : at + ADDRESS_BYTES]
        address = int.from_bytes(word, "little")
        allocation = memory.find(address) if len(word) == ADDRESS_BYTES else None
        found.append(word if allocation is None else (allocation.size, address % w.LINE_BYTES))
    return tuple(found)


def path_digest(record: Record) -> bytes:
    """Returns a digest that two records share if their warps take the same paths and access memory
    in the same patterns, and the warps of one path do so at the same distances from each other."""
    paths, bases = record.warps[:, TimedWarp.stream], record.warps[:, TimedWarp.WORDS :]
    _, first, of_path = np.unique(paths, return_index=True, return_inverse=True)
    found = blake2b(digest_size=16)
    for part in (
        *(record.streams, record.entries, record.accesses, record.patterns.rows),
        *(record.patterns.lines, record.warps[:, : TimedWarp.WORDS], record.poll_counts),
        bases - bases[first[of_path]],
        *(part for part in (record.offsets, record.placement) if part is not None),
    ):
        found.update(repr(part.shape).encode())
        found.update(np.ascontiguousarray(part).data)
    return found.digest()


def counts_digest(run: Run) -> bytes:
    """Returns a digest of how often each instruction was executed, by warps and by threads."""
    tally, found = run.tally, blake2b(digest_size=16)
    for part in (tally.warps, tally.threads, tally.divergent):
        found.update(np.ascontiguousarray(part).data)
    return found.digest()


@dataclass(eq=False)
class RecordedLaunch:
    """Holds a launch that was recorded, and its arguments (`inputs_of`)."""

    run: Run
    inputs: Hashable

    @cached_property
    def path(self) -> Hashable:
        """Returns what equal launches share; waits for the end of the launch."""
        record = self.run.record
        return id(self) if record is None else path_digest(record)


@dataclass(eq=False)
class LaunchesOfShape:
    """Holds the recorded launches of one kernel, grid and block."""

    recorded: list[RecordedLaunch] = field(default_factory=list[RecordedLaunch])
    _differing: set[Hashable] = field(default_factory=set[Hashable])
    """Arguments with which launches differ, by the data in buffers."""

    def needs(self, inputs: Hashable) -> bool:
        """Returns whether a launch with these arguments is to be recorded: not beyond the first
        REPLAYED, nor if SETTLED launches with the same arguments have ended and are equal, and none
        has differed since."""
        if len(self.recorded) >= REPLAYED:
            return False
        same = self._with(inputs)[:SETTLED]
        return (
            inputs in self._differing
            or len(same) < SETTLED
            or not all(one.run.done for one in same)
            or len({one.path for one in same}) > 1
        )

    def equal_to(self, inputs: Hashable, run: Run) -> RecordedLaunch | None:
        """Returns a recorded launch that equals one with these arguments that was not recorded;
        None if none does: those with the same arguments are not equal themselves, or the launch has
        ended and executed its instructions other times than they."""
        same = self._with(inputs)
        if not same or len({one.path for one in same}) > 1:
            return None
        if run.done and counts_digest(run) != counts_digest(same[0].run):
            self._differing.add(inputs)
            return None
        return same[0]

    def _with(self, inputs: Hashable) -> list[RecordedLaunch]:
        return [one for one in self.recorded if one.inputs == inputs]

    @cached_property
    def demands(self) -> dict[Hashable, Demand]:
        """Returns what the recorded launches need, by `RecordedLaunch.path`; replays one launch for
        each. Raises WarploomError for a launch that cannot be timed."""
        found: dict[Hashable, Demand] = {}
        for one in self.recorded:
            if one.path not in found:
                found[one.path] = launch_demand(one.run.time())
        return found

    def add(self, launch: RecordedLaunch) -> None:
        """Adds a recorded launch."""
        self.__dict__.pop("demands", None)
        self.recorded.append(launch)

    def demand_of(self, launch: RecordedLaunch) -> tuple[Demand, bool]:
        """Returns what a recorded launch needs, and whether it was itself replayed."""
        first = next(one for one in self.recorded if one.path == launch.path)
        return self.demands[launch.path], first is launch

    def mean_demand(self) -> tuple[Demand, int]:
        """Returns the mean of what the recorded launches need, and how many they are."""
        every = [self.demands[one.path] for one in self.recorded]
        seconds = sum(demand.seconds for demand in every) / len(every)
        return replace(every[-1], seconds=seconds), len(every)
