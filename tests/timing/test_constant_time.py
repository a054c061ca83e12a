"""Tests that a load from constant memory occupies the load/store unit for each different address
among its lanes."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

KERNEL = """
__constant__ unsigned char table[64];
extern "C" __global__ void follow(int *y, int turns, int different) {
    int at = threadIdx.x % different;
    #pragma unroll 1
    for (int t = 0; t < turns; t++) at = (at + table[at]) & 63;
    y[threadIdx.x] = at;
}
"""
WARPS = 32


@pytest.mark.parametrize("code", ["machine", "ptx"])
@pytest.mark.parametrize("different", [8, 32])
def test_each_address_takes_two_cycles(code: str, different: int) -> None:
    """Loads bytes, so that lanes also differ within a word. On an H100 Nsight Compute counts a
    request (idc__requests) for each address of a kernel that encodes base64, and the busiest SM has
    12,448 of them in 27,454 cycles."""
    gpu = wl.Device("h100", record=True)
    kernel = gpu.compile(KERNEL)["follow"]
    y = gpu.zeros(32 * WARPS, np.int32)
    first, second = (
        kernel[1, 32 * WARPS](y, turns, different).time(code=code).cycles for turns in (32, 96)
    )
    assert (second - first) / 64 == pytest.approx(2 * different * WARPS, rel=0.02)
