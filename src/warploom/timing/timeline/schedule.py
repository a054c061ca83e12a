"""Computes when the works of streams begin and end on a device.

Works begin once those that the order of streams puts before them have ended. Copies to and from the
host are executed one at a time by the copy engines. The blocks of kernels go to free block slots:
those of the kernel that began first before those of the next, which so fills the slots that the
first leaves, at the latest those that its last blocks free. A kernel with half of the slots that it
has alone needs twice the time; where kernels together need more than a throughput of the device
(issue, DRAM, a unit ...), all are slowed down in proportion.

Two kernels of 66 blocks on an H100, each of 10 us, one block per SM: both end after 10 us. With 132
blocks each the second begins when the first ends, after 10 us.

Sources: CUDA C++ Programming Guide, "Asynchronous Concurrent Execution"; Hyper-Q, since compute
capability 3.5: Kepler GK110 whitepaper; that leftover slots go to the next kernel: Xu et al.,
"Warped-Slicer", ISCA 2016. Slowing down in proportion is an estimate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from warploom.timing.timeline.work import Engine, ScheduledWork, TimelineWork

EPSILON = 1e-9
"""Progress and shares that differ by less are equal: sums of floats are inexact."""


@dataclass(frozen=True)
class DeviceLimits:
    """Holds what limits the overlap on a device: the kernels that it runs at a time, its copy
    engines, and whether all streams feed one queue of kernels (before compute capability 3.5), in
    which a kernel waits until those issued before it have begun."""

    resident_grids: int
    copy_engines: int
    one_queue: bool


def schedule(works: Sequence[TimelineWork], limits: DeviceLimits) -> tuple[ScheduledWork, ...]:
    """Returns when each work runs, in the order given, which is that of their issue."""
    return _Schedule(works, limits).run()


def dependencies(works: Sequence[TimelineWork]) -> list[list[int]]:
    """Returns for each work the indices of those that end before it begins: in each stream the last
    one that it knows of (`IssuedWork.clock`)."""
    all_predecessors: list[list[int]] = []
    by_stream: defaultdict[object, list[int]] = defaultdict(list)
    for index, work in enumerate(works):
        predecessors: list[int] = []
        for stream, number in work.issued.clock.items():
            earlier = by_stream[stream]
            position = bisect_right(earlier, number, key=lambda i: works[i].issued.number)
            predecessors += earlier[max(0, position - 1) : position]
        all_predecessors.append(predecessors)
        by_stream[work.issued.stream].append(index)
    return all_predecessors


class _Schedule:
    """Runs the works step by step; in a step the same works run at the same rates."""

    def __init__(self, works: Sequence[TimelineWork], limits: DeviceLimits) -> None:
        """Begins with all works waiting, at the time 0."""
        self._works, self._limits = works, limits
        self._after = dependencies(works)
        self._progress = [0.0] * len(works)
        self._begin: dict[int, float] = {}
        self._end: dict[int, float] = {}
        self._slots: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        self._now = 0.0

    def run(self) -> tuple[ScheduledWork, ...]:
        """Runs all works to their end."""
        while len(self._end) < len(self._works):
            self._step()
        return tuple(
            ScheduledWork(work, self._begin[index], self._end[index], tuple(self._slots[index]))
            for index, work in enumerate(self._works)
        )

    def _step(self) -> None:
        """Advances the time by one step, in which the works that run do not change: until one ends,
        or the slots that a kernel occupies change. Stores when works have begun and ended."""
        speeds = self._speeds()
        for index in speeds:
            self._begin.setdefault(index, self._now)
        load: defaultdict[str, float] = defaultdict(float)
        for index, speed in speeds.items():
            for name, use in self._works[index].demand.uses.items():
                load[name] += speed * use
        slowdown = max(1.0, *load.values()) if load else 1.0
        rates = {
            index: speed / slowdown / max(self._works[index].demand.seconds, 1e-12)
            for index, speed in speeds.items()
        }
        step = min((self._next(index) - self._progress[index]) / rates[index] for index in rates)
        self._now += step
        for index, rate in rates.items():
            self._progress[index] += step * rate
            if self._progress[index] >= 1 - EPSILON:
                self._end[index] = self._now

    def _next(self, index: int) -> float:
        """Returns the progress (0 to 1) of a work at which its current part ends."""
        parts = len(self._works[index].demand.shares)
        return (self._part(index) + 1) / parts

    def _part(self, index: int) -> int:
        """Returns the number of the equal part of its time in which a work is (`Demand.shares`), by
        its progress."""
        parts = len(self._works[index].demand.shares)
        return min(int(self._progress[index] * parts + EPSILON), parts - 1)

    def _speeds(self) -> dict[int, float]:
        """Returns the works that run now, each with its speed in relation to that alone."""
        ready = [
            index
            for index in range(len(self._works))
            if index not in self._end
            and all(earlier in self._end for earlier in self._after[index])
        ]
        # Those that have begun come first, in the order in which they did.
        ready.sort(key=lambda index: (self._begin.get(index, self._now), index))
        copies = self._copies(ready)
        kernels = [index for index in ready if self._works[index].engine is Engine.SMS]
        if not self._limits.copy_engines:
            # Nothing runs beside a copy, which waits for kernels that have begun.
            begun = [index for index in kernels if index in self._begin]
            copies, kernels = ([], begun) if begun else (copies, [] if copies else kernels)
        return {**dict.fromkeys(copies, 1.0), **self._kernel_speeds(kernels)}

    def _copies(self, ready: list[int]) -> list[int]:
        """Returns the copies that run: the first for each engine, and those on the device, which
        need none."""
        running: dict[object, int] = {}
        for index in ready:
            engine = self._works[index].engine
            if engine is not Engine.SMS:
                own = engine if self._limits.copy_engines > 1 else "one for both directions"
                running.setdefault(index if engine.is_in_dram else own, index)
        return list(running.values())

    def _kernel_speeds(self, kernels: list[int]) -> dict[int, float]:
        """Returns the kernels that have slots, each with the share that it gets of the slots that
        it would occupy alone."""
        free, speeds = 1.0, dict[int, float]()
        for index in kernels:
            demand = self._works[index].demand
            wanted = max(demand.shares[self._part(index)], demand.block_share)
            begun = self._begin.keys() | speeds.keys()
            if len(speeds) == self._limits.resident_grids or not self._in_turn(index, begun):
                continue
            if free < min(wanted, demand.block_share) - EPSILON or free <= EPSILON:
                continue
            occupied = min(free, wanted)
            speeds[index] = occupied / wanted if wanted else 1.0
            free -= occupied
            slots = self._slots[index]
            if not slots or abs(slots[-1][1] - occupied) > EPSILON:
                slots.append((self._now, occupied))
        return speeds

    def _in_turn(self, kernel: int, begun: set[int]) -> bool:
        """Returns whether a kernel may begin: those issued before it have `begun`, where there is
        one queue."""
        earlier = range(kernel) if self._limits.one_queue else range(0)
        return all(index in begun for index in earlier if self._works[index].engine is Engine.SMS)
