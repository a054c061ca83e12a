"""The two ways of recording a launch: by the reference machine, or by compiled code that writes a
log. Both give the same, but for registers, which only the reference machine records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from warploom.core.collector import collector_paused
from warploom.host.engines import Execute, Progress, watched
from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.observe.contents import allocations_at
from warploom.observe.limits import TraceLimits
from warploom.observe.recorder import RecordedTrace, Recorder
from warploom.observe.schema import Allocated
from warploom.program.program import Program
from warploom.simt import schedule_layout


class Recording(Protocol):
    """A launch that is to be recorded: run it, then ask what was recorded."""

    @property
    def execute(self) -> Execute: ...

    def recorded(self) -> RecordedTrace: ...


def recording_of(kernel: LoadedKernel, limits: TraceLimits, engine: str) -> Recording:
    """Returns the recording of the engine of that name, one of ENGINES."""
    return (ReferenceRecording if engine == "reference" else CompiledRun)(kernel, limits)


class ReferenceRecording:
    """Records by listening to the reference machine."""

    def __init__(self, kernel: LoadedKernel, limits: TraceLimits) -> None:
        context = kernel.context
        self._recorder = Recorder(kernel.program, context.rules, limits)
        self.execute = watched(context.spec, context.options, self._recorder)

    def recorded(self) -> RecordedTrace:
        return self._recorder.recorded()


class CompiledRun:
    """Records by compiled code."""

    def __init__(self, kernel: LoadedKernel, limits: TraceLimits) -> None:
        self._kernel, self._limits = kernel, limits
        self._live: Sequence[Allocated] = ()

    def execute(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        from warploom.machine.compiled.counted import Counted
        from warploom.machine.compiled.engine import CompiledEngine
        from warploom.machine.compiled.logs import Log
        from warploom.machine.compiled.outcome import error_of

        context, limits = self._kernel.context, self._limits
        self._launch = launch
        self._live = allocations_at(memory, memory.live(), limits.contents)
        self._log = Log.empty(launch, warps=limits.warps, steps=limits.steps, blocks=limits.blocks)
        engine = CompiledEngine(context.spec, context.options)
        self._work, self._status = engine.record(program, launch, memory, self._log, progress)
        if self._status != schedule_layout.ENDED:
            raise error_of(self._work, self._status)
        return Counted.of(self._work)

    def recorded(self) -> RecordedTrace:
        from warploom.abi.environment import Status
        from warploom.observe.compiled_trace import CompiledRecording, Ending

        tables = self._work.unfinished()
        faulted = self._work.faulted if self._status is Status.FAULT else None
        made = CompiledRecording(
            self._kernel.program,
            self._kernel.context.rules,
            self._launch,
            self._log,
            Ending(faulted, tables),
        )
        with collector_paused():
            return made.recorded(self._live)
