"""Tests that L2 holds written data until its line is evicted."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.host.run import Run

KERNELS = """
extern "C" __global__ void copy(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}
extern "C" __global__ void ring(volatile int *x, int lines, int turns) {
    #pragma unroll 1
    for (int t = 0; t < turns; t++) x[32 * (t % lines)] = t;
}
"""
COPIED = 1 << 18


@cache
def copy(count: int = COPIED) -> Run:
    gpu = wl.Device("v100", record=True)
    x, y = gpu.zeros(count, np.float32), gpu.zeros(count, np.float32)
    return gpu.compile(KERNELS)["copy"][count // 256, 256](x, y)


def test_data_that_fits_l2_is_not_written_to_dram() -> None:
    """A V100 has 6 MiB of L2, of which 1 MiB is read and as much written. Nsight Compute counts no
    byte written to DRAM by kernels that write less than L2 holds (an H100, 50 MiB)."""
    time = copy().time()
    assert time.dram_read_bytes == time.l2_dirty_bytes == 4 * COPIED
    assert time.dram_written_bytes == 0


def test_data_beyond_l2_is_written_once() -> None:
    """1 MiB is written, and L2 has 256 KiB."""
    size = 256 << 10
    time = copy().time(l2=wl.CacheModel(bytes=size))
    assert time.dram_written_bytes + time.l2_dirty_bytes == 4 * COPIED
    assert 0 < time.l2_dirty_bytes <= size


@pytest.mark.parametrize(("ways", "written"), [(1, 15), (2, 0)])
def test_sector_is_written_at_each_eviction_of_its_line(ways: int, written: int) -> None:
    """16 stores alternate between two lines: with one way each store but the first evicts the
    other's sector, with two ways none does."""
    gpu = wl.Device("v100", record=True)
    run = gpu.compile(KERNELS)["ring"][1, 1](gpu.zeros(64, np.int32), 2, 16)
    time = run.time(l2=wl.CacheModel(bytes=128 * ways, ways=ways))
    assert time.dram_written_bytes == 32 * written
    assert time.l2_dirty_bytes == 32 * ways


@pytest.mark.parametrize("dirty", [1, 0.5, 0.25])
def test_full_l2_evicts_a_line_per_fill(dirty: float) -> None:
    """Two lines are filled for each 32 elements, fewer than L2 holds: all evicted lines belong to
    earlier launches; a share of them is dirty, four sectors each."""
    time = copy().time(l2=wl.CacheModel(dirty=dirty))
    assert time.dram_written_bytes == pytest.approx(dirty * 2 * 4 * COPIED, rel=0.01)


def test_sample_of_a_stream_includes_write_back() -> None:
    """64 MiB are written, of which L2 holds half of 6 MiB, and 64 read; two waves of 5 MiB write
    nothing."""
    run = copy(1 << 24)
    sample, whole = run.time(sample=2), run.time()
    assert sample.dram_written_bytes == 0
    assert sample.cycles == pytest.approx(whole.cycles, rel=0.1)


def test_impossible_dirty_share_is_refused() -> None:
    with pytest.raises(WarploomError, match="the share of dirty lines in L2 is 2"):
        copy().time(l2=wl.CacheModel(dirty=2))
    with pytest.raises(WarploomError, match="L1 has no dirty lines"):
        copy().time(l1=wl.CacheModel(dirty=0.5))
