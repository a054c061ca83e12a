"""The launch of a kernel: the checks, the arguments, the wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from warploom.analysis.program import PARAMETERS
from warploom.core.errors import DeadlockError, Dim3, InstructionLimit, KernelFault, LaunchError
from warploom.devices.launches import check_launch, check_local, check_registers
from warploom.host.arguments import Arguments, pack
from warploom.host.context import schedule_of
from warploom.host.engines import Execute, Progress, watched
from warploom.host.loaded import LoadedKernel
from warploom.host.run import Execution, Run
from warploom.host.stream import Stream
from warploom.machine.launch import Launch, shared_bytes
from warploom.ptx.ir import Function

if TYPE_CHECKING:
    from warploom.machine.reference.state import Listener
    from warploom.observe.trace import Trace, TraceLimits


WORKSPACE_BYTES = 8


class LaunchOptions(TypedDict, total=False):
    """What a launch may say beside its arguments.

    `max_instructions` bounds warp instructions. The blocks of a `cooperative` launch all run at
    once, so that they may wait for each other. `schedule` and `seed` choose who goes first, where
    not as the device says.
    """

    max_instructions: int | None
    cooperative: bool
    schedule: str | None
    seed: int | None


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch configuration; calling it launches."""

    kernel: LoadedKernel
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
        """Launch with these arguments: Buffers, host arrays (copied in and back), numbers.

        Waits until the kernel has ended, unless there is a stream. `progress(done, all)` hears now
        and then how many blocks are done; for the other options see `LaunchOptions`. Raises
        LaunchError for what does not fit, KernelFault, DeadlockError or InstructionLimit for what
        the kernel did.
        """
        launch = self._launch(options)
        arguments = self._pack(args)
        launch = self._ready(launch, arguments)
        execute = self.kernel.context.engine
        work = self._start(lambda: self._execute(execute, launch, arguments, progress))
        return Run(self.kernel, launch, work)

    def trace(
        self,
        *args: Any,
        limits: TraceLimits | None = None,
        engine: str = "reference",
        **options: Unpack[LaunchOptions],
    ) -> Trace:
        """Launch, and give all that every warp did, step by step.

        `engine` is "reference", which records everything, or "compiled", a hundred times as fast,
        which does not record registers. Where the kernel does something wrong, the trace ends there
        and `Trace.error` tells what; nothing is raised. Raises LaunchError for what does not fit.
        """
        from warploom.host.recording import recording_of
        from warploom.host.tracing import trace_of
        from warploom.observe.trace import TraceLimits

        launch = self._launch(options)
        recording = recording_of(self.kernel, limits or TraceLimits(), engine)
        error = self._watch(launch, args, recording.execute)
        return trace_of(self.kernel, launch, engine, recording.recorded(), error)

    def watch(
        self,
        listener: Listener,
        *args: Any,
        **options: Unpack[LaunchOptions],
    ) -> str:
        """Launch on the reference machine and tell `listener` all that happens; gives the error
        that ended it, or nothing. Raises LaunchError for what does not fit."""
        launch = self._launch(options)
        context = self.kernel.context
        return self._watch(launch, args, watched(context.spec, context.options, listener))

    def _watch(self, launch: Launch, args: tuple[Any, ...], execute: Execute) -> str:
        """Run a launch; gives the error that ended it, or nothing."""
        arguments = self._pack(args)
        launch = self._ready(launch, arguments)
        try:
            self._execute(execute, launch, arguments, None)
        except (KernelFault, DeadlockError, InstructionLimit) as wrong:
            return str(wrong)
        return ""

    def _launch(self, options: LaunchOptions) -> Launch:
        """The launch without its arguments. Raises LaunchError for what the device cannot do."""
        kernel, context = self.kernel, self.kernel.context
        program = kernel.program
        launch = Launch(
            self.grid,
            self.block,
            b"",
            kernel.image.addresses(program.globals),
            self.shared_bytes,
            options.get("max_instructions"),
            context.schedule,
            context.output,
            warp_size=context.spec.warp_size,
        )
        check_launch(context.spec, self.grid, self.block, shared_bytes(program, launch))
        check_local(context.spec, program.local_bytes + program.frame_bytes)
        _check_directives(kernel.function, self.block)
        self._check_registers()
        resident = kernel.occupancy(launch).active_blocks * context.spec.sms
        if options.get("cooperative") and launch.blocks > resident:
            raise LaunchError(
                f"a cooperative launch of {kernel.name} needs all its {launch.blocks:,} blocks"
                f" resident at once; {context.spec.name} holds {resident:,} of this kind. Launch"
                f" fewer blocks, and let each do more.",
                resource="resident blocks",
                requested=launch.blocks,
                limit=resident,
            )
        policy = options.get("schedule") or context.schedule.policy
        seed = options.get("seed")
        order = schedule_of(context.spec, policy, context.schedule.seed if seed is None else seed)
        order = replace(order, resident_blocks=max(1, resident))
        return replace(launch, schedule=order, cooperative=bool(options.get("cooperative")))

    def _ready(self, launch: Launch, arguments: Arguments) -> Launch:
        """The launch with its arguments; a cooperative one with the memory in which its blocks wait
        for each other: its size, and a count of theirs."""
        memory = self.kernel.context.memory
        launch = replace(launch, parameters=bytes(arguments.data))
        if PARAMETERS in self.kernel.program.places:
            shown = arguments.show(memory).address
            launch = replace(launch, globals=(*launch.globals, shown))
        if not launch.cooperative:
            return launch
        workspace = np.array([WORKSPACE_BYTES, 0], np.uint32)
        lent = arguments.lend(workspace, "the workspace of the grid", memory)
        return replace(launch, grid_workspace=lent.address)

    def _pack(self, args: tuple[Any, ...]) -> Arguments:
        kernel = self.kernel
        return pack(kernel.program, kernel.function.parameters, args, kernel.context.memory)

    def _check_registers(self) -> None:
        """Refuse blocks with too many registers, where ptxas tells; an estimate refuses nothing."""
        spec, threads = self.kernel.context.spec, self.block[0] * self.block[1] * self.block[2]
        if threads * spec.max_registers_per_thread > spec.registers_per_block:
            resources = self.kernel.resources
            if resources.source == "ptxas":
                check_registers(spec, threads, resources.registers)

    def _execute(
        self, execute: Execute, launch: Launch, arguments: Arguments, progress: Progress | None
    ) -> Execution:
        """Run the launch; host arrays get their results back if it ended well."""
        kernel, context = self.kernel, self.kernel.context
        try:
            with context.turn:
                started = time.perf_counter()
                counted = execute(kernel.program, launch, context.memory, progress)
                seconds = time.perf_counter() - started
            arguments.copy_back()
        finally:
            arguments.release()
        return Execution(counted, seconds)

    def _start(self, work: Callable[[], Execution]) -> Future[Execution]:
        if self.stream is not None:
            return self.stream.submit(work)
        done: Future[Execution] = Future()
        done.set_result(work())
        return done


def _check_directives(function: Function, block: Dim3) -> None:
    """What the kernel itself demands of a block (PTX ISA, "Performance-Tuning Directives")."""
    threads = block[0] * block[1] * block[2]
    for directive, values in function.directives:
        numbers = [int(value) for value in values] if directive in ("maxntid", "reqntid") else []
        limit = 1
        for number in numbers:
            limit *= number
        if directive == "maxntid" and threads > limit:
            raise LaunchError(
                f"a block of {threads} threads is too large for {function.name}: it was compiled"
                f" for at most {limit} (__launch_bounds__ or .maxntid).",
                resource="threads",
                requested=threads,
                limit=limit,
            )
        if directive == "reqntid" and (*numbers, 1, 1)[:3] != block:
            raise LaunchError(
                f"{function.name} wants blocks of exactly {numbers} threads (.reqntid), not"
                f" {list(block)}.",
                resource="threads",
                requested=threads,
                limit=limit,
            )
