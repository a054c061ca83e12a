"""Kernels and their launch: the configuration, the checks, the wait."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, cast

from warploom.analysis.build import build
from warploom.analysis.program import Program
from warploom.core.errors import Dim3, LaunchError
from warploom.devices.launches import check_launch, check_registers
from warploom.devices.occupancy import Demand, Occupancy, occupancy_of
from warploom.devices.spec import DeviceSpec
from warploom.host.arguments import Arguments, pack
from warploom.host.engines import Execute, Progress
from warploom.host.resources import Resources, resources_of
from warploom.host.run import Execution, Run
from warploom.host.stream import Stream
from warploom.host.targets import check_instructions
from warploom.machine.image import Image
from warploom.machine.launch import Launch, Schedule, shared_bytes
from warploom.machine.memory import DeviceMemory
from warploom.ptx.ir import Function, Module
from warploom.rules.choice import AccessRules


@dataclass(frozen=True)
class Context:
    """What a launch needs of its device. `engine` is made when it is first asked for."""

    spec: DeviceSpec
    rules: AccessRules
    memory: DeviceMemory
    engine_name: str
    engine: Callable[[], Execute]
    output: Callable[[str], object] | None = None
    """What takes the text that kernels print; None is the standard output."""
    schedule: Schedule = field(default_factory=Schedule)
    """Who goes first where the architecture leaves it open."""
    turn: Lock = field(default_factory=Lock)
    """Held while a kernel runs: streams run beside the host, and by turns among themselves."""


class Kernel:
    """One kernel; `kernel[grid, block, stream, shared_bytes](*args)` launches it.

    Grid and block are integers or tuples of one to three; the stream and the bytes of dynamic
    shared memory can be left out.
    """

    def __init__(self, context: Context, ptx: Module, image: Image, name: str) -> None:
        self.context, self.image, self.name = context, image, name
        self._ptx = ptx

    @cached_property
    def program(self) -> Program:
        """The kernel as machines run it; UnsupportedInstruction where the device cannot."""
        program = build(self._ptx, self.name)
        check_instructions(program, self.context.spec)
        return program

    @property
    def line(self) -> str:
        """Where it begins, as `file:line` of its source."""
        return self.program.line(0)

    @cached_property
    def resources(self) -> Resources:
        """Registers and barriers, as ptxas says or as estimated."""
        return resources_of(self.program, self.function, self.context.spec)

    @cached_property
    def function(self) -> Function:
        """The kernel as PTX declares it."""
        return next(entry for entry in self._ptx.entries if entry.name == self.name)

    def __getitem__(self, configuration: Any) -> Launcher:
        given = _tuple(configuration)
        if not 2 <= len(given) <= 4:
            raise LaunchError(
                f"{self.name}[...] takes grid, block and, if wanted, a stream and bytes of dynamic"
                f" shared memory; it got {len(given)} values. Try {self.name}[blocks, threads]."
            )
        grid, block, stream, shared = given + (None, None, None, 0)[len(given) :]
        if stream and not isinstance(stream, Stream):
            raise LaunchError(
                f"{self.name}[...]: the third value is a stream (`device.stream()`, or 0 for none),"
                f" not {stream!r}; bytes of dynamic shared memory come fourth"
            )
        [dynamic] = _integers("shared memory", "a number of bytes", shared, 1)
        if dynamic < 0:
            raise LaunchError(f"{self.name}[...]: {dynamic} bytes of shared memory make no sense")
        return Launcher(self, _dims("grid", grid), _dims("block", block), stream or None, dynamic)

    def occupancy(self, launch: Launch) -> Occupancy:
        """How many of a launch's blocks an SM holds; registers are ptxas' own or an estimate."""
        resources = self.resources
        demand = Demand(
            launch.threads_per_block,
            resources.registers,
            shared_bytes(self.program, launch),
            resources.barriers,
        )
        return occupancy_of(self.context.spec, demand)

    def __repr__(self) -> str:
        return f"Kernel({self.name})"


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch configuration; calling it launches."""

    kernel: Kernel
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
        kernel, context = self.kernel, self.kernel.context
        program = kernel.program
        variables = kernel.image.addresses(program.globals)
        launch = Launch(
            self.grid,
            self.block,
            b"",
            variables,
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
        launch = replace(launch, schedule=schedule)
        arguments = pack(program, kernel.function.parameters, args, context.memory)
        launch = replace(launch, parameters=bytes(arguments.data))
        work = self._start(lambda: _execute(context, program, launch, arguments, progress))
        return Run(kernel, launch, work)

    def _check_registers(self) -> None:
        """Refuse blocks with too many registers, where ptxas tells; an estimate refuses nothing."""
        spec, threads = self.kernel.context.spec, self.block[0] * self.block[1] * self.block[2]
        if threads * spec.max_registers_per_thread > spec.registers_per_block:
            resources = self.kernel.resources
            if resources.source == "ptxas":
                check_registers(spec, threads, resources.registers)

    def _start(self, work: Callable[[], Execution]) -> Future[Execution]:
        if self.stream is not None:
            return self.stream.submit(work)
        done: Future[Execution] = Future()
        done.set_result(work())
        return done


def _execute(
    context: Context,
    program: Program,
    launch: Launch,
    arguments: Arguments,
    progress: Progress | None,
) -> Execution:
    """Run the launch; host arrays get their results back if it ended well."""
    try:
        with context.turn:
            started = time.perf_counter()
            tally = context.engine()(program, launch, context.memory, progress)
            seconds = time.perf_counter() - started
        arguments.copy_back()
    finally:
        arguments.release()
    return Execution(tally, seconds)


def _dims(what: str, given: Any) -> Dim3:
    """An integer, or one to three of them, as (x, y, z)."""
    numbers = _integers(what, "an integer or a tuple of one to three", given, 3)
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _integers(what: str, wanted: str, given: Any, most: int) -> tuple[int, ...]:
    try:
        numbers = tuple(operator.index(part) for part in _tuple(given))
    except TypeError:
        numbers = ()
    if not 1 <= len(numbers) <= most:
        raise LaunchError(f"the {what} of a launch is {wanted}, not {given!r}")
    return numbers


def _tuple(given: Any) -> tuple[Any, ...]:
    """What was given as a tuple: itself, a list as one, anything else as one of one."""
    return tuple(cast("Sequence[Any]", given)) if isinstance(given, (tuple, list)) else (given,)


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
