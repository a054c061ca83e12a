"""The launch of a kernel: the arguments, the wait. The checks are for `host.prepare`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import numpy as np

from warploom.analysis.program import PARAMETERS, Program
from warploom.analysis.synchronising import triggers_launch
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
from warploom.host.debugging import Debugger, debugger_of
from warploom.host.engines import (
    Execute,
    Progress,
    access_plans_of,
    checking_engine,
    choose_engine,
    find_engine,
    llvm_ir_of,
    warp_ir_of,
    watched,
)
from warploom.host.loaded import LoadedKernel
from warploom.host.local_memory import local_bytes
from warploom.host.option_types import Cluster, Count, Engine, Policy, Seed, Tools
from warploom.host.prepare import Configuration, prepare
from warploom.host.run import Done, Execution, Run
from warploom.host.stream import Stream
from warploom.machine.cancellation import Cancellation
from warploom.machine.compile_time import compile_seconds
from warploom.machine.launch import Launch, Who
from warploom.machine.memory import DeviceMemory
from warploom.machine.observation import Observation
from warploom.machine.tally import Tally
from warploom.observe.limits import TraceLimits
from warploom.sanitize.findings import Finding
from warploom.sanitize.stream_order import HOST, Issued

if TYPE_CHECKING:
    from warploom.machine.reference.state import Listener
    from warploom.observe.trace import Trace
    from warploom.sanitize.launching import SanitizedLaunch


WORKSPACE_BYTES = 8

Examined = TypeVar("Examined")


class LaunchOptions(TypedDict, total=False):
    """Options of a launch, beside its arguments.

    `max_instructions` bounds warp instructions. The blocks of a `cooperative` launch all run at
    once, so that they may wait for each other. `schedule` and `seed` choose who goes first, where
    not as the device says. `strict` checks arguments against the types that the source declares, as
    the device does if the launch does not say. `sanitize` names the tools that check the launch, of
    "mem", "race", "sync" and "init", where not those of the device: `run.findings` has what they
    found. A warp gives up its turn before each of the instructions `interrupts` (by their numbers,
    as `explore` tells them), and the warps `turns` have the first turns, each given as its block
    and its number there; such a launch runs on the reference machine. `cluster_dims` is how many
    blocks a cluster has: an integer, or one for each of x, y, z. A `programmatic` launch in a
    stream may begin before the launch ahead of it has ended, once that lets it
    (`griddepcontrol`): it runs behind that all the same, and the tool "race" tells what it does
    before it waits (CUDA's attribute "programmatic stream serialization").
    `observe` is an observer with its state (`wl.observer`), whose functions the launch calls.
    """

    max_instructions: Count | None
    cooperative: bool
    schedule: Policy | None
    seed: Seed | None
    strict: bool | None
    sanitize: Tools | None
    interrupts: Sequence[Count]
    turns: Sequence[Sequence[Count]]
    cluster_dims: Cluster | None
    programmatic: bool
    observe: Observation | None


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch configuration; calling it launches."""

    kernel: LoadedKernel
    grid: Dim3
    block: Dim3
    stream: Stream | None
    shared_bytes: int

    @checked("kernel[grid, block](...)")
    def __call__(
        self,
        *args: Any,
        progress: Progress | None = None,
        **options: Unpack[LaunchOptions],
    ) -> Run:
        """Launch with these arguments: Buffers, host arrays (copied in and back), numbers.

        Waits until the kernel has ended, unless there is a stream. `progress(done, all)` hears now
        and then how many blocks are done; for the other options see `LaunchOptions`. Raises
        LaunchError for what does not fit, KernelFault, DeadlockError or InstructionLimit for what
        the kernel did.
        """
        launch = self._launch(options, args)
        return self._run(launch, self._pack(args, options), progress, options)

    @checked("kernel[grid, block].packed(...)")
    def packed(self, data: bytes, **options: Unpack[LaunchOptions]) -> Run:
        """Launch with a parameter block as the kernel lays it out. Raises as a call does."""
        arguments = Arguments(bytearray(data))
        return self._run(self._launch(options), arguments, None, options)

    def _run(
        self,
        launch: Launch,
        arguments: Arguments,
        progress: Progress | None,
        options: LaunchOptions,
    ) -> Run:
        cancellation, issued = Cancellation(), None
        launch = self._ready(launch, arguments, cancellation)
        tools, observation = options.get("sanitize"), options.get("observe")
        tools = self.kernel.context.sanitize if tools is None else tools
        debugger = debugger_of(self.kernel)
        if observation is not None and (debugger is not None or tools):
            raise LaunchError(
                f"{self.kernel.name} cannot be observed and {'sanitized' if tools else 'debugged'}"
                f" in one launch. Launch it once for each."
            )
        if debugger is not None:
            work = partial(self._execute, self._debugged(debugger), launch, arguments, progress)
        elif tools:
            issued = self._issued(tools, programmatic=bool(options.get("programmatic")))
            work = partial(self._sanitized, tuple(tools), issued, launch, arguments, progress)
        elif launch.schedule.needs_reference:
            work = partial(self._execute, self._reference(observation), launch, arguments, progress)
        elif self.kernel.context.record:
            work = partial(self._timed, observation, launch, arguments, progress)
        elif observation is not None:
            work = partial(self._execute, self._observed(observation), launch, arguments, progress)
        else:
            work = partial(self._execute, self.kernel.context.engine, launch, arguments, progress)
        number = self.kernel.context.memory.begin_launch()
        work = partial(self._finished, number, arguments, cancellation, work)
        if self.stream is None:
            return Run(self.kernel, launch, Done(work()))
        turn = self.kernel.context.turn
        place = turn.issue()
        work = partial(self._in_turn, place, work)
        on_wait = None
        if issued is not None:
            on_wait = partial(self.kernel.context.streams.order.wait, HOST, issued.clock)
        try:
            queued = self.stream.submit(work, cancellation, on_wait)
        except BaseException:  # those behind it would wait for it
            turn.leave(place)
            raise
        return Run(self.kernel, launch, queued)

    def _issued(self, tools: Sequence[str], *, programmatic: bool) -> Issued | None:
        """Return the place of a launch among the work of streams; None where it need not be kept:
        nobody looks for races, or there is one stream, in which no launch lets the next begin."""
        if "race" not in tools:
            return None
        streams = self.kernel.context.streams
        stream = self.stream or streams.order.current
        if self.stream is not None:
            streams.order.add(self.stream, blocking=False)
        if stream is not None and any(map(triggers_launch, self.kernel.program.instructions)):
            streams.order.keep()
        if not streams.order.several:
            return None
        if stream is None:
            issued = streams.order.issue(HOST)
        else:
            issued = streams.order.issue_launch(stream, programmatic=programmatic)
        streams.begin(issued)
        return issued

    def _debugged(self, debugger: Debugger) -> Execute:
        """Returns what runs a launch under a debugger."""

        def execute(
            program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
        ) -> Callable[[], Tally]:
            return debugger.execute(self.kernel, program, launch, memory)

        return execute

    def _in_turn(self, place: int, work: Callable[[], Execution]) -> Execution:
        """Does the work of a launch of a stream behind launches of others that were called
        before."""
        turn = self.kernel.context.turn
        try:
            turn.await_place(place)
            return work()
        finally:
            turn.leave(place)

    def _finished(
        self,
        number: int,
        arguments: Arguments,
        cancellation: Cancellation,
        work: Callable[[], Execution],
    ) -> Execution:
        """Does the work of a launch; then gives back its arguments, and what was freed while it
        could use it."""
        try:
            cancellation.check()
            return work()
        finally:
            self.kernel.context.memory.end_launch(number)
            arguments.release()

    def _reference(self, observation: Observation | None) -> Execute:
        """Return the reference machine, calling the observer if there is one."""
        context = self.kernel.context
        if observation is not None:
            return self._observed(observation, "reference")
        return find_engine("reference", context.spec, context.options, 1)

    def _observed(self, observation: Observation, engine: str = "") -> Execute:
        """Return the engine of that name, else the device's, calling an observer."""
        from warploom.host.observing import observed

        context = self.kernel.context
        return observed(engine or context.engine_name, context.spec, context.options, observation)

    def _timed(
        self,
        observation: Observation | None,
        launch: Launch,
        arguments: Arguments,
        progress: Progress | None,
    ) -> Execution:
        """Run the launch and keep the record that timing needs."""
        from warploom.host.timing import TimedRun

        timed = TimedRun(self.kernel, observation)
        execution = self._execute(timed.execute, launch, arguments, progress)
        return replace(execution, record=timed.record, executed_blocks=timed.executed_blocks)

    def _sanitized(
        self,
        tools: tuple[str, ...],
        issued: Issued | None,
        launch: Launch,
        arguments: Arguments,
        progress: Progress | None,
    ) -> Execution:
        """Run the launch with the detector of `warploom.sanitize` at its side."""
        checked = self._checked(tools, launch, issued)
        return self._execute(checked.execute, launch, arguments, progress, checked.findings)

    @checked("kernel[grid, block].trace(...)")
    def trace(
        self,
        *args: Any,
        limits: TraceLimits | None = None,
        engine: Engine = "reference",
        **options: Unpack[LaunchOptions],
    ) -> Trace:
        """Launch, and give all that every warp did, step by step.

        `engine` is "reference", which records everything, or "compiled", a hundred times as fast,
        which does not record registers. Where the kernel does something wrong, the trace ends there
        and `Trace.error` tells what; nothing is raised. Raises LaunchError for what does not fit.
        """
        from warploom.host.recording import recording_of
        from warploom.host.tracing import trace_of

        launch = self._launch(options, args)
        recording = recording_of(self.kernel, limits or TraceLimits(), engine)
        error = self._watch(launch, self._pack(args, options), recording.execute)
        buffers = [one for one in args if isinstance(one, Buffer)]
        return trace_of(self.kernel, launch, engine, recording.recorded(), error, buffers)

    def write_accelsim(
        self, folder: str | Path, *args: Any, **options: Unpack[LaunchOptions]
    ) -> Run:
        """Launch, and write the machine instructions that its warps would have executed into a
        folder, in Accel-Sim's format, behind the kernels that the folder has.

        Raises WarploomError where there is no machine code that can be followed
        (`Timing.basis`), and what a launch does.
        """
        from warploom.host.accelsim import write_trace
        from warploom.host.timing import TimedRun

        choose_engine("compiled", self.kernel.context.spec)
        launch, arguments = self._launch(options, args), self._pack(args, options)
        cancellation = Cancellation()
        launch = self._ready(launch, arguments, cancellation)
        timed = TimedRun(self.kernel, keeps_masks=True)
        number = self.kernel.context.memory.begin_launch()
        work = partial(self._execute, timed.execute, launch, arguments, None)
        run = Run(self.kernel, launch, Done(self._finished(number, arguments, cancellation, work)))
        assert timed.record is not None
        write_trace(folder, run, timed.record)
        return run

    def llvm_ir(self, *, baseline: bool = False) -> str:
        """Returns the LLVM IR that the kernel becomes for such launches, before LLVM's passes: of
        optimised code, or of the `baseline` code in which a kernel begins. Raises WarploomError
        where the device's warps are not of 32 lanes."""
        context = self.kernel.context
        choose_engine("compiled", context.spec)
        program, launch = self.kernel.program, self._launch({})
        return llvm_ir_of(context.spec, context.options, program, launch, baseline=baseline)

    def warp_ir(self) -> str:
        """Returns what the compiler's passes find of the kernel for such launches, as text: the
        form that LLVM IR of optimised code is emitted from (docs/engine.md, "Warp IR"). Raises
        WarploomError where the device's warps are not of 32 lanes."""
        context = self.kernel.context
        choose_engine("compiled", context.spec)
        launch = self._launch({})
        return warp_ir_of(context.spec, context.options, self.kernel.program, launch)

    def access_plans(self) -> list[tuple[int, str]]:
        """Returns how optimised code for such launches does the kernel's accesses to memory: for
        each, the number of its instruction in `kernel.program` and a sentence. Raises WarploomError
        where the device's warps are not of 32 lanes."""
        context = self.kernel.context
        choose_engine("compiled", context.spec)
        launch = self._launch({})
        return access_plans_of(context.spec, context.options, self.kernel.program, launch)

    def sanitized(
        self, tools: tuple[str, ...], *args: Any, **options: Unpack[LaunchOptions]
    ) -> SanitizedLaunch:
        """Launch with some tools; gives what they found, conflicting instructions by number among
        it. Raises LaunchError for what does not fit."""
        launch = self._launch(options)
        arguments, cancellation = self._pack(args, options), Cancellation()
        launch = self._ready(launch, arguments, cancellation)
        checked = self._checked(tools, launch)
        work = partial(self._execute, checked.execute, launch, arguments, None, checked.findings)
        number = self.kernel.context.memory.begin_launch()
        self._finished(number, arguments, cancellation, work)
        return checked

    def _checked(
        self, tools: tuple[str, ...], launch: Launch, issued: Issued | None = None
    ) -> SanitizedLaunch:
        """Return what runs a launch with some tools, `issued` among the work of streams."""
        from warploom.sanitize.launching import SanitizedLaunch

        context = self.kernel.context
        engine, streams = context.checking_engine, context.streams
        if launch.schedule.needs_reference:
            engine = checking_engine("reference", context.spec, context.options)
        return SanitizedLaunch(engine, tools, context.memory.unwritten, streams, issued)

    def examined(
        self,
        examine: Callable[[Program, Launch, DeviceMemory], Examined],
        *args: Any,
        **options: Unpack[LaunchOptions],
    ) -> Examined:
        """Return what `examine` makes of the program, the launch and the memory as it would begin;
        launches nothing. Raises LaunchError for arguments that do not fit."""
        launch, arguments = self._launch(options, args), self._pack(args, options)
        memory = self.kernel.context.memory
        number = memory.begin_launch()
        try:
            launch = self._ready(launch, arguments, Cancellation())
            return examine(self.kernel.program, launch, memory)
        finally:
            memory.end_launch(number)
            arguments.release()

    def check(self, *args: Any, strict: bool | None = None) -> None:
        """Raises LaunchError for arguments that do not fit; launches nothing."""
        self._pack(args, {"strict": strict}).release()

    def watch(
        self,
        listener: Listener,
        *args: Any,
        **options: Unpack[LaunchOptions],
    ) -> str:
        """Launch on the reference machine and tell `listener` all that happens; gives the error
        that ended it, or nothing. Raises LaunchError for what does not fit."""
        launch = self._launch(options, args)
        context = self.kernel.context
        execute = watched(context.spec, context.options, listener)
        return str(self._watch(launch, self._pack(args, options), execute) or "")

    def _watch(
        self, launch: Launch, arguments: Arguments, execute: Execute
    ) -> WarploomError | None:
        """Run a launch; returns the error that ended it, None where there was none."""
        cancellation = Cancellation()
        launch = self._ready(launch, arguments, cancellation)
        number = self.kernel.context.memory.begin_launch()
        work = partial(self._execute, execute, launch, arguments, None)
        try:
            self._finished(number, arguments, cancellation, work)
        except (KernelFault, DeadlockError, InstructionLimit) as wrong:
            return wrong
        return None

    def _launch(self, options: LaunchOptions, args: tuple[Any, ...] = ()) -> Launch:
        """Return the launch without its arguments, with the local memory that is among them. Raises
        LaunchError for what the device cannot do."""
        local = local_bytes(args)
        if local and self.shared_bytes:
            raise LaunchError(
                f"{self.kernel.name} has {self.shared_bytes} bytes of dynamic shared memory and"
                f" LocalMemory among its arguments; give it all as LocalMemory"
            )
        asked = Configuration(
            self.grid,
            self.block,
            self.shared_bytes + local,
            options.get("max_instructions"),
            bool(options.get("cooperative")),
            options.get("schedule"),
            options.get("seed"),
            frozenset(options.get("interrupts", ())),
            _turns(options.get("turns", ())),
            as_dims(options.get("cluster_dims")),
        )
        return prepare(self.kernel, asked)

    def _ready(self, launch: Launch, arguments: Arguments, cancellation: Cancellation) -> Launch:
        """Return the launch with its arguments; a cooperative one with the memory in which its
        blocks wait for each other: its size, and a count of theirs."""
        memory, globals, workspace = self.kernel.context.memory, launch.globals, 0
        if PARAMETERS in self.kernel.program.places:
            globals = (*globals, arguments.show(memory).address)
        if launch.cooperative:
            counters = np.array([WORKSPACE_BYTES, 0], np.uint32)
            workspace = arguments.lend(counters, "the workspace of the grid", memory).address
        return launch.filled(bytes(arguments.data), globals, workspace, cancellation)

    def _pack(self, args: tuple[Any, ...], options: LaunchOptions) -> Arguments:
        """Return the parameter block of the arguments. Raises LaunchError for those that do not
        fit."""
        strict = options.get("strict")
        return self.kernel.packer.pack(
            args, strict=self.kernel.context.strict if strict is None else strict
        )

    def _execute(
        self,
        execute: Execute,
        launch: Launch,
        arguments: Arguments,
        progress: Progress | None,
        findings: Sequence[Finding] | None = None,
    ) -> Execution:
        """Runs the launch; host arrays get their results back if it ended well. `findings` is what
        the execution fills, where it is sanitized."""
        kernel, context = self.kernel, self.kernel.context
        if context.core is not None:
            execute = context.core.wraps(kernel, execute, findings)
        context.turn.take(launch.cancellation)
        try:
            program = kernel.program
            started, compiled = time.perf_counter(), compile_seconds()
            counted = execute(program, launch, context.memory, progress)
            compiled = compile_seconds() - compiled
            seconds = time.perf_counter() - started - compiled
        finally:
            context.turn.give_back()
        arguments.copy_back()
        if findings is None:
            context.memory.unwritten.clear()  # it may have written anything
        execution = Execution(counted, seconds, compiled, findings=tuple(findings or ()))
        if context.on_run is not None:
            context.on_run(Run(kernel, launch, Done(execution)))
        return execution


def _turns(given: Sequence[Sequence[int]]) -> tuple[Who, ...]:
    """Return the warps of an order's first turns. Raises LaunchError where one is no pair."""
    for one in given:
        if len(one) != 2:
            raise LaunchError(
                f"turns name each warp by two numbers, its block and its number in the block, like"
                f" (0, 3); this is {tuple(one)}"
            )
    return tuple((block, number) for block, number in given)
