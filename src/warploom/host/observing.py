"""Launches that call an observer (`observe.observer`), on either machine."""

from __future__ import annotations

from collections.abc import Callable

from warploom.analysis.program import Program
from warploom.devices.spec import DeviceSpec
from warploom.host.engines import Execute, Progress
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.machine.observation import Observation
from warploom.machine.tally import Tally
from warploom.rules.choice import MemoryOptions
from warploom.rules.plan_words import ENDED


def observed(
    name: str, spec: DeviceSpec, options: MemoryOptions, observation: Observation
) -> Execute:
    """Return the engine of a name that `choose_engine` gave, calling an observer: on one worker, so
    that its calls have an order."""
    run = _run_compiled if name == "compiled" else _run_reference

    def execute(
        program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        return run(spec, options, observation, program, launch, memory, progress)

    return execute


def _run_reference(
    spec: DeviceSpec,
    options: MemoryOptions,
    observation: Observation,
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    progress: Progress | None,
) -> Callable[[], Tally]:
    from warploom.machine.reference.machine import ReferenceEngine

    observer = observation.begin(program)
    tally = ReferenceEngine(spec, options).launch(program, launch, memory, observer=observer)
    observer.check()
    return lambda: tally


def _run_compiled(
    spec: DeviceSpec,
    options: MemoryOptions,
    observation: Observation,
    program: Program,
    launch: Launch,
    memory: DeviceMemory,
    progress: Progress | None,
) -> Callable[[], Tally]:
    from warploom.machine.compiled import CompiledEngine
    from warploom.machine.counted import Counted
    from warploom.machine.outcome import check_limit, error_of

    observer = observation.begin(program)
    engine = CompiledEngine(spec, options)
    work, status = engine.record(program, launch, memory, None, progress, observer=observer)
    if status != ENDED:
        raise error_of(work, status)
    observer.check()
    counted = Counted.of([work])
    if launch.max_instructions is None:
        return counted
    tally = counted()
    check_limit(tally, work)
    return lambda: tally
