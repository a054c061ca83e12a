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
    """Run a launch to its end, and give what makes its tally; only the compiled engine tells its
    progress."""

    def __call__(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]: ...


def watched(spec: DeviceSpec, options: MemoryOptions, listener: Listener) -> Execute:
    """The reference engine, telling a listener all that happens."""
    from warploom.machine.reference.machine import ReferenceEngine

    engine = ReferenceEngine(spec, options)
    return _made(lambda program, launch, memory: engine.launch(program, launch, memory, listener))


def _made(run: Callable[[Program, Launch, DeviceMemory], Tally]) -> Execute:
    """An engine that makes the tally while it runs."""

    def execute(
        program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        tally = run(program, launch, memory)
        return lambda: tally

    return execute


def find_engine(name: str, spec: DeviceSpec, options: MemoryOptions, workers: int) -> Execute:
    """The engine of that name, for a device; only the compiled one has more than one worker."""
    if name == "compiled":
        from warploom.machine.compiled import CompiledEngine

        return CompiledEngine(spec, options, workers).run
    if name == "reference":
        from warploom.machine.reference.machine import ReferenceEngine

        return _made(ReferenceEngine(spec, options).launch)
    raise WarploomError(f"there is no engine {name!r}; there are {' and '.join(ENGINES)}")
