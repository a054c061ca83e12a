"""Runs kernels of `store_batch_programs` on either machine."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from agreement import counts
from hypothesis import strategies as st
from store_batch_programs import BYTES, Places

from warploom.core.errors import MemoryFault, WarploomError
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

BLOCKS = [(32, 1), (32, 1), (32, 1), (64, 1), (20, 1), (16, 2)]
FIELDS = ("kind", "thread", "block", "line", "size")


def outcome_of(
    text: str,
    runs: Sequence[Places],
    block: tuple[int, int],
    lanes: int,
    schedule: Schedule,
    engine: object,
) -> Any:
    """Returns the fault or the counts of each run, and both buffers."""
    module = parse(text)
    verify(module)
    program = build(module, "k")
    start = np.random.default_rng(0).integers(0, 1 << 32, BYTES // 4, np.uint32).tobytes()
    all_found: list[object] = []
    for at in runs:
        memory = DeviceMemory(1 << 28)
        out, source = (memory.allocate(BYTES, name).address for name in ("out", "source"))
        for place in (out, source):
            memory.write(place, start)
        given = out, source, at.first, at.step, at.move, at.seen, lanes
        launch = Launch(
            (2, 1, 1),
            (*block, 1),
            struct.pack("<QQqi4xqQI", *given),
            ModuleGlobals(module, memory).addresses(program.globals),
            max_instructions=50_000,
            schedule=schedule,
        )
        try:
            found: object = counts(engine.launch(program, launch, memory))  # type: ignore[attr-defined]
        except MemoryFault as fault:
            found = [getattr(fault, name) for name in FIELDS]
        except WarploomError as error:
            found = type(error)
        all_found.append((found, memory.read(out, BYTES), memory.read(source, BYTES)))
    return all_found


def schedules() -> st.SearchStrategy[Schedule]:
    """Draws both control-flow models, with one resident block."""
    return st.builds(Schedule, independent=st.booleans(), resident_blocks=st.just(1))
