"""Tests the rate at which an SM sends requests to L2 on Hopper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warploom as wl
from warploom.devices.timing import find_timing

ROWS = """
extern "C" __global__ void gather(const float *a, float *y, int width)
{
    float sum = 0;
    for (int j = 0; j < 8; j++)
        sum += a[8 * j + width * threadIdx.x];
    y[threadIdx.x] = sum;
}
extern "C" __global__ void scatter(const float *a, float *y, int width)
{
#pragma unroll 4
    for (int j = 0; j < width; j++)
        y[width * threadIdx.x + j] = a[j];
}
"""


def cycles(kernel: str, width: int, each: float, threads: int = 256) -> int:
    """Return the modelled cycles of a block whose threads access rows of their own."""
    gpu = wl.Device("h100", record=True)
    a, y = (gpu.zeros(256 * max(width, 64), np.float32) for _ in range(2))
    run = gpu.compile(ROWS)[kernel][1, threads](a, y, width)
    spec = replace(find_timing(gpu.spec), request_cycles=each, translation_sms=0)
    return run.time(spec=spec).cycles


def test_a_load_of_a_sector_is_sent_as_slowly_as_one_of_a_line() -> None:
    """Each of 8 warps loads 8 sectors a lane, each in a line of its own: 2,048 requests."""
    more = cycles("gather", 64 * 4, 8) - cycles("gather", 64 * 4, 4)
    assert more == pytest.approx(4 * 2048, rel=0.15)


def test_stores_to_rows_take_as_long_as_on_an_h100() -> None:
    """HeCBench's page-rank stores 4 bytes to a row for each thread: an H100 sends 1,125,487
    requests from 4 SMs in 600,020 cycles, 2.13 for each. Stores of a warp to 32 lines are not
    merged, though four of them fill half of a sector."""
    width = 250
    sent = 256 * width
    assert cycles("scatter", width, 2) / sent == pytest.approx(2.13, rel=0.15)
