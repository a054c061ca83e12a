"""Tests that polling loops take as long as what they wait for, however often they iterated in the
functional run."""

from __future__ import annotations

import numpy as np
import pytest
from test_accounts import balanced

import warploom as wl
from warploom.timing.record.spins import (
    last_iterations,
    partial_barrier_arrivals,
    poll_barrier_warps,
)

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


def test_grid_sync_serialises_blocks_that_work_in_turn() -> None:
    """In each phase another block computes a chain of 4,096 sums of 4 cycles, and the grid waits.
    The first warps of blocks only wait."""
    one, eight = turns(1), turns(8)
    assert eight - one >= 7 * 4 * CHAIN
    assert eight == pytest.approx(8 * one, rel=0.1)


@pytest.mark.nightly
def test_order_of_functional_run_does_not_change_time() -> None:
    """How often loops iterated there depends on its schedule."""
    first = turns(4, 64)
    for schedule in ("fair", "random"):
        assert turns(4, 64, schedule=schedule) == pytest.approx(first, rel=0.02)


def test_loop_that_polls_a_flag_is_one_iteration() -> None:
    gpu = wl.Device("v100", record=True)
    ready, y = gpu.zeros(1, np.int32), gpu.zeros(BLOCKS, np.int32)
    run = gpu.compile(SOURCE)["flag"][BLOCKS, 32](ready, y)
    record, time = run.record, run.time()
    assert record is not None
    assert record.poll_counts.tolist() == [1] * BLOCKS
    balanced(time)
    assert time.instructions < 40 * BLOCKS


def test_loop_that_carries_a_value_keeps_all_iterations() -> None:
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(1, np.int32), gpu.zeros(32, np.int32)
    run = gpu.compile(SOURCE)["sum"][1, 32](x, y, 100)
    assert run.record is not None
    assert not run.record.poll_counts.any()
    assert run.time().instructions > 100


def test_iterations_of_diverged_lanes_are_distinguished() -> None:
    """Block 1 is the loop. Lanes 0 and 1 iterate twice, then lane 1 alone, while lanes 2 and 3 go
    from block 2 to 3; another warp iterates once."""
    is_polling = np.array([False, True, False, False])
    rows = [(0, 1, 3), (0, 1, 3), (0, 2, 12), (0, 1, 2), (0, 3, 12), (0, 2, 3), (1, 1, 15)]
    entries = np.array([row[:2] for row in rows])
    kept = last_iterations(entries, np.array([row[2] for row in rows]), is_polling)
    assert kept.tolist() == [False, False, True, True, True, True, True]


def test_partial_arrivals_at_a_barrier_are_found() -> None:
    """Block 1 ends with a barrier, at which lanes 2 and 3 arrive before lanes 0 and 1, then all
    arrive; a warp that never diverges, and one whose other lanes have ended, arrive at once."""
    ends_with_barrier = np.array([False, True])
    rows = [(0, 1, 12, 15), (0, 0, 3, 15), (0, 1, 3, 15), (0, 1, 15, 15), (1, 1, 15, 15),
            (2, 1, 8, 8)]  # fmt: skip
    columns = np.array(rows).T
    found = partial_barrier_arrivals(columns[:2].T, columns[2], columns[3], ends_with_barrier)
    assert found.tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize(
    ("poll_counts", "warps"),
    [
        ([2, 0, 2, 0], 2),  # a warp of each block, twice
        ([1, 1, 1, 1], 4),
        ([2, 0, 1, 0], 0),  # not as often
        ([1, 0, 0, 0], 0),  # not every block
        ([0, 0, 0, 0], 0),
    ],
)
def test_warps_wait_for_each_other_where_all_blocks_poll_equally(
    poll_counts: list[int], warps: int
) -> None:
    assert poll_barrier_warps(np.array(poll_counts), 2) == warps


MBARRIER = r"""
extern "C" __global__ void k(float *x) {
    __shared__ unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
    __syncthreads();
    if (threadIdx.x < 32) {
        WAIT
        x[threadIdx.x] += 1;
    } else {
        float s = 0;
        for (int i = 0; i < 64; i++) s += x[64 + i];
        x[threadIdx.x] = s;
        __syncwarp();
        if (threadIdx.x == 32)
            asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" :: "r"(at) : "memory");
    }
}
"""  # noqa: E501
TRY = "mbarrier.try_wait.parity.shared::cta.b64"
WAITS = {
    "one block": f"""int done = 0; while (!done) asm volatile("{{ .reg .pred p; {TRY} p, [%1], 0;
        selp.u32 %0, 1, 0, p; }}" : "=r"(done) : "r"(at) : "memory");""".replace("\n", ""),
    "a jump back": f"""asm volatile("{{ .reg .pred p; AGAIN: {TRY} p, [%0], 0; @p bra DONE;
        bra AGAIN; DONE: }}" :: "r"(at) : "memory");""".replace("\n", ""),
}
"""The two forms in which compilers write a wait for an mbarrier."""


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_failed_tests_of_an_mbarrier_take_no_time(wait: str) -> None:
    """How often a warp tested before the other one arrived depends on the functional run."""
    cycles: list[int] = []
    for schedule in ("converge", "fair"):
        gpu = wl.Device("h100", record=True, schedule=schedule)
        x = gpu.zeros(256, np.float32)
        run = gpu.compile(MBARRIER.replace("WAIT", wait))["k"][1, 64](x)
        cycles.append(run.time().cycles)
        balanced(run.time())
    assert cycles[0] == pytest.approx(cycles[1], rel=0.1)
    assert cycles[0] < 10_000  # far less than 64 latencies of DRAM one after the other
