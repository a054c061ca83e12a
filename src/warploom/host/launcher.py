"""The launch of a kernel: the arguments, the wait. The checks are for `host.prepare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from warploom.core.errors import (
    DeadlockError,
    Dim3,
    InstructionLimit,
    KernelFault,
    LaunchError,
    WarploomError,
)
from warploom.core.options import checked
from warploom.host.arguments import Arguments
from warploom.host.buffer import Buffer
from warploom.host.clusters import as_dims
from warploom.host.engines import (
    Execute,
    Progress,
    access_plans_of,
    choose_engine,
    llvm_ir_of,
    passes_of,
    warp_ir_of,
    watched,
)
from warploom.host.launch_options import LaunchOptions, turns_of
from warploom.host.local_memory import local_bytes
from warploom.host.option_types import Engine
from warploom.host.prepare import Configuration, prepare
from warploom.host.ready_launch import (
    LaunchableKernel,
    ReadyLaunch,
    Work,
    sanitized_launch,
    work_of,
)
from warploom.host.run import Execution, Run
from warploom.host.stream import Stream
from warploom.machine.launch import NO_ND_RANGE, Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.turn import Cancellation
from warploom.observe.limits import TraceLimits
from warploom.program.program import Program
from warploom.sanitize.stream_order import HOST, IssuedWork

if TYPE_CHECKING:
    from warploom.machine.reference.state import Listener
    from warploom.observe.trace import Trace
    from warploom.sanitize.launching import SanitizedLaunch

Examined = TypeVar("Examined")


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch configuration; calling it launches."""

    kernel: LaunchableKernel
    grid: Dim3
    block: Dim3
    stream: Stream | None
    shared_bytes: int

    def __call__(
        self,
        *args: Any,
        progress: Progress | None = None,
        **options: Unpack[LaunchOptions],
    ) -> Run:
        """Launches with these arguments: Buffers, host arrays (copied in and back), numbers.

        Waits until the kernel has ended, unless there is a stream. `progress(done, all)` hears now
        and then how many blocks are done; for the other options see `LaunchOptions`. Raises
        LaunchError for what does not fit, KernelFault, DeadlockError or InstructionLimit for what
        the kernel did.
        """
        if options or progress is not None:
            return self._call_with_options(*args, progress=progress, **options)
        return self._run(self._ready(args, options), None, options)

    @checked("kernel[grid, block](...)")
    def _call_with_options(
        self, *args: Any, progress: Progress | None, **options: Unpack[LaunchOptions]
    ) -> Run:
        """Launches with options that are checked first."""
        return self._run(self._ready(args, options), progress, options)

    @checked("kernel[grid, block].packed(...)")
    def packed(self, data: bytes, **options: Unpack[LaunchOptions]) -> Run:
        """Launches with a parameter block as the kernel lays it out. Raises as a call does."""
        arguments = Arguments(bytearray(data))
        ready = ReadyLaunch.of(self.kernel, self._launch(options), arguments)
        return self._run(ready, None, options)

    @checked("kernel[grid, block].issued(...)")
    def issued(
        self, data: bytes, **options: Unpack[LaunchOptions]
    ) -> tuple[Cancellation, Callable[[], Run]]:
        """Issues a launch with a parameter block as the kernel lays it out, in the order of streams
        too; returns what cancels it, and what runs it, once, in any thread. Raises LaunchError for
        what does not fit."""
        ready = ReadyLaunch.of(self.kernel, self._launch(options), Arguments(bytearray(data)))
        work, _ = work_of(ready, options, None, None)
        work = ready.begin(work)

        def run(_: IssuedWork | None) -> Run:
            return Run(self.kernel, ready.launch, work())

        return ready.cancellation, self._timed(ready, run)

    def _timed(
        self, ready: ReadyLaunch, run: Callable[[IssuedWork | None], Run]
    ) -> Callable[[], Run]:
        """Returns what runs a launch, which it passes its position in the order of streams as of
        now, and adds it to the timelines that are taken of the device; None where there are
        none."""
        timelines = self.kernel.hooks.timelines
        if not timelines:
            return partial(run, None)
        from warploom.host.timelines import IssuedLaunch

        order = self.kernel.context.streams.order
        stream = self.stream or (HOST if order.current is None else order.current)
        issued = IssuedLaunch.of(order, stream, ready.arguments)

        def run_in_timelines() -> Run:
            done = run(issued.last)
            for timeline in timelines:
                timeline.add_launch(issued, ready.arguments, done)
            return done

        return run_in_timelines

    def _run(self, ready: ReadyLaunch, progress: Progress | None, options: LaunchOptions) -> Run:
        """Runs a launch, or leaves it to its stream."""
        work, issued = work_of(ready, options, self.stream, progress)
        work = ready.begin(work)
        if self.stream is None and not self.kernel.hooks.timelines:
            return Run(self.kernel, ready.launch, work())

        def run(last: IssuedWork | None) -> Run:
            if self.stream is None:
                return Run(self.kernel, ready.launch, work())
            return self._submit(self.stream, ready, work, last or issued)

        return self._timed(ready, run)()

    def _submit(
        self, stream: Stream, ready: ReadyLaunch, work: Work, issued: IssuedWork | None
    ) -> Run:
        """Queues a launch on a stream, after launches of other streams that were called before."""
        context = self.kernel.context
        place = context.turn.issue(stream)
        on_wait = None
        if issued is not None:
            on_wait = partial(context.streams.order.wait, HOST, issued.clock)
        try:
            ready.cancellation.lock = context.turn
            queued = stream.submit(partial(self._in_turn, place, work), ready.cancellation, on_wait)
        except BaseException:  # those behind it would wait for it
            context.turn.leave(place)
            raise
        return Run(self.kernel, ready.launch, queued)

    def _in_turn(self, place: int, work: Work) -> Execution:
        """Executes a launch of a stream after launches of other streams that were called before."""
        turn = self.kernel.context.turn
        try:
            turn.await_ticket(place)
            return work()
        finally:
            turn.leave(place)

    @checked("kernel[grid, block].trace(...)")
    def trace(
        self,
        *args: Any,
        limits: TraceLimits | None = None,
        engine: Engine = "reference",
        **options: Unpack[LaunchOptions],
    ) -> Trace:
        """Launches, and returns all that every warp did, step by step.

        `engine` is "reference", which records everything, or "compiled", a hundred times as fast,
        which does not record registers. Where the kernel does something wrong, the trace ends there
        and `Trace.error` says what; nothing is raised. Raises LaunchError for what does not fit.
        """
        from warploom.host.records.recording import recording_of
        from warploom.host.records.tracing import trace_of

        ready = self._ready(args, options)
        recording = recording_of(self.kernel, limits or TraceLimits(), engine)
        error = _watch(ready, recording.execute)
        buffers = [one for one in args if isinstance(one, Buffer)]
        return trace_of(self.kernel, ready.launch, engine, recording.recorded(), error, buffers)

    def write_accelsim(
        self, folder: str | Path, *args: Any, **options: Unpack[LaunchOptions]
    ) -> Run:
        """Launches, and writes the machine instructions that its warps would have executed into a
        folder, in Accel-Sim's format, after the kernels that the folder has.

        Raises WarploomError where there is no machine code that can be followed
        (`Timing.basis`), and what a launch does.
        """
        from warploom.host.records.accelsim import write_trace
        from warploom.host.records.timing import TimedRun

        choose_engine("compiled", self.kernel.context.spec)
        ready = self._ready(args, options)
        timed = TimedRun(self.kernel, keeps_masks=True)
        work = ready.begin(partial(ready.execute, timed.execute))
        run = Run(self.kernel, ready.launch, work())
        assert timed.record is not None
        write_trace(folder, run, timed.record)
        return run

    def llvm_ir(self, *, baseline: bool = False) -> str:
        """Returns the LLVM IR that the kernel becomes for such launches, before LLVM's passes: of
        optimized code, or of the `baseline` code in which a kernel begins. Raises WarploomError
        where the device's warps are not of 32 lanes."""
        context = self.kernel.context
        choose_engine("compiled", context.spec)
        program, launch = self.kernel.program, self._launch({})
        return llvm_ir_of(context.spec, context.options, program, launch, baseline=baseline)

    def warp_ir(self, *, each_pass: bool = False) -> str:
        """Returns what the compiler's passes find of the kernel for such launches, as text: the
        form that LLVM IR of optimized code is emitted from (docs/engine.md, "Warp IR"). With
        `each_pass`, it is the text after each pass. Raises WarploomError where the device's warps
        are not of 32 lanes."""
        context = self.kernel.context
        choose_engine("compiled", context.spec)
        launch = self._launch({})
        printed = passes_of if each_pass else warp_ir_of
        return printed(context.spec, context.options, self.kernel.program, launch)

    def access_plans(self) -> list[tuple[int, str]]:
        """Returns how optimized code for such launches does the kernel's accesses to memory: for
        each, the number of its instruction in `kernel.program` and a sentence. Raises WarploomError
        where the device's warps are not of 32 lanes."""
        context = self.kernel.context
        choose_engine("compiled", context.spec)
        launch = self._launch({})
        return access_plans_of(context.spec, context.options, self.kernel.program, launch)

    def sanitized(
        self, tools: tuple[str, ...], *args: Any, **options: Unpack[LaunchOptions]
    ) -> SanitizedLaunch:
        """Launches with some tools; gives what they found, conflicting instructions by number among
        it. Raises LaunchError for what does not fit."""
        ready = self._ready(args, options)
        checked = sanitized_launch(ready, tools)
        ready.begin(partial(ready.execute, checked.execute, None, checked.findings))()
        return checked

    def examined(
        self,
        examine: Callable[[Program, Launch, DeviceMemory], Examined],
        *args: Any,
        **options: Unpack[LaunchOptions],
    ) -> Examined:
        """Returns what `examine` makes of the program, the launch and the memory as it would begin;
        launches nothing. Raises LaunchError for arguments that do not fit."""
        ready, kernel = self._ready(args, options), self.kernel
        return ready.begin(partial(examine, kernel.program, ready.launch, kernel.context.memory))()

    def check(self, *args: Any, strict: bool | None = None) -> None:
        """Raises LaunchError for arguments that do not fit; launches nothing."""
        self._pack(args, {"strict": strict}).release()

    def watch(
        self,
        listener: Listener,
        *args: Any,
        **options: Unpack[LaunchOptions],
    ) -> str:
        """Launches on the reference machine and calls `listener` at all that happens; gives the
        error that ended it, or nothing. Raises LaunchError for what does not fit."""
        ready, context = self._ready(args, options), self.kernel.context
        execute = watched(context.spec, context.options, listener)
        return str(_watch(ready, execute) or "")

    def _launch(self, options: LaunchOptions, args: tuple[Any, ...] = ()) -> Launch:
        """Returns the launch without its arguments, with the local memory that is among them.
        Raises LaunchError for what the device cannot do."""
        local = local_bytes(args) if self.kernel.takes_local_memory else 0
        if local and self.shared_bytes:
            raise LaunchError(
                f"the launch of {self.kernel.name} has both {self.shared_bytes} bytes of dynamic "
                "shared memory and LocalMemory arguments; pass all local memory as LocalMemory"
            )
        asked = Configuration(self.grid, self.block, self.shared_bytes + local)
        if options:
            asked = asked._replace(
                max_instructions=options.get("max_instructions"),
                cooperative=bool(options.get("cooperative")),
                schedule=options.get("schedule"),
                seed=options.get("seed"),
                order=options.get("order"),
                interrupts=frozenset(options.get("interrupts", ())),
                turns=turns_of(options.get("turns", ())),
                cluster=as_dims(options.get("cluster_dims")),
                nd_range=options.get("nd_range", NO_ND_RANGE),
            )
        return self.kernel.prepared.get(asked) or prepare(self.kernel, asked)

    def _pack(self, args: tuple[Any, ...], options: LaunchOptions) -> Arguments:
        """Returns the parameter block of the arguments. Raises LaunchError for those that do not
        fit."""
        strict = options.get("strict")
        return self.kernel.packer.pack(
            args, strict=self.kernel.context.strict if strict is None else strict
        )

    def _ready(self, args: tuple[Any, ...], options: LaunchOptions) -> ReadyLaunch:
        """Returns the launch with its arguments. Raises LaunchError for what does not fit."""
        launch = self._launch(options, args)
        return ReadyLaunch.of(self.kernel, launch, self._pack(args, options))


def _watch(ready: ReadyLaunch, execute: Execute) -> WarploomError | None:
    """Runs a launch; returns the error that ended it, None where there was none."""
    try:
        ready.begin(partial(ready.execute, execute))()
    except (KernelFault, DeadlockError, InstructionLimit) as wrong:
        return wrong
    return None
