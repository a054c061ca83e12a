"""Launches for tests of the debugger."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warploom.cost.device_rules import MemoryOptions
from warploom.debug.stepper import Stepper
from warploom.debug.target import Target
from warploom.debug.timeline import Words
from warploom.devices.catalog import find_device
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse


def target_of(
    text: str,
    shape: tuple[int, int],
    size: int,
    schedule: Schedule | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> tuple[Target, int]:
    """The launch of a kernel `k` in PTX, with one buffer of so many bytes, and where that is."""
    module = parse(text)
    program = build(module, "k")
    memory = DeviceMemory(1 << 30)
    image = ModuleGlobals(module, memory)
    buffer = memory.allocate(size, "buffer")
    drawn = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    memory.write(buffer.address, drawn.tobytes())
    launch = Launch(
        (shape[0], 1, 1),
        (shape[1], 1, 1),
        struct.pack("<Q", buffer.address),
        image.addresses(program.globals),
        max_instructions=limit,
        schedule=schedule or Schedule(),
    )
    return Target.of(program, launch, memory, find_device(), MemoryOptions()), buffer.address


@dataclass
class AtInstructions:
    """Finds where a warp is about to execute one of some instructions, under a condition."""

    program: Program
    instructions: set[int]
    condition: Callable[[Stepper], bool] = lambda _: True
    watch: Words | None = None
    blocks: range | None = None
    _basic: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self._basic = [
            b.index
            for b in self.program.blocks
            if self.instructions.intersection(range(b.start, b.stop))
        ]

    def may_hit(self, counts: Words, *, watched: bool) -> bool:
        return any(counts[2 * block] for block in self._basic)

    def before(self, stepper: Stepper) -> bool:
        return stepper.index in self.instructions and self.condition(stepper)

    def after(self, stepper: Stepper) -> bool:
        return False
