"""What is recorded of launches for timing, as their users meet it."""

from __future__ import annotations

import numpy as np

import warploom as wl


def test_on_run_is_called_with_the_record() -> None:
    times: list[float] = []
    gpu = wl.Device("a100", record=True, on_run=lambda run: times.append(run.time().seconds))
    source = 'extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }'
    run = gpu.compile(source)["fill"][2, 64](gpu.zeros(64, np.int32))
    assert times == [run.time().seconds]


def test_on_run_is_called_with_the_blocks_that_were_executed() -> None:
    """Of a grid of 10,000 independent blocks, a sample is executed."""
    counts: list[int] = []
    gpu = wl.Device(
        "a100", record=True, sampled=True, on_run=lambda run: counts.append(run.executed_blocks)
    )
    source = 'extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }'
    gpu.compile(source)["fill"][10_000, 64](gpu.zeros(64, np.int32))
    assert 0 < counts[0] < 10_000
