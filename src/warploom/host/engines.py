"""The engines that a device can have, each imported only when a device asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from warploom.core.errors import WarploomError
from warploom.cost.device_rules import MemoryOptions
from warploom.devices.spec import DeviceSpec
from warploom.machine.launch import WARP_SIZE, Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.program.program import Program

if TYPE_CHECKING:
    from warploom.machine.compiled.engine import CompiledEngine
    from warploom.machine.reference.machine import ReferenceEngine
    from warploom.machine.reference.state import Listener

Progress = Callable[[int, int], None]
"""Called now and then while a kernel runs: blocks done, blocks in all."""

ENGINES = ("compiled", "reference")


def choose_engine(name: str | None, spec: DeviceSpec) -> str:
    """Returns the engine of that name, one of ENGINES, or the fastest that the device can have.

    Raises WarploomError where the device cannot have that one.
    """
    if name is None:
        return "compiled" if spec.warp_size == WARP_SIZE else "reference"
    if name == "compiled" and spec.warp_size != WARP_SIZE:
        raise WarploomError(
            f"the compiled engine requires warps of {WARP_SIZE} lanes, not {spec.warp_size}: do "
            "not specify an engine, or specify 'reference'"
        )
    return name


class Execute(Protocol):
    """Run a launch to its end, and return a function that makes its tally; only the compiled engine
    reports its progress."""

    def __call__(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]: ...


def watched(spec: DeviceSpec, options: MemoryOptions, listener: Listener) -> Execute:
    """Returns the reference engine, which reports every instruction and access to a listener."""
    from warploom.machine.reference.machine import ReferenceEngine

    engine = ReferenceEngine(spec, options)
    return _made(lambda program, launch, memory: engine.launch(program, launch, memory, listener))


def _made(run: Callable[[Program, Launch, DeviceMemory], Tally]) -> Execute:
    """Returns an engine that makes the tally while it runs."""

    def execute(
        program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        tally = run(program, launch, memory)
        return lambda: tally

    return execute


def find_engine(
    name: str, spec: DeviceSpec, options: MemoryOptions, workers: int | None
) -> Execute:
    """Returns the engine of a name that `choose_engine` gave; only the compiled one has more than
    one worker (None: as many as pay)."""
    if name == "compiled":
        from warploom.machine.compiled.engine import CompiledEngine

        return CompiledEngine(spec, options, workers).run
    from warploom.machine.reference.machine import ReferenceEngine

    return _made(ReferenceEngine(spec, options).launch)


def checking_engine(
    name: str, spec: DeviceSpec, options: MemoryOptions
) -> CompiledEngine | ReferenceEngine:
    """Returns the engine for launches with sanitizers, of a name that `choose_engine` gave."""
    if name == "compiled":
        from warploom.machine.compiled.engine import CompiledEngine

        return CompiledEngine(spec, options)
    from warploom.machine.reference.machine import ReferenceEngine

    return ReferenceEngine(spec, options)


def llvm_ir_of(
    spec: DeviceSpec, options: MemoryOptions, program: Program, launch: Launch, *, baseline: bool
) -> str:
    """Returns the LLVM IR that the compiled engine makes of a program for such launches: of
    optimized code, or of `baseline` code."""
    from warploom.machine.compiled.engine import CompiledEngine

    return CompiledEngine(spec, options).llvm_ir(program, launch, baseline=baseline)


def warp_ir_of(spec: DeviceSpec, options: MemoryOptions, program: Program, launch: Launch) -> str:
    """Returns what the passes of the compiled engine find of a program for such launches, as
    text."""
    from warploom.ir.text import print_warp_ir
    from warploom.machine.compiled.engine import CompiledEngine

    return print_warp_ir(CompiledEngine(spec, options).warp_ir(program, launch))


def passes_of(spec: DeviceSpec, options: MemoryOptions, program: Program, launch: Launch) -> str:
    """Returns the text of `warp_ir_of` after each pass, each under a comment with its name."""
    from warploom.ir.text import print_warp_ir
    from warploom.machine.compiled.engine import CompiledEngine
    from warploom.passes.pipeline import after_each_pass

    begun = CompiledEngine(spec, options).initial_warp_ir(program, launch)
    texts = ((name, print_warp_ir(ir)) for name, ir in after_each_pass(begun))
    return "\n".join(f"# after {name}\n{text}" for name, text in texts)


def access_plans_of(
    spec: DeviceSpec, options: MemoryOptions, program: Program, launch: Launch
) -> list[tuple[int, str]]:
    """Returns how optimized code for such launches does a program's accesses to memory: for each,
    the number of its instruction and a sentence."""
    from warploom.machine.compiled.engine import CompiledEngine

    plans = CompiledEngine(spec, options).access_plans(program, launch)
    return [(plan.instruction, str(plan)) for plan in plans]
