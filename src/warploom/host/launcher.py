"""The launch of a kernel: the checks, the arguments, the wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from warploom.core.errors import DeadlockError, Dim3, InstructionLimit, KernelFault, LaunchError
from warploom.devices.launches import check_launch, check_registers
from warploom.host.arguments import Arguments, pack
from warploom.host.engines import Execute, Progress, watched
from warploom.host.loaded import LoadedKernel
from warploom.host.run import Execution, Run
from warploom.host.stream import Stream
from warploom.machine.launch import Launch, shared_bytes
from warploom.ptx.ir import Function

if TYPE_CHECKING:
    from warploom.observe.trace import Trace, TraceLimits


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
        max_instructions: int | None = None,
        cooperative: bool = False,
        progress: Progress | None = None,
    ) -> Run:
        """Launch with these arguments: Buffers, host arrays (copied in and back), numbers.

        Waits until the kernel has ended, unless there is a stream. `max_instructions` bounds warp
        instructions; `progress(done, all)` hears now and then how many blocks are done. The blocks
        of a `cooperative` launch all run at once, so that they may wait for each other. Raises
        LaunchError for what does not fit, KernelFault, DeadlockError or InstructionLimit for what
        the kernel did.
        """
        launch = self._launch(max_instructions, cooperative)
        arguments = self._pack(args)
        launch = replace(launch, parameters=bytes(arguments.data))
        execute = self.kernel.context.engine
        work = self._start(lambda: self._execute(execute(), launch, arguments, progress))
        return Run(self.kernel, launch, work)

    def trace(
        self,
        *args: Any,
        max_instructions: int | None = None,
        cooperative: bool = False,
        limits: TraceLimits | None = None,
    ) -> Trace:
        """Launch on the reference machine, and give all that every warp did, step by step.

        Where the kernel does something wrong, the trace ends there and `Trace.error` tells what;
        nothing is raised. Raises LaunchError for what does not fit.
        """
        from warploom.observe.trace import Recorder, TraceLimits

        launch = self._launch(max_instructions, cooperative)
        arguments = self._pack(args)
        launch = replace(launch, parameters=bytes(arguments.data))
        context, recorder = self.kernel.context, Recorder(limits or TraceLimits())
        execute, error = watched(context.spec, context.options, recorder), ""
        try:
            self._execute(execute, launch, arguments, None)
        except (KernelFault, DeadlockError, InstructionLimit) as wrong:
            error = str(wrong)
        return recorder.trace(self.kernel.program, launch, error)

    def _launch(self, max_instructions: int | None, cooperative: bool) -> Launch:
        """The launch without its arguments. Raises LaunchError for what the device cannot do."""
        kernel, context = self.kernel, self.kernel.context
        program = kernel.program
        launch = Launch(
            self.grid,
            self.block,
            b"",
            kernel.image.addresses(program.globals),
            self.shared_bytes,
            max_instructions,
            context.schedule,
            context.output,
        )
        check_launch(context.spec, self.grid, self.block, shared_bytes(program, launch))
        _check_directives(kernel.function, self.block)
        self._check_registers()
        resident = kernel.occupancy(launch).active_blocks * context.spec.sms
        if cooperative and launch.blocks > resident:
            raise LaunchError(
                f"a cooperative launch of {kernel.name} needs all its {launch.blocks:,} blocks"
                f" resident at once; {context.spec.name} holds {resident:,} of this kind. Launch"
                f" fewer blocks, and let each do more.",
                resource="resident blocks",
                requested=launch.blocks,
                limit=resident,
            )
        schedule = replace(context.schedule, resident_blocks=max(1, resident))
        return replace(launch, schedule=schedule)

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
                tally = execute(kernel.program, launch, context.memory, progress)
                seconds = time.perf_counter() - started
            arguments.copy_back()
        finally:
            arguments.release()
        return Execution(tally, seconds)

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
