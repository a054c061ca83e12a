"""A launch with its arguments: what runs it (the engine, or one that debugs, checks, records or
observes it), and what is done before and after it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from warploom.core.errors import DeadlockError, LaunchError
from warploom.devices.occupancy import Demand
from warploom.host import debugging
from warploom.host.arguments import Arguments
from warploom.host.debugging import Debugger
from warploom.host.engines import Execute, Progress, checking_engine, find_engine
from warploom.host.launch_options import LaunchOptions
from warploom.host.loaded import LoadedKernel
from warploom.host.residency import ResidentBlocks, resident_kernels, slots_beside
from warploom.host.run import Execution, Run
from warploom.host.stream import Stream
from warploom.machine.compiled.compile_time import compile_time
from warploom.machine.faults.endless import interrupted
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.observation import Observation
from warploom.machine.placement import SlotPlacement
from warploom.machine.tally import Tally
from warploom.machine.turn import Cancellation
from warploom.program.effects.synchronising import triggers_launch
from warploom.program.program import PARAMETERS, Program
from warploom.sanitize.findings import Finding
from warploom.sanitize.stream_order import HOST, IssuedWork

if TYPE_CHECKING:
    from warploom.host.timelines import Timeline
    from warploom.sanitize.launching import SanitizedLaunch

WORKSPACE_BYTES = 8

Result = TypeVar("Result")
Work = Callable[[], Execution]


class LaunchSaver(Protocol):
    """Saves launches, some or all."""

    def wraps(
        self, kernel: LoadedKernel, execute: Execute, findings: Sequence[Finding] | None
    ) -> Execute:
        """Returns what runs a launch of a kernel as `execute` does, and may save it; `findings` are
        filled while it runs."""
        ...


@dataclass(frozen=True)
class LaunchHooks:
    """Holds what surrounds and what follows a launch: `savers` save it, `on_run` is called with
    each that ended well, and `timelines` are being taken of the device."""

    on_run: Callable[[Run], object] | None = None
    savers: tuple[LaunchSaver, ...] = ()
    timelines: list[Timeline] = field(default_factory=list["Timeline"])


class LaunchableKernel(LoadedKernel):
    """A kernel with the hooks of its device."""

    hooks = LaunchHooks()


@dataclass(eq=False)
class ReadyLaunch:
    """A launch of a kernel that has its arguments, and can run once; from when it begins on,
    `launch` says where it is resident, if others are beside it."""

    kernel: LaunchableKernel
    launch: Launch
    arguments: Arguments
    cancellation: Cancellation

    @classmethod
    def of(cls, kernel: LaunchableKernel, launch: Launch, arguments: Arguments) -> ReadyLaunch:
        """Returns a launch with its arguments; a cooperative one with the memory in which its
        blocks wait for each other: its size, and a count of theirs."""
        memory, globals, workspace = kernel.context.memory, launch.globals, 0
        if PARAMETERS in kernel.program.slots:
            globals = (*globals, arguments.show(memory).address)
        if launch.cooperative:
            counters = np.array([WORKSPACE_BYTES, 0], np.uint32)
            workspace = arguments.hold(counters, "the workspace of the grid", memory).address
        cancellation = Cancellation()
        filled = launch.filled(bytes(arguments.data), globals, workspace, cancellation)
        return cls(kernel, filled, arguments, cancellation)

    def begin(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Retains from now on what the launch can use; returns its work, which at its end gives
        back the arguments, and what was freed while it could use it."""
        return partial(self._finish, self.kernel.context.memory.begin_launch(), work)

    def _finish(self, number: int, work: Callable[[], Result]) -> Result:
        """Executes the launch of that number, and ends it."""
        try:
            self.cancellation.check()
            return work()
        finally:
            self.kernel.context.memory.end_launch(number)
            self.arguments.release()

    def execute(
        self,
        execute: Execute,
        progress: Progress | None = None,
        findings: Sequence[Finding] | None = None,
        completed: Callable[[Execution], Execution] | None = None,
    ) -> Execution:
        """Runs the launch; host arrays get their results back if it ended well. `findings` is what
        the execution fills, where it is sanitized; `completed` adds to the result what was recorded
        beside it."""
        kernel, context, hooks = self.kernel, self.kernel.context, self.kernel.hooks
        for saver in hooks.savers:
            execute = saver.wraps(kernel, execute, findings)
        context.turn.acquire(self.cancellation)
        try:
            program = kernel.program
            if self.cancellation.lock is not None:
                self.cancellation.owner = self
            if context.turn.has_waiting:
                self._place()
            started, compiled = time.perf_counter(), compile_time.seconds
            try:
                counted = execute(program, self.launch, context.memory, progress)
            except KeyboardInterrupt as interrupt:
                raise interrupted(program, interrupt) from None
            compiled = compile_time.seconds - compiled
            seconds = time.perf_counter() - started - compiled
        finally:
            self.cancellation.owner = None
            context.turn.give_back()
        self.arguments.copy_back()
        if findings is None:
            context.memory.unwritten.clear()  # it may have written anything
        execution = Execution(counted, seconds, compiled, findings=tuple(findings or ()))
        if completed is not None:
            execution = completed(execution)
        if hooks.on_run is not None:
            hooks.on_run(Run(kernel, self.launch, execution))
        return execution

    def demand(self) -> Demand:
        """Returns the resources that a block of the launch takes."""
        return self.kernel.occupancy(self.launch).demand

    def resident_blocks(self) -> ResidentBlocks:
        """Returns the blocks that are resident while the launch waits for memory."""
        on_sm = Counter(map(self.launch.sm_of_slot, self.cancellation.occupied))
        return ResidentBlocks(self.kernel.program.title, self.demand(), on_sm)

    def _place(self) -> None:
        """Gives the launch the slots for blocks that the device has beside launches that wait for
        memory; waits until there are some. Raises DeadlockError if there never will be."""
        context, cancellation = self.kernel.context, self.cancellation
        placement = SlotPlacement([])
        in_stream = cancellation.lock is not None
        if not in_stream:
            cancellation.begin_wait()
        try:
            while True:
                self._add_slots(placement)
                if placement.sms:
                    break
                if not context.turn.let_others_run(cancellation, cancellation.changes):
                    raise self._no_capacity(sum(one.blocks for one in placement.others))
        finally:
            if not in_stream:
                cancellation.end_wait()
        placement.sms = placement.sms[: self.launch.schedule.slots(self.launch)]
        cancellation.on_resume = partial(self._add_slots, placement)
        self.launch = replace(self.launch, placement=placement)

    def _add_slots(self, placement: SlotPlacement) -> None:
        """Adds the slots to a placement that launches which wait for memory leave now."""
        others = [
            one.owner.resident_blocks()
            for one in self.kernel.context.turn.waiting
            if isinstance(one.owner, ReadyLaunch)
        ]
        spec, size = self.kernel.context.spec, self.launch.cluster_blocks
        placement.sms += slots_beside(spec, self.demand(), size, others, placement.sms)
        placement.others = resident_kernels(spec, others)

    def _no_capacity(self, blocks: int) -> DeadlockError:
        """Returns the error of a launch that can never begin."""
        return DeadlockError(
            f"{self.kernel.program.title} can never start: kernels that poll memory occupy "
            f"{self.kernel.context.spec.title} with {blocks:,} blocks, so there is no room for "
            "this kernel. "
            "Launch fewer blocks of each kernel that waits for another kernel.",
            (),
        )


def work_of(
    ready: ReadyLaunch, options: LaunchOptions, stream: Stream | None, progress: Progress | None
) -> tuple[Work, IssuedWork | None]:
    """Returns what runs a launch with its options, and its position in the order of streams where
    that is recorded. Raises LaunchError for an observer beside a debugger or tools."""
    kernel, context = ready.kernel, ready.kernel.context
    tools, observation = options.get("sanitize"), options.get("observe")
    tools = context.sanitize if tools is None else tools
    debugger = debugging.debugger_of(kernel) if debugging.attached else None
    if observation is not None and (debugger is not None or tools):
        raise LaunchError(
            f"{kernel.name} cannot be observed and {'sanitized' if tools else 'debugged'} in the "
            "same launch. Launch it once for each."
        )
    if debugger is not None:
        return partial(ready.execute, _debugged(kernel, debugger), progress), None
    if tools:
        programmatic = bool(options.get("programmatic"))
        issued = _issued(kernel, stream, tools, programmatic=programmatic)
        return partial(_sanitized, ready, tuple(tools), issued, progress), issued
    if ready.launch.schedule.needs_reference:
        return partial(ready.execute, _reference(kernel, observation), progress), None
    described = kernel, ready.launch, ready.arguments
    if context.record or any(one.needs_record(*described) for one in kernel.hooks.timelines):
        return partial(_timed, ready, observation, progress), None
    if observation is not None:
        return partial(ready.execute, _observed(kernel, observation), progress), None
    return partial(ready.execute, context.engine, progress), None


def sanitized_launch(
    ready: ReadyLaunch, tools: tuple[str, ...], issued: IssuedWork | None = None
) -> SanitizedLaunch:
    """Returns what runs a launch with some tools, `issued` among the work of streams."""
    from warploom.sanitize.launching import SanitizedLaunch

    context = ready.kernel.context
    engine, streams = context.checking_engine, context.streams
    if ready.launch.schedule.needs_reference:
        engine = checking_engine("reference", context.spec, context.options)
    return SanitizedLaunch(engine, tools, context.memory.unwritten, streams, issued)


def _sanitized(
    ready: ReadyLaunch, tools: tuple[str, ...], issued: IssuedWork | None, progress: Progress | None
) -> Execution:
    """Runs the launch with the detector of `warploom.sanitize` at its side."""
    checked = sanitized_launch(ready, tools, issued)
    return ready.execute(checked.execute, progress, checked.findings)


def _timed(
    ready: ReadyLaunch, observation: Observation | None, progress: Progress | None
) -> Execution:
    """Runs the launch and records what timing needs."""
    from warploom.host.records.timing import TimedRun

    timed = TimedRun(ready.kernel, observation)

    def recorded(execution: Execution) -> Execution:
        return replace(execution, record=timed.record, executed_blocks=timed.executed_blocks)

    return ready.execute(timed.execute, progress, completed=recorded)


def _debugged(kernel: LoadedKernel, debugger: Debugger) -> Execute:
    """Returns what runs a launch under a debugger."""

    def execute(
        program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        return debugger.execute(kernel, program, launch, memory)

    return execute


def _reference(kernel: LoadedKernel, observation: Observation | None) -> Execute:
    """Returns the reference machine, calling the observer if there is one."""
    if observation is not None:
        return _observed(kernel, observation, "reference")
    return find_engine("reference", kernel.context.spec, kernel.context.options, 1)


def _observed(kernel: LoadedKernel, observation: Observation, engine: str = "") -> Execute:
    """Returns the engine of that name, else the device's, calling an observer."""
    from warploom.host.observing import observed

    context = kernel.context
    return observed(engine or context.engine_name, context.spec, context.options, observation)


def _issued(
    kernel: LoadedKernel, stream: Stream | None, tools: Sequence[str], *, programmatic: bool
) -> IssuedWork | None:
    """Returns the position of a launch in the order of streams; None where it need not be recorded:
    no tool looks for races, or there is one stream, in which no launch lets the next begin."""
    if "race" not in tools:
        return None
    streams = kernel.context.streams
    queue = stream or streams.order.current
    if stream is not None:
        streams.order.add(stream, blocking=False)
    if queue is not None and any(map(triggers_launch, kernel.program.instructions)):
        streams.order.note_trigger()
    if not streams.order.several:
        return None
    if queue is None:
        issued = streams.order.issue(HOST)
    else:
        issued = streams.order.issue_launch(queue, programmatic=programmatic)
    streams.begin(issued)
    return issued
