"""Holds the software GPU of this process and the runs of its kernels, and reports them when the
process ends.

The driver library and `warploom.cuda` share it.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warploom.clients.settings import Settings
from warploom.core.errors import Dim3, WarploomError
from warploom.core.lazy import cached_property
from warploom.core.mutex import Mutex
from warploom.core.output_files import write_text
from warploom.devices.catalog import DEFAULT
from warploom.host.device import Device
from warploom.host.launch_options import LaunchOptions
from warploom.host.loaded import LoadedKernel
from warploom.host.programs.names import source_name
from warploom.host.run import Execution, Run
from warploom.report.export import as_json
from warploom.sanitize.findings import ERROR, LEAK, Finding
from warploom.sanitize.leaks import LiveAllocation, alive_on_heap, leaks

if TYPE_CHECKING:
    from warploom.host.timelines import Timeline

BATCH = 4096
"""Counts of launches are kept for so many instructions, then added up."""

LONGEST = 5
"""So many operators of the host have a line in the short report."""


@dataclass
class KernelRuns:
    """All launches of a kernel in one shape: how many, and their runs, the first of which stands
    for those that were added up."""

    kernel: LoadedKernel
    grid: Dim3
    block: Dim3
    launches: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    runs: list[Run] = field(default_factory=list[Run])

    @cached_property
    def batch(self) -> int:
        """Returns how many launches are kept: an instruction has some kilobytes of counts at
        most."""
        return max(1, BATCH // max(16, len(self.kernel.program.instructions)))

    def add(self, run: Run) -> None:
        """Counts one more launch."""
        self.launches += 1
        self.seconds += run.seconds
        self.compile_seconds += run.compile_seconds
        self.runs.append(run)
        if len(self.runs) > self.batch:
            self.total()

    def total(self) -> Run:
        """Returns a run that stands for all launches together: counters are sums."""
        if len(self.runs) > 1:
            from warploom.machine.compiled.counted import combined_tally  # imports the compiler

            first = self.runs[0]
            tally = combined_tally([run.counted for run in self.runs])
            done = Execution(lambda: tally, self.seconds, self.compile_seconds)
            self.runs = [Run(first.kernel, first.launch, done)]
        return self.runs[0]


@dataclass
class HostWork:
    """Calls of an operator that the host computed and no kernel: how many, and their seconds."""

    calls: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Counts one more call."""
        self.calls += 1
        self.seconds += seconds


HOST_ACCESSES = (
    "Note: the host and kernels share memory (managed or mapped). In Warploom, a launch has "
    "finished when the call returns, so the host always sees what the kernels wrote. On a GPU, "
    "the host must first wait for the kernels (cudaDeviceSynchronize, an event or a stream). "
    "Warploom does not check whether the host waits."
)
"""Printed with the findings: the host's own accesses are not seen."""

EVENT_TIMES = (
    "event times are simulation times on this computer, not GPU times: use `warploom time` to "
    "model GPU times"
)


class Session:
    """One process's device and the runs on it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.capture = settings.make_capture()
        self.kernels: dict[tuple[int, Dim3, Dim3], KernelRuns] = {}
        self.host_work: defaultdict[str, HostWork] = defaultdict(HostWork)
        """Operators of a framework that the host computed, by name."""
        self.order: tuple[str, int] | None = None
        """The schedule and the seed of the launches from now on, where not the device's."""
        self.has_event_times = False
        """The program has asked for the time between two events."""
        self.findings: list[Finding] = []
        """What the sanitizers of launches found."""
        self.alive: Callable[[], list[LiveAllocation]] = list
        """Lists the memory that the program has not freed."""
        self._lock = Mutex("record a launch")
        self.if_nothing_ran = ""
        """The likely reason, reported at the end, where the process never launched a kernel."""
        self.launched = False
        self.shares_memory = False
        """Whether the host and kernels may access the same memory: managed or mapped."""
        self._reported = False
        self.at_report: list[Callable[[], object]] = []
        """Called before findings are reported."""
        self.timeline: Timeline | None = None
        """The timeline of all work, where the settings ask for one."""
        self._contexts = ExitStack()

    @cached_property
    def device(self) -> Device:
        """Returns the device, made when it is first asked for."""
        if self.settings.debug:
            from warploom.debug.terminal.face import attach_in_program

            attach_in_program(self.settings.debug)
        made = self.settings.make_device(self.record, self.capture)
        if "race" in self.settings.tools:
            made.streams.findings = self.findings
        if self.settings.timeline:
            from warploom.timing.engine.compiled import functions as load_engine

            self.timeline = self._contexts.enter_context(made.timeline())
            # Launches are replayed when the process ends, where LLVM may be finalized already.
            load_engine()
        return made

    @contextmanager
    def compiling(self) -> Generator[None]:
        """While one of NVIDIA's compilers works: they ask for the driver's undocumented tables as a
        statically linked runtime does, but do without them."""
        saved = self.if_nothing_ran
        try:
            yield
        finally:
            self.if_nothing_ran = saved

    def launch_options(
        self, *, cooperative: bool, cluster: Dim3 | None = None, programmatic: bool = False
    ) -> LaunchOptions:
        """Returns the options of a launch of this process beside its arguments."""
        options: LaunchOptions = {
            "cooperative": cooperative,
            "cluster_dims": cluster,
            "programmatic": programmatic,
        }
        if self.order is not None:
            options["schedule"], options["seed"] = self.order
        return options

    def record(self, run: Run) -> None:
        """Records what a launch did."""
        launch = run.launch
        key = (id(run.kernel), launch.grid, launch.block)
        with self._lock:
            if key not in self.kernels:
                self.kernels[key] = KernelRuns(run.kernel, launch.grid, launch.block)
            self.kernels[key].add(run)
            self.findings += run.findings

    @property
    def reports(self) -> bool:
        """True if the settings want a report, captured launches or a timeline at the end."""
        settings = self.settings
        return settings.report != "none" or bool(
            settings.json or settings.capture or settings.timeline
        )

    def report_once(self) -> None:
        """Writes the report, once, to where the settings say."""
        with self._lock:
            if self._reported:
                return
            self._reported = True
        if self.if_nothing_ran and not self.launched:
            print(f"warploom: no kernel ran. {self.if_nothing_ran}", file=sys.stderr)
        if self.settings.report != "none" and (self.kernels or self.host_work):
            _flush_output()
            print(self.text(self.settings.report), file=sys.stderr, end="", flush=True)
        if self.timeline is not None:
            print(_timeline_text(self.timeline), file=sys.stderr, end="", flush=True)
            if self.settings.timeline_page:
                _write_timeline(self.timeline, self.settings.timeline_page)
        if self.settings.json:
            name = self.settings.json.replace("%p", str(os.getpid()))
            write_text(name, json.dumps(self.data(), indent=2))
        if self.capture is not None:
            self.capture.write()
        if self.settings.sanitize:
            self._report_findings()

    def _report_findings(self) -> None:
        """Writes what sanitizers found to standard error; ends the process where that is an error
        and the settings say so."""
        from warploom.sanitize.summary import PREFIX, summarised

        settings = self.settings
        for called in self.at_report:
            called()
        file = Path(settings.sanitize_suppress) if settings.sanitize_suppress else None
        findings = self.findings
        if LEAK in settings.tools and "device" in self.__dict__:
            findings = [*findings, *leaks([*alive_on_heap(self.device.memory), *self.alive()])]
        summary = summarised(findings, file, settings.sanitize_limit)
        sys.stdout.flush()
        if "race" in settings.tools and self.shares_memory and self.launched:
            print(PREFIX + HOST_ACCESSES, file=sys.stderr)
        print(summary.text(), file=sys.stderr, end="", flush=True)
        if settings.sanitize_sarif:
            write_text(settings.sanitize_sarif, summary.sarif())
        if summary.number(ERROR) and settings.sanitize_exitcode:
            os._exit(settings.sanitize_exitcode)

    def text(self, report: str) -> str:
        """Returns the report: a line for each kernel, or all sections of each ("full")."""
        if report == "full":
            sections = [
                f"{_launches(one)}\n{one.total().report()}" for one in self.kernels.values()
            ]
            notes = [*self.host_lines(len(self.host_work)), *self._time_lines()]
            if notes:
                sections.append("\n".join([*notes, ""]))
            return "\n".join(sections)
        title = f"Warploom ran {_counted(len(self.kernels), 'kernel')} on {self.device.spec.title}:"
        return "\n".join([title, *(f"  {line}" for line in self.lines())]) + "\n"

    def lines(self) -> list[str]:
        """Returns a line for each kernel, then those of the work that the host did."""
        return [*self._kernel_lines(), *self.host_lines(LONGEST), *self._time_lines()]

    def _time_lines(self) -> list[str]:
        """Returns a line on times of events, if the program has used them."""
        return [EVENT_TIMES] if self.has_event_times else []

    def host_lines(self, most: int) -> list[str]:
        """Returns lines on the operators that the host computed: all of them together, then the
        `most` that took longest."""
        if not self.host_work:
            return []
        calls = sum(work.calls for work in self.host_work.values())
        seconds = sum(work.seconds for work in self.host_work.values())
        longest = sorted(self.host_work.items(), key=lambda item: -item[1].seconds)
        return [
            f"on the host, not simulated: {_counted(calls, 'call')} to"
            f" {_counted(len(longest), 'operator')}, {seconds:.3f} s",
            *(
                f"  {name}, {_counted(work.calls, 'call')}, {work.seconds:.3f} s"
                for name, work in longest[:most]
            ),
        ]

    def _kernel_lines(self) -> list[str]:
        lines: list[str] = []
        for one in self.kernels.values():
            counters = one.total().counters
            sectors = counters.global_load_sectors + counters.global_store_sectors
            lines.append(
                f"{_launches(one)}: {counters.warp_instructions:,} warp instructions,"
                f" {sectors:,} global sectors,"
                f" {counters.divergent_branches:,} divergent branches, {one.seconds:.3f} s"
                f"{_compiling(one.compile_seconds)}"
            )
        return lines

    def data(self) -> dict[str, Any]:
        """Returns the report as data for JSON."""
        return {
            "device": self.device.name,
            "kernels": [
                {"launches": one.launches, **as_json(one.total().summary)}
                for one in self.kernels.values()
            ],
            "host_operators": [
                {"operator": name, "calls": work.calls, "seconds": work.seconds}
                for name, work in self.host_work.items()
            ],
        }


def _timeline_text(timeline: Timeline) -> str:
    """Returns a timeline as text, or why there is none: other reports follow it."""
    try:
        return timeline.report()
    except WarploomError as error:
        return f"warploom: the timeline is not available: {error}\n"


def _write_timeline(timeline: Timeline, name: str) -> None:
    """Writes a timeline as a page; without one, the report has said why."""
    with suppress(WarploomError):
        write_text(name.replace("%p", str(os.getpid())), timeline.page())


def _flush_output() -> None:
    """Writes what the program has printed and keeps in buffers, those of C's library included: into
    a pipe, that would come when the process ends, after the report."""
    sys.stdout.flush()
    library = ctypes.CDLL(None)
    library.fflush(ctypes.c_void_p.in_dll(library, "stdout"))


def _launches(one: KernelRuns) -> str:
    grid, block = ("x".join(map(str, dims)) for dims in (one.grid, one.block))
    times = _counted(one.launches, "launch", "launches")
    name = source_name(one.kernel.name)
    return f"{name}, {times} of {grid} blocks of {block}"


def _compiling(seconds: float) -> str:
    """Returns words on the time that compiling took, where it is long enough to be seen."""
    return f" after {seconds:.3f} s of compilation" if seconds >= 0.0005 else ""


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


_session: Session | None = None
_making = Mutex("begin a session")


def session() -> Session:
    """Returns the session of this process, with the settings of its environment."""
    global _session
    if _session is not None:
        return _session
    with _making:
        if _session is None:
            _session = Session(Settings.from_environment())
            atexit.register(_session.report_once)
        return _session


def use(device: str | None = None, **settings: str | int) -> Device:
    """Starts anew with other settings (`schedule=`, `seed=`, `workers=`, `memory=`, `report=`):
    gives the device. Arrays of the device before belong to that one."""
    global _session
    chosen = replace(Settings.from_environment(), **{"device": device or DEFAULT, **settings})
    with _making:
        _session = Session(chosen.checked())
        atexit.register(_session.report_once)
        return _session.device
