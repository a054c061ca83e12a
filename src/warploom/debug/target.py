"""The launch that is debugged, what it prints, and what sanitizers find in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from warploom.core.lazy import cached_property
from warploom.cost.device_rules import MemoryOptions
from warploom.devices.spec import DeviceSpec
from warploom.host.engines import checking_engine
from warploom.isa.kinds import Needs
from warploom.machine.launch import WARP_SIZE, Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.turn import Cancellation
from warploom.program.program import Program
from warploom.program.services import service_of
from warploom.sanitize.launching import SanitizedLaunch
from warploom.sanitize.report import FindingSite


@dataclass
class Output:
    """Keeps what a launch prints. It runs again and again; each text is shown once, and not before
    the debugger has come to where it is printed. `count` is how many texts the launch has printed
    where it stands now."""

    write: Callable[[str], object]
    count: int = 0
    _texts: list[str] = field(default_factory=list[str])
    _shown: int = 0

    def take(self, text: str) -> None:
        """Records a text that the kernel prints."""
        self._texts[self.count :] = (
            [text] if self.count >= len(self._texts) else ([text, *self._texts[self.count + 1 :]])
        )
        self.count += 1

    def show(self) -> None:
        """Writes what is printed up to where the launch stands now, and has not been written."""
        for text in self._texts[self._shown : self.count]:
            self.write(text)
        self._shown = max(self._shown, self.count)


@dataclass(frozen=True)
class Target:
    """Describes a launch: what runs, on which memory of which device."""

    program: Program
    launch: Launch
    memory: DeviceMemory
    spec: DeviceSpec
    options: MemoryOptions
    output: Output

    @classmethod
    def of(
        cls,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        spec: DeviceSpec,
        options: MemoryOptions,
    ) -> Target:
        """Returns the target of a launch. Caches are not simulated: their lines would be a part of
        each saved state."""
        options = replace(options, caches=False)
        output = Output(launch.output or sys.stdout.write)
        unbounded = replace(launch, output=output.take, cancellation=Cancellation())
        return cls(program, unbounded, memory, spec, options, output)

    @property
    def limit(self) -> int | None:
        """Returns the warp instructions that the launch may execute."""
        return self.launch.max_instructions

    @cached_property
    def compiled_launch(self) -> Launch:
        """Returns the launch for compiled code, which does not look at the limit."""
        return replace(self.launch, max_instructions=None)

    @cached_property
    def allocates(self) -> bool:
        """Returns whether the kernel calls malloc or free."""
        return any(service_of(m) in ("malloc", "free") for m in self.program.instructions)

    @cached_property
    def not_compiled(self) -> str:
        """Returns the reason why compiled code cannot run the launch in parts, empty where it can:
        operations that are not complete between two turns are kept by each machine in its own
        way."""
        if self.launch.warp_size != WARP_SIZE:
            return f"its warps have {self.launch.warp_size} lanes"
        if self.launch.schedule.needs_reference:
            return "its warps run in a given order, or are interrupted at given instructions"
        delays = self.program.needs & (Needs.IN_FLIGHT_RING | Needs.COMPLETION_QUEUE)
        if self.launch.schedule.shuffles and delays:
            return "its schedule delays asynchronous copies or warpgroup matrix products"
        return ""

    @property
    def compiles(self) -> bool:
        """Returns whether compiled code can run the launch in parts."""
        return not self.not_compiled

    @cached_property
    def goes_block_by_block(self) -> bool:
        """Returns whether blocks run one after the other, as far as the policy decides it."""
        clustered = self.launch.cluster_blocks > 1
        return not (self.launch.schedule.shuffles or clustered or self.launch.cooperative)


def sites_found(target: Target, engine: str, tool: str) -> list[FindingSite]:
    """Returns the accesses that a tool finds fault with, in the order in which they come up. Memory
    is as it was before the launch, and changed by it. Raises WarploomError where the sanitizer
    cannot check the launch."""
    memory = target.memory
    unwritten = {address: bits.copy() for address, bits in memory.unwritten.items()}
    made = checking_engine(engine, target.spec, target.options)
    checked = SanitizedLaunch(made, (tool,), unwritten)
    checked.execute(target.program, target.launch, memory, None)
    return checked.sites
