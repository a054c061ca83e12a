"""Tests the record of a launch: it is small, and recording changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import MemoryFault, WarploomError
from warploom.timing.records import TimedAccess

HISTOGRAM = """
extern "C" __global__ void count(const unsigned *x, unsigned *bins, float *sum, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        atomicAdd(&bins[x[i] % 64], 1u);
        atomicAdd(sum, 0.1f * x[i]);
    }
}
"""


def test_saxpy_is_one_stream_and_an_address_per_access() -> None:
    """All warps do the same: two loads and a store, each with a base address of its own."""
    gpu = wl.Device("v100", record=True)
    n = 1 << 18
    x, y = gpu.zeros(n, np.float32), gpu.zeros(n, np.float32)
    run = gpu.load("examples/saxpy.cu")["saxpy"][n // 256, 256](n, 2.0, x, y)
    record = run.record
    assert record is not None
    assert len(record.streams) == 1
    assert record.warps.shape == (n // 32, 1 + 3)
    assert len(record.accesses) == 3
    places = record.warps[:, 1]
    assert np.array_equal(np.diff(places), np.full(n // 32 - 1, 128))


def test_reordering_stays_within_entries() -> None:
    """Two basic blocks with two accesses each, reordered by an order that reverses each block."""
    gpu = wl.Device("v100", record=True)
    source = """extern "C" __global__ void twice(volatile float *x) {
        x[threadIdx.x] += 1; __syncthreads(); x[threadIdx.x] *= 3; }"""
    run = gpu.compile(source)["twice"][1, 32](gpu.zeros(32, np.float32))
    record = run.record
    assert record is not None
    first, second, third, fourth = record.accesses[:, TimedAccess.instruction].tolist()
    assert first < second < third < fourth
    blocks = run.kernel.program.blocks
    turned = record.in_order([[*reversed(range(block.start, block.stop))] for block in blocks])
    assert turned.accesses[:, TimedAccess.instruction].tolist() == [second, first, fourth, third]


def test_recording_changes_no_result_or_counter() -> None:
    """Sums of floats show the order of atomics, bit for bit."""
    left: list[tuple[list[float], dict[str, object]]] = []
    for record in (False, True):
        gpu = wl.Device("v100", record=record)
        x = gpu.to_device(np.random.default_rng(1).integers(0, 1 << 16, 9000).astype(np.uint32))
        bins, total = gpu.zeros(64, np.uint32), gpu.zeros(1, np.float32)
        run = gpu.compile(HISTOGRAM)["count"][40, 64](x, bins, total, 9000)
        found = [*bins.copy_to_host().tolist(), *total.copy_to_host().tolist()]
        left.append((found, dict(run.counters)))
    assert left[0] == left[1]


def test_fault_is_reported_while_recording() -> None:
    gpu = wl.Device(record=True)
    x, y = gpu.zeros(1000, np.float32), gpu.zeros(1000, np.float32)
    kernel = gpu.compile(
        'extern "C" __global__ void k(float *x, float *y)'
        " { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i]; }"
    )["k"]
    with pytest.raises(MemoryFault) as fault:
        kernel[4, 256](x, y)
    assert fault.value.thread == (232, 0, 0)
    assert fault.value.block == (3, 0, 0)


def test_unrecorded_launch_is_refused() -> None:
    gpu = wl.Device()
    x, y = gpu.zeros(32, np.float32), gpu.zeros(32, np.float32)
    run = gpu.load("examples/saxpy.cu")["saxpy"][1, 32](32, 2.0, x, y)
    with pytest.raises(WarploomError, match="record=True"):
        run.time()
    with pytest.raises(WarploomError, match="only the compiled engine"):
        wl.Device(engine="reference", record=True)


def test_sample_extrapolates_to_whole_launch() -> None:
    """48 MiB go through 6 MiB of L2, which is full of written data in the middle of the sample."""
    gpu = wl.Device("v100", record=True)
    n = 1 << 22
    x, y = gpu.zeros(n, np.float32), gpu.zeros(n, np.float32)
    run = gpu.load("examples/saxpy.cu")["saxpy"][n // 256, 256](n, 2.0, x, y)
    whole, part = run.time(), run.time(sample=10)
    assert (whole.sampled_blocks, whole.cycles_error) == (n // 256, 0)
    assert part.sampled_blocks == 10 * 80 * 8
    assert part.sample_cycles < whole.cycles / 2
    assert part.cycles == pytest.approx(whole.cycles, rel=0.03)
    with pytest.raises(WarploomError, match="sample takes an integer from 1"):
        run.time(sample=0)


def test_changed_specification_changes_time() -> None:
    """Twice the latency of DRAM: a single warp's loads take twice as long."""
    gpu = wl.Device("v100", record=True)
    x = gpu.zeros((64, 16), np.int64)
    x.view[:, 0] = x.address + 128 * np.arange(1, 65)
    kernel = gpu.compile(
        'extern "C" __global__ void k(long long *x) { long long *p = x;'
        " for (int i = 0; i < 64; i++) p = (long long *)*p; if (!p) x[1] = 1; }"
    )["k"]
    run = kernel[1, 32](x)
    own = run.time()
    slow = run.time(spec=replace(own.spec, latency_dram=2 * own.spec.latency_dram))
    assert slow.cycles == own.cycles + 64 * own.spec.latency_dram


def test_a_launch_of_which_no_block_fits_into_the_log_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of four warps enters the loop's block a thousand times, and the log has 64 entries."""
    monkeypatch.setattr("warploom.machine.compiled.logs.MOST_ENTRIES", 64)
    gpu = wl.Device("v100", record=True)
    source = """extern "C" __global__ void sum(volatile float *x, float *out, int n) {
        float s = 0; for (int i = 0; i < n; i++) s += x[i % 8]; *out = s; }"""
    out = gpu.zeros(1, np.float32)
    ones = gpu.to_device(np.ones(8, np.float32))
    run = gpu.compile(source)["sum"][1, 128](ones, out, 1000)
    assert out.copy_to_host()[0] == 1000
    with pytest.raises(WarploomError, match="exceeds the size limit"):
        run.time()
