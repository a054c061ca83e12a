"""Tests that updates whose order shows are performed in the order of blocks, whichever worker runs
these: sums are those of a loop over all threads."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

import warploom as wl
from warploom.abi.update_log import LoggedUpdate
from warploom.machine import late_updates
from warploom.machine.late_updates import LateUpdates, LogSizes, PartLog

pytestmark = pytest.mark.usefixtures("share_every_launch")

N = 20_000

SOURCE = """
extern "C" __global__ void flat(const float *x, float *sums, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sums[i % m], x[i]);
}
extern "C" __global__ void strided(const float *x, float *sums, int n, int m) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&sums[i % m], x[i]);
}
extern "C" __global__ void by_turns(const float *x, float *sums, double *wide, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&sums[i % m], x[i]);
    if (i % 3) atomicAdd(&wide[i % m], (double)x[i] / 3);
}
extern "C" __global__ void last(int *places, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicExch(&places[i % 7], i);
}
extern "C" __global__ void endless(float *sum, int *never, int n) {
    if (blockIdx.x == 0)
        for (unsigned i = 1; i != 0; i = i * 5 + 2 + (n == 7))
            if (i == 3) *never = 1;
    for (int k = 0; k < n; k++) atomicAdd(sum, 0.5f * k);
}
extern "C" __global__ void faulting(float *sum, float *y, int bad) {
    atomicAdd(sum, 0.1f);
    if (blockIdx.x == bad) y[1 << 28] = 1;
}
"""


def values() -> npt.NDArray[np.float32]:
    """Returns numbers of very different sizes, whose sums depend on the order."""
    rng = np.random.default_rng(5)
    return (rng.standard_normal(N) * 10.0 ** rng.integers(-3, 4, N)).astype(np.float32)


def sums_in_order(
    numbers: npt.NDArray[np.floating], places: npt.NDArray[np.integer], count: int
) -> npt.NDArray[np.floating]:
    """Returns the sums of numbers by place, added up one after the other."""
    sums = np.zeros(count, numbers.dtype)
    for number, place in zip(numbers, places, strict=True):
        sums[place] += number
    return sums


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("pausing", [late_updates.PAUSING, 100])
def test_sums_are_those_of_a_loop_over_threads(
    monkeypatch: pytest.MonkeyPatch, workers: int, pausing: int
) -> None:
    """Also where logs are full after 100 entries, so that parts wait for their turns."""
    monkeypatch.setattr(late_updates, "PAUSING", pausing)
    monkeypatch.setattr(late_updates, "_free", [])
    gpu, x, m = wl.Device(workers=workers), values(), 11
    module, on_device, threads = gpu.compile(SOURCE), gpu.to_device(x), np.arange(N)
    flat, strided, narrow, wide = (
        gpu.zeros(m, dtype) for dtype in (np.float32, np.float32, np.float32, np.float64)
    )
    places = gpu.zeros(7, np.int32)
    blocks = -(-N // 128)
    runs = [
        module["flat"][blocks, 128](on_device, flat, N, m),
        module["strided"][24, 64](on_device, strided, N, m),
        module["by_turns"][blocks, 128](on_device, narrow, wide, N, m),
        module["last"][blocks, 128](places, N),
    ]
    assert [(run.workers, run.serial_reason) for run in runs] == [(workers, "")] * 4
    expected = sums_in_order(x, threads % m, m)
    assert np.array_equal(flat.copy_to_host(), expected)
    assert np.array_equal(narrow.copy_to_host(), expected)
    # Blocks run whole, one after the other: all iterations of a warp before the next warp's.
    stride = 24 * 64
    order = [i for warp in range(0, stride, 32) for first in range(warp, N, stride)
             for i in range(first, min(first + 32, N))]  # fmt: skip
    assert np.array_equal(strided.copy_to_host(), sums_in_order(x[order], threads[order] % m, m))
    third = np.flatnonzero(threads % 3)
    expected_wide = sums_in_order(x[third].astype(np.float64) / 3, third % m, m)
    assert np.array_equal(wide.copy_to_host(), expected_wide)
    assert places.copy_to_host().tolist() == [max(range(place, N, 7)) for place in range(7)]


FORMS = """
.version 8.1
.target sm_90
.address_size 64
.visible .entry forms(.param .u64 x, .param .u64 quads, .param .u64 pairs, .param .u64 generic)
{
  .reg .b32 %r<5>; .reg .b64 %d<6>; .reg .f32 %f<5>; .reg .b16 %h;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [quads];
  ld.param.u64 %d2, [pairs];
  ld.param.u64 %d3, [generic];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r0, %r0, %r1, %r2;
  mul.wide.u32 %d4, %r0, 4;
  add.u64 %d0, %d0, %d4;
  ld.global.f32 %f0, [%d0];
  mul.f32 %f1, %f0, 0f40000000;
  mul.f32 %f2, %f0, 0f40400000;
  red.global.add.v4.f32 [%d1], {%f0, %f1, %f2, %f0};
  cvt.rn.f16.f32 %h, %f0;
  mov.b32 %r3, {%h, %h};
  red.global.add.noftz.f16x2 [%d2], %r3;
  red.add.f32 [%d3], %f0;
  ret;
}
"""


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_vectors_halves_and_generic_addresses(workers: int) -> None:
    """Quads of numbers, pairs of halves, and an address whose state space is known at run time."""
    gpu, x = wl.Device("h100", workers=workers), values()[: 64 * 100] % 2
    quads, pairs = gpu.zeros(4, np.float32), gpu.zeros(2, np.float16)
    generic = gpu.zeros(1, np.float32)
    run = gpu.compile(FORMS, "ptx")["forms"][100, 64](gpu.to_device(x), quads, pairs, generic)
    assert (run.workers, run.serial_reason) == (workers, "")
    nowhere = np.zeros(len(x), int)
    sums = [sums_in_order(x * np.float32(by), nowhere, 1)[0] for by in (1, 2, 3, 1)]
    assert quads.copy_to_host().tolist() == sums
    halves = sums_in_order(x.astype(np.float16), nowhere, 1)
    assert pairs.copy_to_host().tolist() == [halves[0]] * 2
    assert generic.copy_to_host() == sums[0]


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_fault_leaves_the_sums_of_the_blocks_before_it(workers: int) -> None:
    gpu = wl.Device(workers=workers)
    total, y = gpu.zeros(1, np.float32), gpu.zeros(1, np.float32)
    with pytest.raises(wl.MemoryFault):
        gpu.compile(SOURCE)["faulting"][100, 32](total, y, 60)
    expected = sums_in_order(np.full(61 * 32, 0.1, np.float32), np.zeros(61 * 32, int), 1)
    assert total.copy_to_host() == expected


def test_an_interrupt_ends_a_part_that_waits_for_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Block 0 runs without end, so that the part with the others, whose log is full, waits."""
    monkeypatch.setattr(late_updates, "PAUSING", 10)
    monkeypatch.setattr(late_updates, "_free", [])
    gpu = wl.Device(workers=2)
    module, total = gpu.compile(SOURCE), gpu.zeros(1, np.float32)
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        module["endless"][100, 32](total, gpu.zeros(1, np.int32), 1 << 30)
    timer.join()


def test_parts_end_in_any_order() -> None:
    """Four parts of ten blocks, each of which logs its number; the third does not complete."""
    performed: list[int] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    def apply(first: int, end: int) -> None:
        """Notes the operands of the entries."""
        words = (end - first) // 8
        entries = np.ctypeslib.as_array(
            ctypes.cast(first, ctypes.POINTER(ctypes.c_int64)), (words,)
        )
        performed.extend(entries[LoggedUpdate.operand :: LoggedUpdate.WORDS].tolist())

    def append(log: PartLog, number: int) -> None:
        """Appends an entry."""
        at = int(log.head.count) * LoggedUpdate.WORDS
        function = ctypes.cast(apply, ctypes.c_void_p).value or 0
        log.entries[at : at + LoggedUpdate.WORDS] = function, 0, number
        log.head.count += 1

    late = LateUpdates(0, LogSizes(1, 100))
    parts = [range(*ends) for ends in pairwise((0, 10, 20, 30, 40))]
    logs = {number: late.begin(part) for number, part in enumerate(parts)}
    assert [number for number, log in logs.items() if log is None] == [0]
    for number, log in logs.items():
        if log is not None:
            append(log, number)
    late.end(parts[3], logs[3], is_complete=True)
    late.end(parts[1], logs[1], is_complete=True)
    assert performed == []
    late.end(parts[0], None, is_complete=True)
    assert performed == [1]
    assert logs[2] is not None
    assert late.has_turn(parts[2], logs[2], lambda: False)
    assert performed == [1, 2]
    late.end(parts[2], None, is_complete=False)
    assert performed == [1, 2]
