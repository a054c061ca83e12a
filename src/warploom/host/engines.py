"""The engines that a device can have, each imported only when a device asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from warploom.analysis.program import Program
from warploom.core.errors import WarploomError
from warploom.devices.spec import DeviceSpec
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.rules.choice import MemoryOptions

if TYPE_CHECKING:
    from warploom.machine.reference.state import Listener

Progress = Callable[[int, int], None]
"""Called now and then while a kernel runs: blocks done, blocks in all."""

ENGINES = ("compiled", "reference")


class Execute(Protocol):
    """Run a launch to its end; only the compiled engine tells its progress."""

    def __call__(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Tally: ...


def watched(spec: DeviceSpec, options: MemoryOptions, listener: Listener) -> Execute:
    """The reference engine, telling a listener all that happens."""
    from warploom.machine.reference.machine import ReferenceEngine

    engine = ReferenceEngine(spec, options)
    return lambda program, launch, memory, progress: engine.launch(
        program, launch, memory, listener
    )


def find_engine(name: str, spec: DeviceSpec, options: MemoryOptions, workers: int) -> Execute:
    """The engine of that name, for a device; only the compiled one has more than one worker."""
    if name == "compiled":
        from warploom.machine.compiled import CompiledEngine

        return CompiledEngine(spec, options, workers).launch
    if name == "reference":
        from warploom.machine.reference.machine import ReferenceEngine

        engine = ReferenceEngine(spec, options)
        return lambda program, launch, memory, progress: engine.launch(program, launch, memory)
    raise WarploomError(f"there is no engine {name!r}; there are {' and '.join(ENGINES)}")
