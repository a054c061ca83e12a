"""Loops that wait in memory for other blocks take as long as these do, not as many turns as the
functional run made."""

from __future__ import annotations

import numpy as np
import pytest
from test_accounts import balanced

import warploom as wl

SOURCE = """
#include <cooperative_groups.h>
extern "C" __global__ void turns(float *y, int turns, int m) {
    float a = threadIdx.x;
    for (int t = 0; t < turns; t++) {
        if (blockIdx.x == t && threadIdx.x >= 32) for (int i = 0; i < m; i++) a = a * 1.5f + .5f;
        cooperative_groups::this_grid().sync();
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
extern "C" __global__ void flag(volatile int *ready, int *y) {
    if (blockIdx.x == gridDim.x - 1) *ready = 1;
    while (*ready == 0) ;
    y[blockIdx.x] = 1;
}
extern "C" __global__ void sum(volatile int *x, int *y, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += *x;
    y[threadIdx.x] = s;
}
"""
BLOCKS, CHAIN = 16, 4096


def turns(count: int, chain: int = CHAIN, schedule: str = "converge") -> int:
    gpu = wl.Device("v100", record=True, schedule=schedule)
    y = gpu.zeros(BLOCKS * 64, np.float32)
    run = gpu.compile(SOURCE)["turns"][BLOCKS, 64](y, count, chain, cooperative=True)
    time = run.time()
    balanced(time)
    assert run.time(workers=2).cycles == time.cycles
    return time.cycles


def test_blocks_that_take_turns_take_the_sum_of_their_times() -> None:
    """In each phase another block makes a chain of 4,096 sums of 4 cycles, and the grid waits. The
    first warps of blocks are not in it: they do what waiting takes."""
    one, eight = turns(1), turns(8)
    assert eight - one >= 7 * 4 * CHAIN
    assert eight == pytest.approx(8 * one, rel=0.1)


def test_the_order_of_the_functional_run_changes_nothing() -> None:
    """How often loops turned there depends on its schedule."""
    first = turns(4, 64)
    for schedule in ("fair", "random"):
        assert turns(4, 64, schedule=schedule) == pytest.approx(first, rel=0.02)


def test_a_loop_that_waits_for_a_flag_is_one_question() -> None:
    gpu = wl.Device("v100", record=True)
    ready, y = gpu.zeros(1, np.int32), gpu.zeros(BLOCKS, np.int32)
    run = gpu.compile(SOURCE)["flag"][BLOCKS, 32](ready, y)
    record, time = run.record, run.time()
    assert record is not None
    assert record.asked.tolist() == [1] * BLOCKS
    balanced(time)
    assert time.instructions < 40 * BLOCKS


def test_a_loop_that_keeps_what_it_reads_is_all_of_its_turns() -> None:
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(1, np.int32), gpu.zeros(32, np.int32)
    run = gpu.compile(SOURCE)["sum"][1, 32](x, y, 100)
    assert run.record is not None
    assert not run.record.asked.any()
    assert run.time().instructions > 100
