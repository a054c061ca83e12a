"""Checks accesses that hit the range cache: they never leave an allocation, and are counted as by
the reference machine, which caches nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import warploom as wl

ENGINES = ("reference", "compiled")

AGREED_VALUE = """
extern "C" __global__ void agreed(int *y, const int *x)
{
    __shared__ int room[2];
    int t = threadIdx.x, value = t + 7;
    room[0] = 0;
    __syncthreads();
    int shifted = x[1] << 16;
    if (t == 40 || t < 3) { room[1] = shifted; value = shifted; }
    __syncthreads();
    y[t] = value + room[1];
}
"""

SUMS = """
extern "C" __global__ void sums(float *y, const float *x, int first, int rows)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < rows; r++) {
        const float *p = x + first + 64 * r;
        y[i + 64 * r] = p[i] + p[i + 1] + p[i + 2] + p[i + 3] + p[5] + p[6];
    }
}
"""

TWO = """
extern "C" __global__ void two(float *y, const float *a, const float *b, int n)
{
    const float *p = blockIdx.x & 1 ? a : b;
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += p[4 * i] + p[4 * i + 1] + p[4 * i + 2] + p[4 * i + 3];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""

FREED = """
extern "C" __global__ void freed(float *y)
{
    __shared__ float *p;
    if (threadIdx.x == 0) p = (float *)malloc(256);
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 3; i++) {
        p[threadIdx.x] = i;
        __syncthreads();
        sum += p[0] + p[1] + p[2] + p[3] + p[threadIdx.x + 1];
        __syncthreads();
        if (i == 1 && threadIdx.x == 0) free(p);
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
"""

ROWS = """
extern "C" __global__ void rows(float *y, const float *x, const int *starts, int pitch, int n)
{
    int t = threadIdx.y * 16 + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < n; i++) {
        const float *p = x + starts[i] + threadIdx.y * pitch;
        sum += p[0] + p[1] + p[2] + p[3] + p[threadIdx.x] + p[threadIdx.x + 16];
    }
    y[t] = sum;
}
"""

PARTLY = """
extern "C" __global__ void partly(float *y, const float *x, int bound, int offset)
{
    int t = threadIdx.x;
    for (int b = bound; b > 0; b -= 3)
        if (t < b)
            y[t] += x[t + offset] + b;
}
"""

COLUMNS = """
extern "C" __global__ void columns(float *y, const float *x, const long long *pitches, int laps)
{
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    long long pitch = pitches[blockIdx.x];
    const float *p = x + 4000 + threadIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < laps; i++) {
        sum += p[0]; p += pitch; sum += p[32]; p += pitch;
        sum += p[0]; p += pitch; sum += p[0]; p += pitch;
    }
    y[blockIdx.x * 64 + t] = sum;
}
"""


def outcome(engine: str, source: str, run: Callable[[wl.Device, wl.Module], wl.Run]) -> object:
    """Returns the counters of a run; if it faults, the access relative to its allocation."""
    gpu = wl.Device("a100", engine=engine)
    try:
        return dict(run(gpu, gpu.compile(source)).counters)
    except wl.MemoryFault as fault:
        return fault.kind, fault.thread, fault.block, fault.line, fault.size


def same(source: str, run: Callable[[wl.Device, wl.Module], wl.Run]) -> object:
    """Returns the outcome, after asserting that both machines have the same."""
    reference, compiled = (outcome(engine, source, run) for engine in ENGINES)
    assert compiled == reference
    return compiled


@pytest.mark.parametrize("missing", range(5))
def test_out_of_bounds_lanes_of_the_last_row(missing: int) -> None:
    """Reads up to 3 elements past their own in 64 threads, in 4 rows."""

    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        x = gpu.zeros(4 * 64 + 3 - missing, np.float32)
        return module["sums"][2, 32](gpu.zeros(256, np.float32), x, 0, 4)

    found = same(SUMS, run)
    assert isinstance(found, dict) == (missing == 0)


def test_an_access_before_an_allocation_faults() -> None:
    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        return module["sums"][2, 32](gpu.zeros(256, np.float32), gpu.zeros(512, np.float32), -1, 4)

    _, thread, *_ = same(SUMS, run)  # type: ignore[misc]
    assert thread == (0, 0, 0)


@pytest.mark.parametrize("sizes", [(64, 64), (64, 63), (63, 64), (60, 64), (64, 61)])
def test_the_end_of_one_buffer_is_not_that_of_another(sizes: tuple[int, int]) -> None:
    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        a, b = (gpu.zeros(n, np.float32) for n in sizes)
        return module["two"][6, 32](gpu.zeros(192, np.float32), a, b, 16)

    assert isinstance(same(TWO, run), dict) == (sizes == (64, 64))


def test_freed_allocations_are_not_cached() -> None:
    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        return module["freed"][1, 32](gpu.zeros(32, np.float32))

    assert not isinstance(same(FREED, run), dict)


@given(
    st.lists(st.integers(0, 70), min_size=1, max_size=12),
    st.sampled_from([0, 1, 8, 16, 20, 32, 64, 100]),
)
@settings(max_examples=examples(4, nightly=20))
def test_costs_of_half_warps_at_random_offsets(starts: list[int], pitch: int) -> None:
    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        where = gpu.to_device(np.array(starts, np.int32))
        x = gpu.zeros(70 + 15 * pitch + 32, np.float32)
        y = gpu.zeros(256, np.float32)
        return module["rows"][1, (16, 16)](y, x, where, pitch, len(starts))

    assert isinstance(same(ROWS, run), dict)


AROUND = ((1 << 64) + 128) // 3 // 4
"""Three such steps lead around all addresses, and 32 elements further."""

PITCHES = st.one_of(
    st.integers(-18, 18).map(lambda rows: 16 * rows), st.integers(-280, 280), st.just(AROUND)
)


@example([16, AROUND], 4, 16)
@example([32, AROUND], 4, 32)
@example([16, 288], 4, 16)
@given(st.lists(PITCHES, min_size=1, max_size=5), st.integers(1, 4), st.sampled_from([16, 32]))
@settings(max_examples=examples(8, nightly=40))
def test_columns_of_different_pitches(pitches: list[int], laps: int, width: int) -> None:
    """Starts in the middle of 8000 elements, where 15 steps of up to 264 stay in bounds."""

    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        x, y = gpu.zeros(8000, np.float32), gpu.zeros(64 * len(pitches), np.float32)
        each = gpu.to_device(np.array(pitches, np.int64))
        return module["columns"][len(pitches), (width, 64 // width)](y, x, each, laps)

    found = same(COLUMNS, run)
    last = 4 * laps - 1
    if any(4000 + step * last < 0 or 4000 + step * last + width > 8000 for step in pitches):
        assert not isinstance(found, dict)


@given(st.integers(1, 64), st.integers(0, 40))
@settings(max_examples=examples(4, nightly=20))
def test_some_lanes_at_consecutive_addresses(bound: int, offset: int) -> None:
    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        x = gpu.zeros(bound + offset, np.float32)
        return module["partly"][3, 64](gpu.zeros(64, np.float32), x, bound, offset)

    assert isinstance(same(PARTLY, run), dict)


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_that_wait_keep_what_others_overwrite_with_one_value(engine: str) -> None:
    gpu = wl.Device("a100", engine=engine)
    y, x = gpu.zeros(64, np.int32), gpu.to_device(np.array([0, 3], np.int32))
    gpu.compile(AGREED_VALUE)["agreed"][1, 64](y, x)
    one = 3 << 16
    expected = [(one if t < 3 or t == 40 else t + 7) + one for t in range(64)]
    assert y.copy_to_host().tolist() == expected


def test_the_last_of_some_lanes_may_be_one_too_many() -> None:
    def run(gpu: wl.Device, module: wl.Module) -> wl.Run:
        x = gpu.zeros(40, np.float32)
        return module["partly"][1, 64](gpu.zeros(64, np.float32), x, 40, 1)

    found = same(PARTLY, run)
    assert isinstance(found, tuple)
    assert found[1] == (39, 0, 0)
