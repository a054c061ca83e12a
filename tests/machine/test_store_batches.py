"""Checks batched stores of several words a lane with a stride between lanes: memory, counts and
faults are equal on both machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_batch_programs import Places, places, store_batch_kernels
from store_batch_runs import BLOCKS, outcome_of, schedules

import warploom as wl
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine

# Loops are not unrolled: code that runs once finds nothing known.
WORDS = """
extern "C" __global__ void words(int *y, int step, int laps, int move)
{
    int *p = y + (int)threadIdx.x * step;
#pragma unroll 1
    for (int r = 0; r < laps; r++, p += move) {
        p[0] = r;
        p[1] = r + 1;
        p[2] = r + 2;
    }
}
"""

BETWEEN = """
extern "C" __global__ void between(int *y, const int *x, int step, int laps, int move)
{
    int *p = y + threadIdx.x * step;
#pragma unroll 1
    for (int r = 0; r < laps; r++) {
        p[0] = 100 * r + threadIdx.x;
        p[1] = x[r * move + threadIdx.x];
    }
}
"""

TABLE = """
extern "C" __global__ void table(int *y, const int *places, int laps)
{
#pragma unroll 1
    for (int r = 0; r < laps; r++) {
        int *p = y + places[32 * r + threadIdx.x];
        p[0] = 2 * r + 1;
        p[1] = 2 * r + 2;
    }
}
"""

ENGINES = ("reference", "compiled")


def run(engine: str, source: str, name: str, given: Callable[[wl.Device], Any]) -> Any:
    """Returns the memory that a kernel of one warp writes, and its counters or the location of its
    fault."""
    gpu = wl.Device("a100", engine=engine)
    kernel, arguments = gpu.compile(source)[name], given(gpu)
    try:
        found: Any = dict(kernel[1, 32](*arguments).counters)
    except wl.MemoryFault as fault:
        found = fault.kind, fault.thread, fault.line
    return found, arguments[0].copy_to_host().tolist()


@pytest.mark.parametrize("step", [3, 4, 16, 100, 2, 0, -8])
@pytest.mark.parametrize("missing", range(4))
def test_out_of_bounds_lanes_of_the_last_iteration(step: int, missing: int) -> None:
    """Checks 4 iterations over 32 lanes, with three words each."""

    def given(gpu: wl.Device) -> Any:
        places = 31 * max(step, 0) + 3 * 128 + 3
        return gpu.zeros(places - missing, np.int32), step, 4, 128

    reference, compiled = (run(engine, WORDS, "words", given) for engine in ENGINES)
    assert compiled == reference
    assert isinstance(compiled[0], dict) == (missing == 0 and step >= 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_loads_see_what_was_stored_before_them(engine: str) -> None:
    """Stores one word in each lane, reads in all lanes, then stores the second word."""
    gpu = wl.Device("a100", engine=engine)
    y = gpu.zeros(4 * 32, np.int32)
    gpu.compile(BETWEEN)["between"][1, 32](y, y, 4, 4, 32)
    expected, lanes = np.zeros(4 * 32, np.int32), np.arange(32)
    for lap in range(4):
        expected[4 * lanes] = 100 * lap + lanes
        expected[4 * lanes + 1] = expected[32 * lap + lanes]
    assert y.copy_to_host().tolist() == expected.tolist()


@pytest.mark.parametrize("lane", [2, 17, 31])
def test_one_lane_has_another_address(lane: int) -> None:
    """Moves one lane after three iterations in which all lanes had one stride."""
    where = np.tile(8 * np.arange(32, dtype=np.int32), (4, 1))
    where[3, lane] += 4

    def given(gpu: wl.Device) -> Any:
        return gpu.zeros(8 * 32, np.int32), gpu.to_device(where.ravel()), 4

    reference, compiled = (run(engine, TABLE, "table", given) for engine in ENGINES)
    assert compiled == reference
    expected = np.zeros(8 * 32, np.int32)
    for lap in range(4):
        expected[where[lap]], expected[where[lap] + 1] = 2 * lap + 1, 2 * lap + 2
    assert compiled[1] == expected.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_stores_before_a_fault_are_visible(engine: str) -> None:
    """Has the load of the third iteration access one element too far, after the iteration's first
    store."""

    def given(gpu: wl.Device) -> Any:
        x = gpu.to_device(np.arange(1, 32 * 3, dtype=np.int32))
        return gpu.zeros(16 * 32, np.int32), x, 16, 4, 32

    (_, thread, _), found = run(engine, BETWEEN, "between", given)
    assert thread == (31, 0, 0)
    assert found[::16] == [200 + lane for lane in range(32)]
    assert found[1::16] == [32 + lane + 1 for lane in range(32)]


def test_machines_agree_on_steps(random_examples: int) -> None:
    @settings(max_examples=random_examples)
    @given(
        text=store_batch_kernels(),
        runs=st.lists(places(), min_size=6, max_size=6),
        block=st.sampled_from(BLOCKS),
        lanes=st.sampled_from([32, 32, 9, 0]),
        schedule=schedules(),
    )
    def agree(
        text: str, runs: list[Places], block: tuple[int, int], lanes: int, schedule: Schedule
    ) -> None:
        given = text, runs, block, lanes, schedule
        assert outcome_of(*given, CompiledEngine()) == outcome_of(*given, ReferenceEngine())

    agree()
