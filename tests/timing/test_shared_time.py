"""Tests that loads from shared memory occupy the load/store unit for each of their wavefronts."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

KERNEL = """
extern "C" __global__ void follow(int *y, int turns, int apart) {
    __shared__ int table[1024];
    table[threadIdx.x] = 0;
    __syncthreads();
    int at = threadIdx.x % 32 * apart;
    #pragma unroll 1
    for (int t = 0; t < turns; t++) at += table[at];
    y[threadIdx.x] = at;
}
"""
WARPS = 32


@pytest.mark.parametrize("ways", [8, 32])
@pytest.mark.parametrize(("device", "cycles"), [("rtx-2080-ti", 2), ("rtx-3090", 1), ("a100", 1)])
def test_cycles_per_wavefront(device: str, cycles: int, ways: int) -> None:
    """An RTX 2080 Ti achieves half of the peak of wavefronts, which is one a cycle (KTT's counters
    of a convolution, benchmarks/tuning/wavefronts.py)."""
    gpu = wl.Device(device, record=True)
    kernel = gpu.compile(KERNEL)["follow"]
    y = gpu.zeros(32 * WARPS, np.int32)
    first, second = (kernel[1, 32 * WARPS](y, turns, ways).time().cycles for turns in (32, 96))
    assert (second - first) / 64 == pytest.approx(cycles * ways * WARPS, rel=0.03)
