"""Atomics on shared memory that machine code retries in a loop, such as the addition of floats:
one iteration for each lane at an address, and for each that another warp of the block succeeds
there first."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl
from warploom.host.run import Run

pytest.importorskip("highspy")

SOURCE = """
__device__ void total(float *out, float *sum, int place, float value) {
    if (threadIdx.x < 32) sum[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&sum[place], value);
    __syncthreads();
    if (threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = sum[threadIdx.x];
}
KERNEL one(float *out, float value) { __shared__ float s[32]; total(out, s, 0, value); }
KERNEL pairs(float *out, float value) {
    __shared__ float s[32];
    total(out, s, threadIdx.x % 16, value);
}
KERNEL columns(float *out, float value) {
    __shared__ float s[32];
    total(out, s, threadIdx.x % 32, value);
}
""".replace("KERNEL", 'extern "C" __global__ void')


@cache
def run(name: str, threads: int) -> Run:
    gpu = wl.Device("h100", record=True)
    result = gpu.compile(SOURCE)[name][4, threads](gpu.zeros(128, np.float32), 1.0)
    if result.time().basis.code != "machine code":
        pytest.skip("needs ptxas and nvdisasm")
    return result


@pytest.mark.parametrize(("name", "lanes"), [("one", 32), ("pairs", 2), ("columns", 1)])
def test_an_iteration_for_each_lane_at_an_address(name: str, lanes: int) -> None:
    """4 warps; each loads and swaps once in an iteration, and BSYNC ends it for the lanes that
    succeeded."""
    by_opcode = run(name, 32).machine.by_opcode
    assert by_opcode["ATOMS"] == 4 * lanes
    assert by_opcode["BSYNC"] - run("columns", 32).machine.by_opcode["BSYNC"] == 4 * (lanes - 1)


@pytest.mark.parametrize(("name", "lanes"), [("one", 32), ("pairs", 2), ("columns", 1)])
def test_warps_of_a_block_at_the_same_addresses_count_as_one_after_the_other(
    name: str, lanes: int
) -> None:
    """8 warps have 1 to 8 iterations for each lane, 36 together."""
    assert run(name, 256).machine.by_opcode["ATOMS"] == 4 * 36 * lanes


def test_warps_at_one_address_succeed_one_after_the_other() -> None:
    """The last of 8 warps has 8 times 32 iterations. In the columns it has 8, a warp alone 1."""
    alone = run("one", 32).time().cycles - run("columns", 32).time().cycles  # 31 iterations more
    together = run("one", 256).time().cycles - run("columns", 256).time().cycles  # 248 more
    assert together / alone == pytest.approx(8, rel=0.15)


def test_an_h100_takes_as_long_for_an_iteration() -> None:
    """An H100 with 30 blocks of 8 warps an SM, 8 blocks at a time, whose threads all add to one
    float each, takes 106,819 cycles (threadfence of HeCBench, mean of its SMs; it adds the blocks'
    sums at its end): 256 iterations four times, 104 cycles each."""
    alone = run("one", 32).time().cycles - run("columns", 32).time().cycles
    assert alone / 31 == pytest.approx(104, rel=0.25)
