"""Records the work of a device while a timeline of it is taken: launches and copies in the order in
which the host issued them, with what orders them among streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

from warploom.core.errors import Dim3
from warploom.core.lazy import cached_property
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import find_timing
from warploom.host.arguments import Arguments
from warploom.host.loaded import LoadedKernel
from warploom.host.repeated_launches import LaunchesOfShape, RecordedLaunch, inputs_of
from warploom.host.run import Run
from warploom.machine.launch import Launch
from warploom.sanitize.stream_order import HOST, IssuedWork, StreamOrder
from warploom.timing.timeline.demands import copy_demand, limits_of
from warploom.timing.timeline.schedule import schedule
from warploom.timing.timeline.work import Engine, ScheduledWork, TimelineWork


@dataclass(frozen=True)
class Copy:
    """Describes a copy of `size` bytes."""

    engine: Engine
    size: int


Shape = tuple[LoadedKernel, Dim3, Dim3]
"""A kernel, its grid and its block."""


@dataclass(frozen=True)
class TimedLaunch:
    """Describes a launch by its shape, and itself if it was recorded for the timeline, else a
    recorded launch that it equals; None if it equals none (`repeated_launches`)."""

    shape: Shape
    recorded: RecordedLaunch | None
    is_recorded: bool


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


Work = TimedLaunch | Copy


@dataclass(eq=False)
class Timeline:
    """Holds the launches and copies of a device in the order of their issue, and models when each
    runs. It grows while its context manager (`Device.timeline`) is open. Every time is modelled;
    that of the host between its calls is not, and counts as none."""

    spec: DeviceSpec
    order: StreamOrder
    _works: list[tuple[IssuedWork, Work]] = field(default_factory=list[tuple[IssuedWork, "Work"]])
    _launches: defaultdict[Shape, LaunchesOfShape] = field(
        default_factory=lambda: defaultdict(LaunchesOfShape)
    )

    @cached_property
    def works(self) -> tuple[ScheduledWork, ...]:
        """Returns each launch and copy with its beginning and end, in seconds from the first
        beginning; in the order of issue. Replays recorded launches, of equal ones the first.
        Raises WarploomError for a launch that cannot be timed."""
        timing = find_timing(self.spec)
        # Several threads of the host may add works; a work knows those issued before it.
        in_order = sorted(self._works, key=lambda item: item[0].moment)
        works = [self._described(issued, work) for issued, work in in_order]
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

    def needs_record(self, kernel: LoadedKernel, launch: Launch, arguments: Arguments) -> bool:
        """Returns whether a launch is to be recorded for the timeline."""
        shape, inputs = _described_launch(kernel, launch, arguments)
        return self._launches[shape].needs(inputs)

    def add_launch(self, issued: IssuedLaunch, arguments: Arguments, run: Run) -> None:
        """Adds a launch, which may still wait in its stream, and the copies of its arguments."""
        shape, inputs = _described_launch(run.kernel, run.launch, arguments)
        launches = self._launches[shape]
        if launches.needs(inputs) and not (run.done and run.record is None):
            recorded = RecordedLaunch(run, inputs)
            launches.add(recorded)
            launch = TimedLaunch(shape, recorded, is_recorded=True)
        else:
            launch = TimedLaunch(shape, launches.equal_to(inputs, run), is_recorded=False)
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

    def _described(self, issued: IssuedWork, work: Work) -> TimelineWork:
        """Returns a work with its demand."""
        if isinstance(work, TimedLaunch):
            launches, title = self._launches[work.shape], work.shape[0].program.title
            if work.recorded is None:
                demand, number = launches.mean_demand()
                basis = f"mean of the first {number}"
                return TimelineWork(title, issued, Engine.SMS, demand, basis)
            demand, replayed = launches.demand_of(work.recorded)
            basis = "" if replayed and work.is_recorded else "same as an equal launch"
            return TimelineWork(title, issued, Engine.SMS, demand, basis)
        demand = copy_demand(work.engine, work.size, find_timing(self.spec))
        name = f"{work.engine.value}, {work.size:,} bytes"
        return TimelineWork(name, issued, work.engine, demand)


def _described_launch(
    kernel: LoadedKernel, launch: Launch, arguments: Arguments
) -> tuple[Shape, Hashable]:
    """Returns the shape of a launch, and its arguments (`inputs_of`)."""
    inputs = inputs_of(arguments, kernel.context.memory), launch.dynamic_shared_bytes
    return (kernel, launch.grid, launch.block), inputs
