"""The result of a launch: its counters, its report, and how long it took."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol, TypedDict, Unpack

from warploom.core.errors import WarploomError
from warploom.core.lazy import cached_property
from warploom.core.options import checked
from warploom.core.values import OneOf
from warploom.devices.occupancy import Occupancy
from warploom.devices.timing import TimingSpec
from warploom.host.loaded import LoadedKernel
from warploom.host.option_types import CACHES, CODES, Count, Positive, Workers
from warploom.host.programs.targets import is_newer
from warploom.machine.launch import Launch
from warploom.machine.tally import Tally
from warploom.observe.counters import Counters
from warploom.observe.examples import Example, find_examples
from warploom.sanitize.findings import Finding
from warploom.timing.layout import SCHEDULERS
from warploom.timing.policies import (
    AddressMapping,
    CacheModel,
    Prefetcher,
    ReplacementPolicy,
    WarpScheduler,
)

if TYPE_CHECKING:
    from warploom.analysis.linear.register_values import LaunchInputs
    from warploom.machinecode.counted import MachineCounts
    from warploom.report.sections import Report
    from warploom.timing.record.record import Record
    from warploom.timing.replaying import Replaying
    from warploom.timing.result import Timing


class TimeOptions(TypedDict, total=False):
    """Options for timing a launch.

    `scheduler` is "lrr", "gto", "two-level" or "oldest", the device's own if left out, or one that
    `warploom.warp_scheduler` made of a function; `prefetcher` is one of `warploom.prefetcher`. `l1`
    and `l2` are caches (`warploom.CacheModel`) or replacement policies for them
    (`warploom.replacement_policy`), `dram` is a mapping of lines to banks
    (`warploom.address_mapping`). `sample`: only so many waves of blocks are replayed, and the rest
    extrapolated. At most `workers` threads share the SMs, by default one on each core; the result
    is the same. `timeline`: keep so many states of each SM's warps. `spec` stands for the device's
    own figures. `code`: what is replayed, "machine" code or "ptx". Where it is left out, machine
    code is; of kernels without machine code, or whose machine code cannot be followed, PTX is
    (`Timing.basis` says why). A timeline is one of PTX. `caches`: "cold", they are empty when the
    launch begins, as in Nsight Compute by default; or "warm", L2, the TLBs and the instruction
    caches are as an equal launch just before it left them (`--cache-control none`), which is
    replayed first."""

    scheduler: Annotated[str, OneOf(SCHEDULERS)] | WarpScheduler | None
    prefetcher: Prefetcher | None
    l1: CacheModel | ReplacementPolicy | None
    l2: CacheModel | ReplacementPolicy | None
    dram: AddressMapping | None
    sample: Positive | None
    workers: Workers | None
    timeline: Count
    spec: TimingSpec | None
    code: Annotated[str, OneOf(CODES)] | None
    caches: Annotated[str, OneOf(CACHES)]


@dataclass(frozen=True)
class Execution:
    """The outcome of running a launch: the host's time for it, and for compiling the kernel where
    that was due; `record` is for timing, where the device keeps one,
    `executed_blocks` the number of its blocks where not all were executed, and `findings` are those
    of its sanitizers."""

    counted: Callable[[], Tally]
    seconds: float
    compile_seconds: float
    record: Record | None = None
    executed_blocks: int | None = None
    findings: tuple[Finding, ...] = ()

    @cached_property
    def tally(self) -> Tally:
        """Returns what was counted, put together when it is first asked for."""
        return self.counted()

    def result(self) -> Execution:
        """Returns itself, as the outcome of a launch that has ended."""
        return self

    def done(self) -> bool:
        return True

    def cancel(self) -> None:
        """Does nothing: the launch has ended."""


class Outcome(Protocol):
    """The end of a launch, now or later."""

    def result(self) -> Execution: ...

    def done(self) -> bool: ...

    def cancel(self) -> None: ...


class Run:
    """One launch of a kernel. On a stream, asking for its results waits for it, and raises what
    the kernel did wrong."""

    def __init__(self, kernel: LoadedKernel, launch: Launch, outcome: Outcome) -> None:
        self.kernel, self.launch, self._outcome = kernel, launch, outcome

    def cancel(self) -> None:
        """Stops the launch where it runs in a stream, and drops it where it still waits: its
        results raise LaunchCancelled then. Does nothing to a launch that has ended."""
        self._outcome.cancel()

    @property
    def done(self) -> bool:
        """Returns whether the launch has ended; on a stream, without waiting for it."""
        return self._outcome.done()

    @property
    def tally(self) -> Tally:
        """Returns the raw counts; `counters` has them by name."""
        return self._outcome.result().tally

    @property
    def counted(self) -> Callable[[], Tally]:
        """Returns what makes the tally."""
        return self._outcome.result().counted

    @property
    def seconds(self) -> float:
        """Returns the host's time for the launch, without compiling the kernel."""
        return self._outcome.result().seconds

    @property
    def compile_seconds(self) -> float:
        """Returns the host's time for compiling the kernel, or for loading it from the cache; 0
        where an earlier launch did that."""
        return self._outcome.result().compile_seconds

    @property
    def workers(self) -> int:
        """Returns how many threads of the host shared its blocks."""
        return self.tally.workers

    @property
    def serial_reason(self) -> str:
        """Returns why the launch had one worker where the device has more; empty where it did
        not."""
        return self.tally.serial_reason

    @property
    def any_order(self) -> bool:
        """Returns whether blocks ran in any order, side by side (`order="any"`), so that another
        launch may leave another result and other counts."""
        return self.launch.schedule.any_order

    @property
    def tier(self) -> str:
        """Returns the code that the launch ended in: "baseline", which is compiled fast and takes 4
        times as long in the median, or optimized code by LLVM's effort, "level 0", "level 1" or
        "level 3"; empty on the reference machine. Only the host's time depends on it."""
        return self.tally.tier

    @property
    def alone_because(self) -> str:
        """Returns `serial_reason`, under the name that it had before."""
        message = "`alone_because` is deprecated: use `serial_reason`"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.serial_reason

    @cached_property
    def counters(self) -> Counters:
        """Returns everything that was counted."""
        return Counters(self.tally)

    @cached_property
    def machine(self) -> MachineCounts:
        """Returns the machine instructions that its warps would have executed, worked out from the
        machine code that ptxas makes of the kernel for the device and from what was counted.

        Raises WarploomError, with the reason, where there is no machine code: ptxas and nvdisasm
        are missing, or the compute capability is below 7.5.
        """
        from warploom.host.programs.assembly import NoAssembly
        from warploom.machinecode.counted import MachineCounts

        found = self.kernel.assembly
        if isinstance(found, NoAssembly):
            raise WarploomError(
                f"the machine instructions of {self.kernel.program.title} cannot be counted: "
                f"{found.reason}"
            )
        return MachineCounts(found.matching, self.tally, self._inputs)

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Returns the costliest access of each instruction that has one worse than it could be: its
        lanes, their addresses, and which of them collide in shared memory."""
        return find_examples(self.tally, self.kernel.context.rules)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Returns how many of its blocks an SM holds; registers are ptxas' own or an estimate."""
        return self.kernel.occupancy(self.launch)

    @checked("run.time(...)")
    def time(self, **options: Unpack[TimeOptions]) -> Timing:
        """Returns the modelled time of the launch, on a device made with `record=True`; see
        TimeOptions.

        Raises WarploomError where nothing was recorded, or for an option that makes no sense.
        """
        return self.replay(**options).time()

    @checked("run.replay(...)")
    def replay(self, **options: Unpack[TimeOptions]) -> Replaying:
        """Returns the replay that `time` runs to its end, to be run in parts, saved and gone on
        with.

        Raises what `time` does.
        """
        from warploom.host.records.timing import ReplayOptions, replaying

        given = ReplayOptions(**options)
        return replaying(self.kernel, self.record, lambda: self.machine, given)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Returns what the sanitizers of the launch found; empty where it had none
        (`sanitize=`)."""
        return self._outcome.result().findings

    @property
    def executed_blocks(self) -> int:
        """Returns how many of its blocks were executed: all, but on a device with
        `sampled=True`."""
        blocks = self._outcome.result().executed_blocks
        return self.launch.blocks if blocks is None else blocks

    @property
    def record(self) -> Record | None:
        """Returns what was recorded for timing; None on a device without `record=True`."""
        return self._outcome.result().record

    @checked("run.metric(...)")
    def metric(self, name: str) -> int:
        """Returns one of Nsight Compute's metrics, such as
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"; WarploomError where none corresponds."""
        return self.counters.metric(name)

    def report(self, terms: str | None = None, timing: Timing | None = None) -> str:
        """Returns the report as text, in the terms of "cuda", "opencl" or "hip", those of the
        program's language if left out; with the sections of a modelled time of the launch
        (`run.time()`), where it is given."""
        from warploom.report.render import render_text

        return render_text(self.summarised(timing), terms)

    def to_json(self, timing: Timing | None = None) -> str:
        """Returns the report as JSON, with all counters of the kernel and of each source line."""
        from warploom.report.export import as_json

        return json.dumps(as_json(self.summarised(timing)), indent=2, allow_nan=False)

    def summarised(self, timing: Timing | None = None) -> Report:
        """Returns the report as data, with the sections of a modelled time where one is given."""
        if timing is None:
            return self.summary
        from warploom.report.time import with_time

        return with_time(self.summary, timing)

    @property
    def _inputs(self) -> LaunchInputs:
        """Returns what is known of the launch before it runs."""
        from warploom.analysis.linear.register_values import LaunchInputs

        launch = self.launch
        return LaunchInputs(
            launch.grid, launch.block, launch.parameters, launch.globals, lambda address: None
        )

    @cached_property
    def summary(self) -> Report:
        """Returns the report as data."""
        from warploom.host.pointers import pointer_parameters
        from warploom.report.sections import Facts, make_report

        execution, kernel = self._outcome.result(), self.kernel
        program, spec = kernel.program, kernel.context.spec
        module = program.module
        facts = Facts(
            kernel=program.name,
            spec=spec,
            engine=kernel.context.engine_name,
            grid=self.launch.grid,
            block=self.launch.block,
            warps=execution.tally.launched_warps,
            registers=kernel.resources.registers,
            registers_from=kernel.resources.source,
            spill_bytes=kernel.resources.spill_bytes,
            static_shared_bytes=program.shared_bytes,
            dynamic_shared_bytes=self.launch.dynamic_shared_bytes,
            local_bytes=program.local_bytes,
            newer_target=", ".join(module.target) if is_newer(module, spec) else None,
            seconds=execution.seconds,
            compile_seconds=execution.compile_seconds,
            tier=execution.tally.tier,
            terms=kernel.terms,
            any_order=self.any_order,
            has_structures=kernel.has_structures,
        )
        return make_report(
            facts,
            program,
            self.counters,
            self.occupancy,
            self.examples,
            self._inputs,
            pointer_parameters(kernel, self.launch),
        )

    def __repr__(self) -> str:
        grid, block = self.launch.grid, self.launch.block
        state = "done" if self._outcome.done() else "queued"
        return f"Run(grid={grid}, block={block}, {state})"
