"""Workers: the same results and counters, however many share the blocks of a launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.machine.compiled import block_times, distribution, sharing
from warploom.machine.compiled.sharing import SharedLaunch

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
N = 5000
SQUARE = (64, 64)

LAUNCHES = {
    "saxpy": ("saxpy.cu", 20, 256, lambda floats: (N, 2.5, floats(N), floats(N))),
    "matmul_tiled": (
        *("matmul.cu", (4, 4), (16, 16)),
        lambda floats: (floats(SQUARE), floats(SQUARE), floats(SQUARE), 64),
    ),
    "mandelbrot": (
        *("mandelbrot.cu", (2, 8), (32, 8)),
        lambda floats: (np.zeros(SQUARE, np.int32), 64, 64, 50),
    ),
    "reduce": ("reduction.cu", 16, 256, lambda floats: (floats(N), floats(16), N)),
    "transpose_naive": (
        *("transpose.cu", (2, 2), (32, 8)),
        lambda floats: (floats(SQUARE), floats(SQUARE), 64),
    ),
}


def ran(name: str, workers: int) -> tuple[wl.Run, list[np.ndarray]]:
    file, grid, block, make = LAUNCHES[name]
    random = np.random.default_rng(5)
    arguments = make(lambda shape: random.random(shape, np.float32))
    gpu = wl.Device("a100", workers=workers)
    run = gpu.load(EXAMPLES / file)[name][grid, block, 0, 4 * 256](*arguments)
    return run, [a for a in arguments if isinstance(a, np.ndarray)]


def shown(run: wl.Run) -> list[tuple[object, ...]]:
    """The costliest accesses, by what does not depend on where memory lies on the host."""
    return [
        (e.line, e.cost, e.lanes, [address - e.addresses[0] for address in e.addresses])
        for e in run.examples
    ]


@pytest.mark.usefixtures("share_every_launch")
@pytest.mark.parametrize("name", LAUNCHES)
def test_two_workers_do_what_one_does(name: str) -> None:
    alone, expected = ran(name, 1)
    shared, got = ran(name, 2)
    assert (alone.workers, shared.workers, shared.serial_reason) == (1, 2, "")
    for a, b in zip(expected, got, strict=True):
        assert np.array_equal(a, b)
    assert dict(shared.counters) == dict(alone.counters)
    by_line = [dict(run.counters.by_line()) for run in (alone, shared)]
    assert {k: dict(v) for k, v in by_line[0].items()} == {
        k: dict(v) for k, v in by_line[1].items()
    }
    assert shown(shared) == shown(alone)


@pytest.mark.usefixtures("share_every_launch")
def test_counts_of_integers_are_shared() -> None:
    """256 bytes, each value once: integers add up to the same in any order."""
    gpu = wl.Device("a100", workers=2)
    data, bins = np.arange(256, dtype=np.uint8), gpu.zeros(256, np.uint32)
    run = gpu.load(EXAMPLES / "histogram.cu")["histogram"][2, 128](data, bins, 256)
    assert (run.workers, run.serial_reason) == (2, "")
    assert bins.copy_to_host().tolist() == [1] * 256


@pytest.mark.usefixtures("share_every_launch")
def test_what_could_show_the_order_of_blocks_has_one_worker() -> None:
    gpu = wl.Device("a100", workers=2)
    source = """
    extern "C" __global__ void k(float *sum, float *before) {
        before[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(sum, 0.1f);
    }"""
    run = gpu.compile(source)["k"][2, 128](gpu.zeros(1, np.float32), gpu.zeros(256, np.float32))
    assert run.workers == 1
    assert "the result depends on the order of atomics at" in run.serial_reason
    saxpy = gpu.load(EXAMPLES / "saxpy.cu")["saxpy"][2, 32]
    x, y = gpu.zeros(64, np.float32), gpu.zeros(64, np.float32)
    run = saxpy(64, 1.0, x, y, schedule="random")
    assert "the schedule interleaves the blocks" in run.serial_reason
    run = saxpy(64, 1.0, x, y, max_instructions=10_000)
    assert "the instruction limit" in run.serial_reason
    assert saxpy(64, 1.0, x, y).workers == 2


@pytest.mark.usefixtures("share_every_launch")
def test_what_was_proven_of_other_allocations_does_not_count() -> None:
    """The same pointers again, but now into one allocation: what a block reads anywhere in it, the
    other may write."""
    source = """
    extern "C" __global__ void k(int *y, const int *x) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] = x[i ^ 1];
    }"""
    gpu = wl.Device("a100", workers=2)
    kernel = gpu.compile(source)["k"][2, 32]
    disjoint = [gpu.zeros(64, np.int32) for _ in range(2)]
    pointers = [buffer.address for buffer in disjoint]
    assert [kernel(*pointers).workers for _ in range(2)] == [2, 2]
    for buffer in disjoint:
        buffer.free()
    both = gpu.zeros(64 + (pointers[1] - pointers[0]) // 4, np.int32)
    assert both.address == pointers[0]
    run = kernel(*pointers)
    assert run.workers == 1
    assert "blocks may access the same addresses" in run.serial_reason


@pytest.mark.usefixtures("share_every_launch")
def test_the_first_blocks_fault_is_reported() -> None:
    source = """
    extern "C" __global__ void k(int *y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (blockIdx.x >= 2) y[i + n] = 1;
    }"""
    gpu = wl.Device("a100", workers=2)
    with pytest.raises(wl.MemoryFault) as caught:
        gpu.compile(source)["k"][8, 32](gpu.zeros(256, np.int32), 1 << 20)
    assert caught.value.block == (2, 0, 0)


SPREAD = """
extern "C" __global__ void k(int *y, const int *x, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = 0;
    for (int turn = 0; turn < turns; turn++) sum = sum * 5 + x[i];
    y[i] = sum;
}"""


@pytest.fixture
def joins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has other workers join at the first pause, on two cores, whatever that saves."""
    for module in (block_times, distribution, sharing):
        monkeypatch.setattr(module, "SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr(distribution, "usable_cores", lambda: 2)
    monkeypatch.setattr(SharedLaunch, "_loss", lambda *_: "")


@pytest.mark.usefixtures("joins_at_once")
def test_workers_join_a_launch_that_runs() -> None:
    """A thread begins alone; the rest of its blocks, 1,000 less those that it has begun, are shared
    from its first pause on. Further launches are shared from the start."""
    n, runs, outputs = 64_000, [], []
    x = np.arange(n, dtype=np.int32)
    for workers in (1, None):
        gpu = wl.Device("a100", workers=workers)
        kernel = gpu.compile(SPREAD)["k"][1_000, 64]
        for _ in range(2):
            y = gpu.zeros(n, np.int32)
            runs.append(kernel(y, gpu.to_device(x), n - 5, 20))
            outputs.append(y.copy_to_host())
    # 20 steps of sum * 5 + x are x times the sum of the first 20 powers of 5.
    expected = (x.astype(np.int64) * ((5**20 - 1) // 4) % 2**32).astype(np.uint32).view(np.int32)
    expected[-5:] = 0
    assert [run.workers for run in runs] == [1, 1, 2, 2]
    for run, output in zip(runs, outputs, strict=True):
        assert np.array_equal(output, expected)
        assert dict(run.counters) == dict(runs[0].counters)
        assert shown(run) == shown(runs[0])


@pytest.mark.usefixtures("joins_at_once")
def test_the_first_fault_of_workers_that_joined_is_reported() -> None:
    """Blocks from 700 on store behind the buffer, which has 700 * 64 elements."""
    gpu = wl.Device("a100")
    y, x = gpu.zeros(700 * 64, np.int32), gpu.zeros(64_000, np.int32)
    with pytest.raises(wl.MemoryFault) as caught:
        gpu.compile(SPREAD)["k"][1_000, 64](y, x, 64_000, 20)
    assert caught.value.block == (700, 0, 0)


@pytest.mark.usefixtures("share_every_launch")
@pytest.mark.parametrize("workers", [2, 3])
def test_a_fault_stops_later_blocks(workers: int) -> None:
    """The first block stores out of bounds; each other one would run for minutes."""
    source = """
    extern "C" __global__ void k(unsigned *y, unsigned turns) {
        if (blockIdx.x == 0) { y[1 << 20] = 1; return; }
        unsigned x = threadIdx.x;
        for (unsigned turn = 0; turn < turns; turn++) x = x * x + turn;
        y[blockIdx.x] = x;
    }"""
    gpu = wl.Device("a100", workers=workers)
    with pytest.raises(wl.MemoryFault) as caught:
        gpu.compile(source)["k"][8, 32](gpu.zeros(8, np.uint32), 2**32 - 1)
    assert caught.value.block == (0, 0, 0)


@pytest.mark.usefixtures("joins_at_once")
def test_nobody_joins_a_launch_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block traps: no later one runs, as on one worker."""
    source = """
    extern "C" __global__ void k(int *y) {
        if (blockIdx.x == 0) asm volatile("trap;");
        y[blockIdx.x] = 1;
    }"""
    gpu = wl.Device("a100")
    y = gpu.zeros(64, np.int32)
    begun: list[object] = []
    monkeypatch.setattr(SharedLaunch, "_start", lambda *given, **_: begun.append(given))
    with pytest.raises(wl.KernelFault):
        gpu.compile(source)["k"][64, 32](y)
    assert not begun
    assert not y.copy_to_host().any()


@pytest.mark.usefixtures("joins_at_once")
def test_progress_of_workers_that_joined() -> None:
    """What is reported never falls, and ends with all blocks."""
    gpu = wl.Device("a100")
    y, x = gpu.zeros(64_000, np.int32), gpu.zeros(64_000, np.int32)
    reported: list[tuple[int, int]] = []
    launcher = gpu.compile(SPREAD)["k"][1_000, 64]
    run = launcher(y, x, 64_000, 20, progress=lambda *done: reported.append(done))
    assert run.workers == 2
    assert reported == sorted(reported)
    assert reported[-1] == (1_000, 1_000)


def test_short_launches_stay_on_one_worker() -> None:
    gpu = wl.Device("a100")
    x, y = gpu.zeros(64, np.float32), gpu.zeros(64, np.float32)
    run = gpu.load(EXAMPLES / "saxpy.cu")["saxpy"][2, 32](64, 1.0, x, y)
    assert (run.workers, run.serial_reason) == (1, sharing.TOO_SHORT)


def test_a_device_needs_a_worker() -> None:
    with pytest.raises(wl.OptionValueError, match="workers takes an integer from 1"):
        wl.Device(workers=0)
