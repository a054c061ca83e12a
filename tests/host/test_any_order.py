"""Launches whose blocks run side by side in any order (`order="any"`): atomics, grid-wide barriers
and blocks that wait for others work, and leave what the architecture allows."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from needs import NEEDS_NVRTC

import warploom as wl
from warploom.machine.compiled.distribution import DistributedLaunch
from warploom.machine.compiled.work import WorkerLaunch

pytestmark = NEEDS_NVRTC

SOURCE = """
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void sums(float* f, double* d, __half2* h, unsigned long long* u) {
    for (int turn = 0; turn < 8; turn++) {
        atomicAdd(f, 1.0f); atomicAdd(d, 1.0); atomicAdd(u, 3ull);
        if (THREAD < 256) atomicAdd(h, __half2{1.0f, 1.0f});
    }
}
extern "C" __global__ void tickets(int* next, int* out) { out[atomicAdd(next, 1)] = THREAD; }
extern "C" __global__ void bounded(unsigned* ring, unsigned* zero) {
    atomicInc(ring, 99); atomicDec(zero, 1000000);
}
extern "C" __global__ void swaps(int* place, int* got) {
    got[THREAD] = atomicExch(place, THREAD + 1);
}
extern "C" __global__ void largest(unsigned long long* most, const unsigned long long* x) {
    unsigned long long mine = x[THREAD], old = *most;
    while (old < mine) {
        unsigned long long seen = atomicCAS(most, old, mine);
        if (seen == old) break;
        old = seen;
    }
}
extern "C" __global__ void behind(volatile int* flags, volatile int* sums, int* out) {
    if (threadIdx.x) return;
    int b = blockIdx.x, before = 0;
    if (b > 0) { while (flags[b - 1] == 0); __threadfence(); before = sums[b - 1]; }
    sums[b] = before + b; __threadfence(); flags[b] = 1; out[b] = before;
}
extern "C" __global__ void ahead(volatile int* flags) {
    if (threadIdx.x) return;
    if (blockIdx.x + 1 < gridDim.x) while (flags[blockIdx.x + 1] == 0);
    flags[blockIdx.x] = 1;
}
extern "C" __global__ void together(int* a, int* out, int n) {
    auto grid = cooperative_groups::this_grid();
    for (int turn = 0; turn < 10; turn++) {
        a[THREAD] += 1;
        grid.sync();
        out[THREAD] += a[(THREAD + 97 * turn) % n];
        grid.sync();
    }
}
extern "C" __global__ void never(volatile int* flags) { while (flags[blockIdx.x] == 0); }
extern "C" __global__ void counts(volatile int* flags, int* out) {
    int turns = 0;
    while (flags[gridDim.x - 1] == 0) turns++;
    out[blockIdx.x] = turns;
}
extern "C" __global__ void faults(volatile int* flags) {
    if (blockIdx.x == gridDim.x - 1) flags[1 << 24] = 1;
    while (flags[0] == 0);
}
extern "C" __global__ void prints() { printf("%d ", blockIdx.x); }
"""
BLOCKS, THREADS = 64, 64
N = BLOCKS * THREADS


@pytest.fixture(scope="module", params=[2, 5])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def gpu(workers: int) -> wl.Device:
    return wl.Device("h100", workers=workers, order="any")


@pytest.fixture(scope="module")
def module(gpu: wl.Device) -> wl.Module:
    return gpu.compile(SOURCE)


def test_sums_are_whole(gpu: wl.Device, module: wl.Module, workers: int) -> None:
    """Numbers that are exact in each type: no update may be lost."""
    types = (np.float32, np.float64, np.float16, np.uint64)
    f, d, h, u = (gpu.zeros(2, type) for type in types)
    run = module["sums"][BLOCKS, THREADS](f, d, h, u)
    assert (run.workers, run.any_order, run.serial_reason) == (workers, True, "")
    assert [each.copy_to_host()[0] for each in (f, d, u)] == [8 * N, 8 * N, 24 * N]
    assert h.copy_to_host().tolist() == [2_048, 2_048]


def test_each_thread_gets_a_ticket_of_its_own(gpu: wl.Device, module: wl.Module) -> None:
    following, out = gpu.zeros(1, np.int32), gpu.zeros(N, np.int32)
    module["tickets"][BLOCKS, THREADS](following, out)
    assert following.copy_to_host() == [N]
    assert np.array_equal(np.sort(out.copy_to_host()), np.arange(N))


def test_counters_that_wrap(gpu: wl.Device, module: wl.Module) -> None:
    """From 0 up to 99 and again: N modulo 100. From 0 to a million, and down."""
    ring, zero = gpu.zeros(1, np.uint32), gpu.zeros(1, np.uint32)
    module["bounded"][BLOCKS, THREADS](ring, zero)
    assert ring.copy_to_host() == [N % 100]
    assert zero.copy_to_host() == [1_000_001 - N]


def test_what_is_exchanged_goes_round_once(gpu: wl.Device, module: wl.Module) -> None:
    place, got = gpu.zeros(1, np.int32), gpu.zeros(N, np.int32)
    module["swaps"][BLOCKS, THREADS](place, got)
    seen = np.append(got.copy_to_host(), place.copy_to_host())
    assert np.array_equal(np.sort(seen), np.arange(N + 1))


def test_compare_and_swap(gpu: wl.Device, module: wl.Module) -> None:
    x = np.random.default_rng(1).integers(0, 1 << 63, N, np.uint64)
    most = gpu.zeros(1, np.uint64)
    module["largest"][BLOCKS, THREADS](most, gpu.to_device(x))
    assert most.copy_to_host() == [x.max()]


def test_blocks_that_wait_for_earlier_ones(gpu: wl.Device, module: wl.Module) -> None:
    flags, sums, out = (gpu.zeros(300, np.int32) for _ in range(3))
    module["behind"][300, THREADS](flags, sums, out)
    assert np.array_equal(out.copy_to_host(), np.cumsum(np.arange(300)) - np.arange(300))


def test_blocks_that_wait_for_later_ones(gpu: wl.Device, module: wl.Module) -> None:
    flags = gpu.zeros(100, np.int32)
    module["ahead"][100, 32](flags)
    assert flags.copy_to_host().all()


def test_barriers_of_a_grid(gpu: wl.Device, module: wl.Module) -> None:
    """In turn r each element is r + 1 when it is read: 1 + 2 + ... + 10."""
    a, out = gpu.zeros(N, np.int32), gpu.zeros(N, np.int32)
    module["together"][BLOCKS, THREADS](a, out, N, cooperative=True)
    assert (out.copy_to_host() == 55).all()


def test_a_deadlock_is_proven(gpu: wl.Device, module: wl.Module) -> None:
    with pytest.raises(wl.DeadlockError, match="no remaining thread can make progress"):
        module["never"][8, 32](gpu.zeros(8, np.int32))


def test_a_fault_ends_the_blocks_that_wait(gpu: wl.Device, module: wl.Module) -> None:
    began = time.monotonic()
    with pytest.raises(wl.MemoryFault) as caught:
        module["faults"][8, 32](gpu.zeros(8, np.int32))
    assert caught.value.block == (7, 0, 0)
    assert time.monotonic() - began < 60


def test_an_exception_of_another_worker_ends_the_blocks_that_wait(
    monkeypatch: pytest.MonkeyPatch, gpu: wl.Device, module: wl.Module
) -> None:
    """The last part cannot be prepared, and the first waits for a value of its blocks, in a loop
    that changes registers."""
    prepare = DistributedLaunch._prepare

    def failing(self: DistributedLaunch, blocks: range, worker: int = 0) -> WorkerLaunch:
        if blocks.stop == self.launch.blocks:
            time.sleep(0.3)
            raise MemoryError("no buffers")
        return prepare(self, blocks, worker)

    monkeypatch.setattr(DistributedLaunch, "_prepare", failing)
    with pytest.raises((MemoryError, wl.LaunchCancelled)):
        module["counts"][10, 32](gpu.zeros(10, np.int32), gpu.zeros(10, np.int32))


def test_what_has_one_worker_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    gpu = wl.Device("h100", workers=2, order="any")
    module = gpu.compile(SOURCE)
    run = module["prints"][4, 1]()
    assert (run.workers, run.serial_reason) == (1, "the kernel calls printf or malloc")
    assert capfd.readouterr().out == "0 1 2 3 "
    flags = gpu.zeros(8, np.int32)
    with pytest.raises(wl.InstructionLimit):
        module["never"][8, 32](flags, max_instructions=10_000)


def test_a_launch_chooses_for_itself() -> None:
    gpu = wl.Device("h100", workers=2)
    kernel = gpu.compile(SOURCE)["tickets"][BLOCKS, THREADS]
    run = kernel(gpu.zeros(1, np.int32), gpu.zeros(N, np.int32), order="any")
    assert (run.workers, run.any_order) == (2, True)
    assert "in arbitrary order" in str(run.report())
    run = kernel(gpu.zeros(1, np.int32), out := gpu.zeros(N, np.int32))
    assert not run.any_order
    assert "in arbitrary order" not in str(run.report())
    assert np.array_equal(out.copy_to_host(), np.arange(N))


def test_a_policy_has_one_order() -> None:
    with pytest.raises(wl.WarploomError, match="omit one of the two options"):
        wl.Device("h100", order="any", schedule="random")
    with pytest.raises(wl.OptionValueError, match=r"order.*blocks.*any"):
        wl.Device("h100", order="most")


def test_the_command_line(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text('extern "C" __global__ void k(float* s) { atomicAdd(s, 1.0f); }', "utf-8")
    command = [sys.executable, "-m", "warploom.cli", "run", source, "--grid", "8", "--block", "64"]
    arguments = ["--arg", "f32[1]=zeros", "--any-order", "--workers", "2"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Blocks ran in arbitrary order" in done.stdout
