"""Tests that fills of L1 take its time, and that of special functions' results, on 8.x."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warploom as wl

KERNEL = """
extern "C" __global__ void convert(const float *x, int *y, int turns) {
    int sum = 0;
    for (int t = 0; t < turns; t++) {
        float v = x[2 * (t * blockDim.x + threadIdx.x)];
        #pragma unroll
        for (int k = 0; k < 16; k++) {
            int whole;
            asm volatile("cvt.rzi.s32.f32 %0, %1;" : "=r"(whole) : "f"(v + k));
            sum += whole;
        }
    }
    y[threadIdx.x] = sum;
}
"""
WARPS, SECTORS = 32, 8
"""Warps of the block, and sectors of a load: every second word of 64."""


@pytest.mark.parametrize(("device", "bytes_per_cycle"), [("a100", 128), ("rtx-a6000", 64)])
def test_fills_delay_busy_conversions(device: str, bytes_per_cycle: int) -> None:
    """The units are always busy, so each sector adds the time that its 32 bytes take of L1."""
    gpu = wl.Device(device, record=True)
    kernel = gpu.compile(KERNEL)["convert"]
    turns = (16, 48)
    x, y = gpu.zeros(2 * 32 * WARPS * turns[1], np.float32), gpu.zeros(32 * WARPS, np.int32)
    runs = [kernel[1, 32 * WARPS](x, y, n) for n in turns]
    spec = runs[0].time().spec
    cycles = [
        runs[1].time(spec=one).cycles - runs[0].time(spec=one).cycles
        for one in (spec, replace(spec, fill_cycles=0.0))
    ]
    fills = (turns[1] - turns[0]) * WARPS * SECTORS
    assert cycles[0] - cycles[1] == pytest.approx(fills * 32 / bytes_per_cycle, rel=0.1)


LOADS = """
extern "C" __global__ void load(const float *x, const float *kept, float *y, int turns) {
    float sum = 0;
    for (int t = 0; t < turns; t++) {
        sum += x[t * blockDim.x + threadIdx.x];
        #pragma unroll
        for (int k = 0; k < 8; k++) {
            const float *own = kept + 32 * k + threadIdx.x % 32;
            float v;
            asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v) : "l"(own));
            sum += v;
        }
    }
    y[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize(("device", "bytes_per_cycle"), [("a100", 128), ("rtx-a6000", 64)])
def test_fills_delay_loads_that_hit(device: str, bytes_per_cycle: int) -> None:
    """L1 is always busy with hits, so each fill adds the time of its 32 bytes."""
    gpu = wl.Device(device, record=True)
    kernel = gpu.compile(LOADS)["load"]
    turns = (16, 48)
    x, kept = gpu.zeros(32 * WARPS * turns[1], np.float32), gpu.zeros(256, np.float32)
    y = gpu.zeros(32 * WARPS, np.float32)
    runs = [kernel[1, 32 * WARPS](x, kept, y, n) for n in turns]
    spec = runs[0].time().spec
    cycles = [
        runs[1].time(spec=one).cycles - runs[0].time(spec=one).cycles
        for one in (spec, replace(spec, fill_cycles=0.0))
    ]
    fills = (turns[1] - turns[0]) * WARPS * 4
    assert cycles[0] - cycles[1] == pytest.approx(fills * 32 / bytes_per_cycle, rel=0.1)
