"""Tests which sub-partition the blocks of a multiprocessor begin at."""

from __future__ import annotations

import numpy as np

import warploom as wl

FIRST_WARP = """
extern "C" __global__ void first_warp(float *x)
{
    float v = x[threadIdx.x];
    if (threadIdx.x < 32)
        for (int i = 0; i < 2000; i++)
            v = v * v + 1.0f;
    x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
"""


def cycles(blocks_per_sm: int) -> int:
    """Returns the modelled cycles of blocks of four warps, of which the first one works, as many on
    each of the 132 SMs of an H100."""
    gpu, blocks = wl.Device("h100", record=True), 132 * blocks_per_sm
    x = gpu.zeros(128 * blocks, np.float32)
    return gpu.compile(FIRST_WARP)["first_warp"][blocks, 128](x).time(code="ptx").cycles


def test_blocks_begin_at_sub_partitions_in_turn() -> None:
    """Each sub-partition of an H100 issues an instruction a cycle. The first warps of eight blocks
    issue 4,000 instructions and more each (an FMA, a sum, a comparison and a branch, of which the
    compiler unrolls four turns): were they in one sub-partition, it would take 8 times as many
    cycles; in four, two share each."""
    chain = cycles(1)
    assert cycles(4) < 1.2 * chain
    assert cycles(8) < 1.5 * chain
