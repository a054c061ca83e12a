"""In which order blocks begin and warps have their turns: nothing promises one, a policy and a seed
choose it (CUDA C++ Programming Guide, "Thread Hierarchy": blocks run "in any order")."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

pytestmark = pytest.mark.usefixtures("share_every_launch")

SOURCE = """
extern "C" __global__ void blocks(int *count, int *out) {
    if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(count, 1);
}
extern "C" __global__ void warps(int *count, int *out) {
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = atomicAdd(count, 1);
}
extern "C" __global__ void racing(int *count, int *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int lap = 0; lap < t % 5; ++lap) atomicAdd(count + lap, t);
    if (t & 1) out[t] = atomicAdd(count + 5, t);
    else out[t % 7] = t;
}
"""
NUMBER = 12


def tickets(kernel: str, schedule: str, seed: int = 0, engine: str = "compiled") -> list[int]:
    """For each of 12 blocks of 32 threads, or each warp of a block of 384: its turn."""
    gpu = wl.Device("v100", schedule=schedule, seed=seed, engine=engine)
    count, out = gpu.zeros(1, np.int32), gpu.zeros(NUMBER, np.int32)
    shape = (NUMBER, 32) if kernel == "blocks" else (1, 32 * NUMBER)
    gpu.compile(SOURCE)[kernel][*shape](count, out)
    return out.copy_to_host().tolist()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("kernel", ["blocks", "warps"])
def test_they_go_in_order_backwards_or_by_seed(kernel: str, engine: str) -> None:
    rising = list(range(NUMBER))
    assert tickets(kernel, "converge", engine=engine) == rising
    assert tickets(kernel, "adversarial", engine=engine) == rising[::-1]
    drawn = [tickets(kernel, "random", seed, engine) for seed in range(8)]
    assert all(sorted(order) == rising for order in drawn)
    assert len({tuple(order) for order in drawn}) > 2
    assert drawn[3] == tickets(kernel, "random", 3, engine)


@pytest.mark.parametrize("schedule", ["converge", "random", "adversarial"])
def test_one_seed_is_one_result_on_any_number_of_workers(schedule: str) -> None:
    """Run after run, though every element of the results depends on the order."""
    found = []
    for workers in (1, 2, 1, 2):
        gpu = wl.Device("v100", schedule=schedule, seed=9, workers=workers)
        count, out = gpu.zeros(6, np.int32), gpu.zeros(256, np.int32)
        run = gpu.compile(SOURCE)["racing"][4, 64](count, out)
        found.append((out.copy_to_host().tolist(), dict(run.counters)))
    assert found[1:] == found[:1] * 3


def test_as_many_blocks_are_resident_as_fit_and_others_follow() -> None:
    """A V100 holds 80 x 2 blocks of 1024 threads. With turns that are shorter than the loop, all of
    them are under way before the first ends; each that ends frees a slot for one more."""
    source = """
extern "C" __global__ void k(int *running, int *most, int *laps) {
    if (threadIdx.x) return;
    atomicMax(most, atomicAdd(running, 1) + 1);
    #pragma unroll 1
    for (int i = 0; i < 100; ++i) atomicAdd(laps, 1);
    atomicSub(running, 1);
}"""
    gpu = wl.Device("v100", schedule="fair")
    running, most, laps = (gpu.zeros(1, np.int32) for _ in range(3))
    gpu.compile(source)["k"][200, 1024](running, most, laps)
    found = [int(buffer.copy_to_host()[0]) for buffer in (running, most, laps)]
    assert found == [0, 160, 200 * 100]
