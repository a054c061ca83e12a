"""Runs one program on either machine, and returns everything on which the machines must agree."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from random_programs import DOUBLES, SINGLES, THREAD_BYTES
from random_texels import HEIGHT, WIDTH, textures

from warploom.core.errors import DeadlockError, InstructionLimit, WarploomError
from warploom.cost.fields import CostRecord
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.faults.deadlock import LOOPS, SPINS
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.machine import ReferenceEngine
from warploom.machine.tally import COLUMNS, Tally
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

LIMIT = 20_000
EDGES = np.array(
    [*SINGLES, *DOUBLES, 0xFFFFFFFF, 0x3FF0000000000000, 0xFFFFFFFFFFFFFFFF], np.uint64
)


def outcome(
    text: str,
    launch_shape: tuple[int, int],
    seed: int,
    schedule: Schedule,
    engine: object,
    warp_size: int = 32,
) -> Any:
    """Runs a kernel `k` on memory drawn by `seed`; returns the error that ended it, or the memory
    and the counts. `launch_shape` is the number of blocks and of threads."""
    module = parse(text)
    verify(module)
    program = build(module, "k")
    memory = DeviceMemory(1 << 30)
    image = ModuleGlobals(module, memory)
    blocks, threads = launch_shape
    size = blocks * threads * THREAD_BYTES
    buffer = memory.allocate(size, "buffer")
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 1 << 64, size // 8, np.uint64)
    start = np.where(rng.random(len(start)) < 0.4, rng.choice(EDGES, len(start)), start)
    memory.write(buffer.address, start.tobytes())
    surface = textures(memory, rng)
    launch = Launch(
        (blocks, 1, 1),
        (threads, 1, 1),
        struct.pack("<Q", buffer.address),
        image.addresses(program.globals),
        max_instructions=LIMIT,
        schedule=schedule,
        warp_size=warp_size,
    )
    try:
        tally = engine.launch(program, launch, memory)  # type: ignore[attr-defined]
    except DeadlockError as error:
        return waiting(error)
    except WarploomError as error:
        return type(error)
    named = {variable.name for variable in module.variables}
    cells = memory.read(image.addresses(("cells",))[0], 64) if "cells" in named else b""
    texels = memory.read(surface, 4 * WIDTH * HEIGHT)
    return memory.read(buffer.address, size), cells, texels, counts(tally)


def waiting(error: DeadlockError) -> list[tuple[object, ...]]:
    """Returns what the groups of a deadlock wait for, and where. Of a warp with lanes in endless
    loops it is only which lanes these are, and which wait for reconvergence: the machines prove at
    different moments that a loop is endless, since the reference compares dead registers, too."""
    spinning = {(g.block, g.warp) for g in error.groups if g.waits_for in (SPINS, LOOPS)}
    endless: dict[tuple[object, ...], set[int]] = {}
    others: list[tuple[object, ...]] = []
    for group in error.groups:
        warp = group.block, group.warp
        may_loop = group.waits_for in (SPINS, LOOPS) or group.waits_for.startswith("reconvergence")
        if warp in spinning and may_loop:
            endless.setdefault(warp, set()).update(group.lanes)
        else:
            others.append((*warp, group.lanes, group.line, group.waits_for))
    return [*others, *((*warp, SPINS, *sorted(lanes)) for warp, lanes in endless.items())]


def never_ends(compiled: Any, reference: Any) -> bool:
    """Returns true if the compiled engine has proven a loop endless that the reference machine ran
    to the limit: the reference compares dead registers, too."""
    spins = isinstance(compiled, list) and any(SPINS in group for group in compiled)
    return spins and reference is InstructionLimit


def counts(tally: Tally) -> dict[str, object]:
    """Returns all counts; of the examples of costly accesses only their costs, since either of two
    equally costly ones may be stored."""
    found: dict[str, object] = {name: getattr(tally, name).tolist() for name in COLUMNS}
    return found | {"records": tally.records[:, : CostRecord.example_cost + 1].tolist()}


def check_agreement(
    text: str, launch_shape: tuple[int, int], seed: int, schedule: Schedule
) -> None:
    """Asserts that both machines have the same outcome."""
    expected = outcome(text, launch_shape, seed, schedule, ReferenceEngine())
    found = outcome(text, launch_shape, seed, schedule, CompiledEngine())
    assert found == expected or never_ends(found, expected)
