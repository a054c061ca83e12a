"""Runs kernels of `shaped_programs` on either machine."""

from __future__ import annotations

import gc
import struct
import time

import numpy as np
from agreement import counts
from hypothesis import strategies as st
from shaped_programs import OUT_BYTES

from warploom.core.errors import WarploomError
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.tally import Tally
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse

BLOCKS = [(32, 1), (64, 1), (40, 1), (16, 4), (48, 2), (8, 4), (24, 4), (4, 17), (12, 5)]
BLOCKS += [(18, 4), (5, 7), (2, 20)]
"""In lines, in rows of 16, 8, 4 and 2, and neither; with and without a last warp that is not
full."""

MASKED = [(32, 1), (64, 1), (128, 1), (40, 1), (32, 3), (96, 2), (16, 4), (48, 2), (8, 4)]
MASKED += [(24, 4), (4, 17), (12, 5), (18, 4), (5, 7), (40, 1), (100, 1), (24, 3)]
"""BLOCKS, and those of several warps in lines."""

LONG_BLOCKS = [(128, 1), (128, 1), (100, 1), (64, 2)]
"""In lines, of several warps."""

WIDE = [(16, 4), (16, 8), (16, 8), (16, 5)]
"""In rows, of several warps."""


MEMORY = 0x2B40_0000_0000
"""Where the memory of each run begins: programs store addresses, which have to be the same in both
machines. The system chooses another place each time, if other threads map memory meanwhile."""


def memory_of_a_run() -> DeviceMemory:
    """Returns memory at `MEMORY`, as soon as nothing holds the last run's any more: neither a cycle
    of objects nor a thread that compiles for it."""
    for _ in range(100):
        try:
            return DeviceMemory(1 << 28, MEMORY)
        except WarploomError:
            gc.collect()
            time.sleep(0.05)
    return DeviceMemory(1 << 28, MEMORY)


def prepared(
    text: str, block: tuple[int, int], schedule: Schedule, blocks: int = 2
) -> tuple[Program, Launch, DeviceMemory, int]:
    """Returns a program, its launch, the memory, and the address of its buffer."""
    module = parse(text)
    program = build(module, "k")
    memory = memory_of_a_run()
    size = 4096 + blocks * block[0] * block[1] * OUT_BYTES
    buffer = memory.allocate(size, "buffer").address
    words = np.random.default_rng(0).integers(0, 1 << 32, size // 4, np.uint32)
    memory.write(buffer, words.tobytes())
    launch = Launch(
        (blocks, 1, 1),
        (*block, 1),
        struct.pack("<Q", buffer),
        ModuleGlobals(module, memory).addresses(program.globals),
        max_instructions=200_000,
        schedule=schedule,
    )
    return program, launch, memory, buffer


def outcome_of(
    text: str, block: tuple[int, int], schedule: Schedule, engine: object, blocks: int = 2
) -> object:
    """Returns the type of a run's error, or the memory and the counts after it."""
    program, launch, memory, buffer = prepared(text, block, schedule, blocks)
    try:
        tally: Tally = engine.launch(program, launch, memory)  # type: ignore[attr-defined]
        size = 4096 + blocks * block[0] * block[1] * OUT_BYTES
        return memory.read(buffer, size), counts(tally)
    except WarploomError as error:
        return type(error)
    finally:
        memory.close()


def schedules() -> st.SearchStrategy[Schedule]:
    """Draws both control-flow models, with two resident blocks."""
    return st.builds(Schedule, independent=st.booleans(), resident_blocks=st.just(2))
