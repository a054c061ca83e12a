"""Records the work of a device while a timeline of it is taken: launches and copies in the order in
which the host issued them, with what orders them among streams."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warploom.core.errors import Dim3
from warploom.core.lazy import cached_property
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import find_timing
from warploom.host.arguments import Arguments
from warploom.host.loaded import LoadedKernel
from warploom.host.run import Run
from warploom.sanitize.stream_order import HOST, IssuedWork, StreamOrder
from warploom.timing.timeline.demands import copy_demand, launch_demand, limits_of
from warploom.timing.timeline.schedule import schedule
from warploom.timing.timeline.work import Demand, Engine, ScheduledWork, TimelineWork


@dataclass(frozen=True)
class Copy:
    """Describes a copy of `size` bytes."""

    engine: Engine
    size: int


REPLAYED = 8
"""Launches of a kernel in one shape that are replayed; further ones get the mean of their times, so
that a program of thousands of launches needs neither their records nor their replays."""

Shape = tuple[LoadedKernel, Dim3, Dim3]
"""A kernel, its grid and its block."""


@dataclass(frozen=True)
class RepeatedLaunch:
    """Stands for a launch beyond the first REPLAYED of its shape."""

    shape: Shape


@dataclass(frozen=True)
class IssuedLaunch:
    """Holds the places of a launch in its stream: those of the copies of its host arrays to the
    device and back, and its own."""

    before: tuple[IssuedWork, Copy] | None
    launch: IssuedWork
    after: tuple[IssuedWork, Copy] | None

    @classmethod
    def of(cls, order: StreamOrder, stream: Hashable, arguments: Arguments) -> IssuedLaunch:
        """Issues a launch with these arguments to a stream."""
        to_device, to_host = arguments.copied_bytes()

        def copy(engine: Engine, size: int) -> tuple[IssuedWork, Copy] | None:
            return (order.issue(stream), Copy(engine, size)) if size else None

        before = copy(Engine.TO_DEVICE, to_device)
        launch = order.issue(stream)
        return cls(before, launch, copy(Engine.TO_HOST, to_host))

    @property
    def last(self) -> IssuedWork:
        """Returns the last of them."""
        return self.launch if self.after is None else self.after[0]


Work = Run | RepeatedLaunch | Copy


@dataclass(eq=False)
class Timeline:
    """Holds the launches and copies of a device in the order of their issue, and models when each
    runs. It grows while its context manager (`Device.timeline`) is open. Every time is modelled;
    that of the host between its calls is not, and counts as none."""

    spec: DeviceSpec
    order: StreamOrder
    _works: list[tuple[IssuedWork, Work]] = field(default_factory=list[tuple[IssuedWork, "Work"]])
    _launches: dict[Shape, list[Run]] = field(default_factory=dict[Shape, list[Run]])

    @cached_property
    def works(self) -> tuple[ScheduledWork, ...]:
        """Returns each launch and copy with its beginning and end, in seconds from the first
        beginning; in the order of issue. Replays the first REPLAYED launches of each shape, once.
        Raises WarploomError for a launch that cannot be timed."""
        timing = find_timing(self.spec)
        demands = {
            shape: [launch_demand(run.time()) for run in runs]
            for shape, runs in self._launches.items()
        }
        # Several threads of the host may add works; a work knows those issued before it.
        in_order = sorted(self._works, key=lambda item: item[0].moment)
        works = [self._described(issued, work, demands) for issued, work in in_order]
        return schedule(works, limits_of(self.spec, timing))

    @property
    def seconds(self) -> float:
        """Returns when the last work ends, in seconds."""
        return max((work.end for work in self.works), default=0.0)

    @property
    def seconds_one_by_one(self) -> float:
        """Returns the sum of the works' times alone: what they would take without overlap."""
        return sum(scheduled.work.demand.seconds for scheduled in self.works)

    def report(self) -> str:
        """Returns the timeline as text: a line for each work, with a bar."""
        from warploom.report.timeline import timeline_text

        return timeline_text(self.spec.title, self.works)

    def page(self) -> str:
        """Returns the timeline as an HTML page: bars for each stream, the kernels that are
        resident, by the share of block slots that each has, and their blocks on each SM."""
        from warploom.report.timeline_page import timeline_page

        return timeline_page(self.spec.title, self.works, self.spec.sms)

    def add_launch(self, issued: IssuedLaunch, run: Run) -> None:
        """Adds a launch, which may still wait in its stream, and the copies of its arguments."""
        shape = run.kernel, run.launch.grid, run.launch.block
        runs = self._launches.setdefault(shape, [])
        launch: Run | RepeatedLaunch = RepeatedLaunch(shape)
        if len(runs) < REPLAYED:
            runs.append(run)
            launch = run
        for work in (issued.before, (issued.launch, launch), issued.after):
            if work is not None:
                self._add(*work)

    def add_copy(self, issued: IssuedWork, copy: Copy) -> None:
        """Adds a copy that has been made."""
        self._add(issued, copy)

    def copied_by_host(self, address: int, size: int, writes: bool) -> None:
        """Adds a copy of a buffer for which the host waits."""
        engine = Engine.TO_DEVICE if writes else Engine.TO_HOST
        self.add_copy(self.order.issue(HOST), Copy(engine, size))

    def _add(self, issued: IssuedWork, work: Work) -> None:
        """Adds work; `works` are scheduled anew when they are next read."""
        self.__dict__.pop("works", None)
        self._works.append((issued, work))

    def _described(
        self, issued: IssuedWork, work: Work, demands: Mapping[Shape, Sequence[Demand]]
    ) -> TimelineWork:
        """Returns a work with its demand; `demands` are those of the launches that are replayed."""
        if isinstance(work, Run):
            shape = work.kernel, work.launch.grid, work.launch.block
            demand = demands[shape][self._launches[shape].index(work)]
            return TimelineWork(work.kernel.program.title, issued, Engine.SMS, demand)
        if isinstance(work, RepeatedLaunch):
            replayed = demands[work.shape]
            seconds = sum(demand.seconds for demand in replayed) / len(replayed)
            demand = replace(replayed[-1], seconds=seconds)
            name = f"{work.shape[0].program.title}, as the first {REPLAYED}"
            return TimelineWork(name, issued, Engine.SMS, demand)
        demand = copy_demand(work.engine, work.size, find_timing(self.spec))
        name = f"{work.engine.value}, {work.size:,} bytes"
        return TimelineWork(name, issued, work.engine, demand)
