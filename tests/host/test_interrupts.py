"""Exploration that interrupts warps: outcomes that sequential consistency allows."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.host.explore import interruption_points, plan_orders
from warploom.host.orders import Ready, job_of

SOURCE = r"""
__global__ void lost_blocks(int *x) { if (threadIdx.x == 0) x[0] = x[0] + 1; }
__global__ void lost_warps(int *x) { if (threadIdx.x % 32 == 0) x[0] = x[0] + 1; }
__global__ void lost_lanes(int *x) { x[0] = x[0] + 1; }
__global__ void buffering(int *r, volatile int *x) {
  if (blockIdx.x == 0) { x[0] = 1; r[0] = x[32]; } else { x[32] = 1; r[1] = x[0]; }
}
__global__ void buffering_by_atomics(int *r, int *x) {
  if (blockIdx.x == 0) { atomicExch(x, 1); r[0] = atomicAdd(x + 32, 0); }
  else { atomicExch(x + 32, 1); r[1] = atomicAdd(x, 0); }
}
__global__ void message(int *r, volatile int *x) {
  if (blockIdx.x == 0) { x[0] = 1; x[32] = 1; } else { r[0] = x[32]; r[1] = x[0]; }
}
__global__ void independent_reads(int *r, volatile int *x) {
  int b = blockIdx.x;
  if (b == 0) x[0] = 1;
  if (b == 1) x[32] = 1;
  if (b == 2) { r[0] = x[0]; r[1] = x[32]; }
  if (b == 3) { r[2] = x[32]; r[3] = x[0]; }
}
"""


@pytest.fixture(scope="module")
def loaded() -> wl.Module:
    return wl.Device().compile(SOURCE)


@pytest.mark.parametrize(
    ("name", "grid", "block"),
    [("lost_blocks", 8, 1), ("lost_warps", 1, 256), ("lost_lanes", 1, 32)],
)
def test_a_lost_update_is_found_in_ten_runs(
    loaded: wl.Module, name: str, grid: int, block: int
) -> None:
    found = wl.explore(loaded[name][grid, block], np.zeros(1, np.int32), runs=10)
    assert found.differs
    assert found.causes


def outcomes(loaded: wl.Module, name: str, blocks: int, results: int, runs: int) -> set[object]:
    """Returns what the first `results` words of a kernel's first buffer can be."""
    args = np.zeros(results, np.int32), np.zeros(64, np.int32)
    job = job_of(loaded[name][blocks, 1], args, {})
    ready, seen = Ready(job), set[object]()
    for order in plan_orders(interruption_points(job)[0], runs):
        assert ready.run(order) == ""
        seen.add(tuple(ready.results()[0].data.tolist()))
    return seen


@pytest.mark.parametrize("name", ["buffering", "buffering_by_atomics"])
def test_store_buffering_has_its_three_outcomes_in_ten_runs(loaded: wl.Module, name: str) -> None:
    assert outcomes(loaded, name, 2, 2, 10) == {(0, 1), (1, 0), (1, 1)}


def test_message_passing_has_its_three_outcomes_in_ten_runs(loaded: wl.Module) -> None:
    assert outcomes(loaded, "message", 2, 2, 10) == {(0, 0), (0, 1), (1, 1)}


def test_independent_reads_have_all_interleaved_outcomes_in_a_hundred_runs(
    loaded: wl.Module,
) -> None:
    every = {tuple(n >> i & 1 for i in range(4)) for n in range(16)}
    never = (1, 0, 1, 0)  # r0 saw x before y, r2 y before x
    assert outcomes(loaded, "independent_reads", 4, 4, 100) == every - {never}


def test_an_order_with_interrupts_can_be_run_again(loaded: wl.Module) -> None:
    found = wl.explore(loaded["lost_blocks"][8, 1], np.zeros(1, np.int32), runs=10)
    assert found.second is not None
    order, x = found.second.order, np.zeros(1, np.int32)
    loaded["lost_blocks"][8, 1](x, schedule=order.schedule, interrupts=order.interrupts)
    assert x[0] < 8


def test_exploring_says_why_warps_were_not_interrupted() -> None:
    """The threads of two blocks write one word by 65 instructions, none of which is ordered."""
    stores = "".join(f"x[0] = {number};" for number in range(65))
    source = f'extern "C" __global__ void k(volatile int *x) {{ {stores} }}'
    gpu = wl.Device()
    found = wl.explore(gpu.compile(source)["k"][2, 32], np.zeros(1, np.int32), runs=2)
    assert found.uninterrupted == "65 instructions conflict; at most 64 are tried"
