"""Tests that stores to a part of a sector occupy a slice of L2 longer than stores of whole ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warploom as wl
from warploom.host.run import Run

KERNELS = """
#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void whole(float *y) { y[I] = 1; }
extern "C" __global__ void part(float *y) { y[8 * I] = 1; }
extern "C" __global__ void add(float *y) { atomicAdd(y + 8 * I, 1.0f); }
extern "C" __global__ void three(float *y)
{
    y[3 * I] = 1;
    y[3 * I + 1] = 2;
    y[3 * I + 2] = 3;
}
extern "C" __global__ void columns(float *y)
{
    y[32 * threadIdx.x % 1024 + threadIdx.x / 32] = 1;
}
extern "C" __global__ void bytes(float *y)
{
    volatile char local[16];
    for (int i = 0; i < 100; i++) local[(i * 5 + threadIdx.x) & 3] = i;
    y[I] = local[threadIdx.x & 3];
}
"""


def stored(name: str, threads: int, block: int = 256) -> Run:
    gpu = wl.Device("h100", record=True)
    y = gpu.zeros(8 * threads, np.float32)
    return gpu.compile(KERNELS)[name][threads // block, block](y)


def test_partial_sector_takes_two_more_slice_cycles() -> None:
    """80 slices share 4,900 bytes a cycle, and all of the sectors: an H100 takes 2.4 to 3.1 cycles
    of a slice for each sector of one word, where threads store at random or in columns (Nsight
    Compute)."""
    few, many = (stored("part", threads).time().cycles for threads in (1 << 18, 1 << 19))
    each = 32 / (4900 / 80) + 2
    assert many - few == pytest.approx((1 << 18) / 80 * each, rel=0.15)


@pytest.mark.parametrize("name", ["whole", "add"])
def test_whole_sectors_and_reductions_take_no_extra_time(name: str) -> None:
    run = stored(name, 1 << 14)
    without = replace(run.time().spec, l2_part_cycles=0)
    assert run.time().cycles == run.time(spec=without).cycles


def test_sector_filled_by_several_stores_of_a_warp_is_whole() -> None:
    """Three stores of 4 bytes in 12: an H100 writes 151,720 sectors of L2 for 150,000 sectors of
    such records, each written by three stores. Stores in different quanta are not merged."""
    threads = 1 << 16
    assert stored("three", threads).time().l2_bytes == pytest.approx(12 * threads, rel=0.1)


def test_stores_of_different_warps_are_not_merged() -> None:
    """32 warps store a word each to the same 32 sectors times 4: an H100 writes 627,438 sectors of
    L2 for 630,000 stored ones."""
    assert stored("columns", 1024, 1024).time().l2_bytes == 32 * 1024


def test_stores_to_local_memory_are_not_merged() -> None:
    """HeCBench's entropy stores bytes to 3,071,922 sectors of local memory and 32,768 of global
    memory: an H100 writes 3,103,741 sectors of L2."""
    run = stored("bytes", 32, 32)
    sectors = run.counters.local_store_sectors
    assert sectors >= 100 * 4
    assert run.time().l2_bytes == pytest.approx(32 * sectors, rel=0.03)
