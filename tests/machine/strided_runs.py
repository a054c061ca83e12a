"""Runs kernels of `strided_programs` on either machine."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from agreement import counts
from hypothesis import strategies as st

from warploom.core.errors import MemoryFault, WarploomError
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.tally import Tally
from warploom.program.build import build
from warploom.ptx.parser import parse

FIRST, SECOND = 9000, 5100
"""Bytes of the two arrays; the second is no multiple of a warp's words."""


@dataclass(frozen=True)
class Setting:
    """A launch: its threads, the array and offset of its three pointers, and the bounds of its
    loops."""

    block: tuple[int, int]
    blocks: int
    places: tuple[tuple[int, int], ...]
    count: int
    far: int


def settings_of_launches() -> st.SearchStrategy[Setting]:
    """Draws blocks with full and partial warps, and pointers that overlap."""
    places = st.tuples(st.sampled_from([0, 0, 1]), st.sampled_from([0, 0, 4, 128, 512, 132, 2000]))
    return st.builds(
        Setting,
        block=st.sampled_from([(32, 1), (64, 1), (64, 1), (40, 1), (16, 4), (8, 4), (12, 5)]),
        blocks=st.integers(1, 2),
        places=st.tuples(places, places, places),
        count=st.sampled_from([100, 400, 401, 640, 800, 1300]),
        far=st.sampled_from([64, 96, 128, 100, -64]),
    )


def strided_run(text: str, setting: Setting, schedule: Schedule, engine: object) -> object:
    """Returns the memory and the counts after a run, or its error and the line of that."""
    module = parse(text)
    program, memory = build(module, "k"), DeviceMemory(1 << 28)
    arrays = [memory.allocate(size, "array").address for size in (FIRST, SECOND)]
    threads = setting.blocks * setting.block[0] * setting.block[1]
    out = memory.allocate(4 * threads, "out").address
    numbers = np.random.default_rng(0)
    for array, size in zip(arrays, (FIRST, SECOND), strict=True):
        memory.write(array, numbers.integers(0, 80, size, np.uint8).tobytes())
    pointers = [arrays[array] + offset for array, offset in setting.places]
    launch = Launch(
        (setting.blocks, 1, 1),
        (*setting.block, 1),
        struct.pack("<QQQQii", *pointers, out, setting.count, setting.far),
        ModuleGlobals(module, memory).addresses(program.globals),
        max_instructions=60_000,
        schedule=schedule,
    )
    contents = (*zip(arrays, (FIRST, SECOND), strict=True), (out, 4 * threads))
    try:
        tally: Tally = engine.launch(program, launch, memory)  # type: ignore[attr-defined]
    except MemoryFault as fault:
        where = fault.kind, fault.address, fault.size, fault.block, fault.thread, fault.line
        return where, [memory.read(*one) for one in contents]
    except WarploomError as error:
        return type(error)
    return [memory.read(*one) for one in contents], counts(tally)
