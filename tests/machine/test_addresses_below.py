"""Checks inactive threads with a shared address below 0, beside active ones of their warp.

A shared address has 32 bits: four bytes before the first one is 0xFFFFFFFC, and the sum of it and 4
wraps around to 0 (PTX ISA, "Addresses as Operands": the sum is as wide as the register).
"""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import warploom as wl

SOURCE = """
extern "C" __global__ void shift(const int *in, int *out, int back)
{
    extern __shared__ int part[];
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    int left = t >= back ? part[t - back] : -1;
    __syncthreads();
    if (t >= back) part[t - back] += left;
    __syncthreads();
    out[t] = 10 * left + part[t];
}
extern "C" __global__ void below(int *out, int back)
{
    extern __shared__ int part[];
    part[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = part[(int)threadIdx.x - back];
}
"""
BLOCKS = [(64,), (96,), (8, 8), (16, 4), (4, 4, 4), (6, 6), (250,)]


@settings(max_examples=examples(4, nightly=20))
@given(st.sampled_from(BLOCKS), st.integers(0, 40), st.sampled_from(["gtx-280", "k40", "h100"]))
def test_threads_off_below_the_first_address_change_nothing(block, back, device) -> None:
    threads = int(np.prod(block))
    values = np.random.default_rng(back).integers(0, 99, threads).astype(np.int32)
    left = np.concatenate([np.full(min(back, threads), -1), values])[:threads]
    moved = values + np.pad(left[back:], (0, min(back, threads)))
    output = []
    for engine in ("compiled", "reference"):
        gpu = wl.Device(device, engine=engine)
        out = gpu.zeros(threads, np.int32)
        kernel = gpu.compile(SOURCE)["shift"]
        run = kernel[2, block, None, 4 * threads](gpu.to_device(values), out, back)
        assert np.array_equal(out.copy_to_host(), 10 * left + moved)
        output.append((dict(run.counters), [(e.cost, e.lanes) for e in run.examples]))
    assert output[0] == output[1]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_thread_that_is_on_below_gets_its_address(engine) -> None:
    gpu = wl.Device(engine=engine)
    kernel = gpu.compile(SOURCE)["below"]
    with pytest.raises(wl.WarploomError, match=r"0xfffffff8"):
        kernel[1, 32, None, 128](gpu.zeros(32, np.int32), 2)
