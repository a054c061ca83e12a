"""Launches that call an observer (`observe.observer`), on either machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.cost.device_rules import MemoryOptions
from warploom.devices.spec import DeviceSpec
from warploom.host.engines import Execute, Progress
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.observation import Observation
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.simt.schedule_layout import ENDED


def observed(
    name: str, spec: DeviceSpec, options: MemoryOptions, observation: Observation
) -> Execute:
    """Returns the engine of a name that `choose_engine` gave, calling an observer: on one worker,
    so that its calls have an order."""
    engine = _Observed(spec, options, observation)
    return engine.compiled if name == "compiled" else engine.reference


@dataclass(frozen=True)
class _Observed:
    """The engines of a device, calling an observer."""

    spec: DeviceSpec
    options: MemoryOptions
    observation: Observation

    def reference(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        """Runs a launch on the reference machine."""
        from warploom.machine.reference.machine import ReferenceEngine

        observer = self.observation.begin(program)
        engine = ReferenceEngine(self.spec, self.options)
        tally = engine.launch(program, launch, memory, observer=observer)
        observer.check()
        return lambda: tally

    def compiled(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        """Runs a launch as machine code."""
        from warploom.machine.compiled.counted import Counted
        from warploom.machine.compiled.engine import CompiledEngine
        from warploom.machine.compiled.outcome import check_limit, error_of

        observer = self.observation.begin(program)
        engine = CompiledEngine(self.spec, self.options)
        work, status = engine.record(program, launch, memory, None, progress, observer=observer)
        if status != ENDED:
            raise error_of(work, status)
        observer.check()
        counted = Counted.of(work)
        if launch.max_instructions is None:
            return counted
        tally = counted()
        check_limit(tally, work)
        return lambda: tally
