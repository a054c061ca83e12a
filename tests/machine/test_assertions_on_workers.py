"""Tests that kernels with assertions are shared by workers, and fail as on one worker."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

pytestmark = pytest.mark.usefixtures("share_every_launch")

SOURCE = """
#include <assert.h>
extern "C" __global__ void gather(float *y, const float *x, const int *at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(at[i] >= 0 && at[i] < n);
    y[i] = x[at[i]];
}
"""
N, BLOCK = 4096, 64


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_assertions_that_hold_are_no_reason_to_run_on_one_worker(workers: int) -> None:
    gpu, rng = wl.Device(workers=workers), np.random.default_rng(1)
    x, at = rng.random(N, np.float32), rng.integers(0, N, N, np.int32)
    y = gpu.zeros(N, np.float32)
    kernel = gpu.compile(SOURCE)["gather"]
    run = kernel[N // BLOCK, BLOCK](y, gpu.to_device(x), gpu.to_device(at), N)
    assert (run.workers, run.serial_reason) == (workers, "")
    assert np.array_equal(y.copy_to_host(), x[at])


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_first_block_that_fails_is_the_one_reported(workers: int) -> None:
    """All blocks from 20 on fail, in all their threads but those below 5."""
    gpu = wl.Device(workers=workers)
    at = np.zeros(N, np.int32)
    at[20 * BLOCK :].reshape(-1, BLOCK)[:, 5:] = -1
    x, y = gpu.zeros(N, np.float32), gpu.zeros(N, np.float32)
    with pytest.raises(wl.DeviceAssert) as raised:
        gpu.compile(SOURCE)["gather"][N // BLOCK, BLOCK](y, x, gpu.to_device(at), N)
    assert (raised.value.block, raised.value.thread) == ((20, 0, 0), (5, 0, 0))
