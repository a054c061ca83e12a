"""SAXPY as real CUDA C++: its result to the bit, and counts that follow from the launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).parents[2] / "examples" / "saxpy.cu"
N = 1 << 20
THREADS = 256


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device("rtx-2080-ti")


@pytest.fixture(scope="module")
def saxpy(gpu: wl.Device) -> wl.Kernel:
    return gpu.load(SOURCE)["saxpy"]


def run(gpu: wl.Device, kernel: wl.Kernel, n: int) -> tuple[np.ndarray, np.ndarray, wl.Run]:
    """Run over n elements drawn from [0.5, 1): what it should give, what it gave, the run."""
    rng = np.random.default_rng(n)
    a, x, y = (rng.random(k, np.float32) / 2 + np.float32(0.5) for k in (1, n, n))
    # 24 x 24 bits and a sum in the same binade fit the 64 bits of a long double: rounded once.
    exact = a.astype(np.longdouble) * x.astype(np.longdouble) + y.astype(np.longdouble)
    device_y = gpu.to_device(y)
    grid = -(-n // THREADS)
    done = kernel[grid, THREADS](n, a[0], gpu.to_device(x), device_y)
    return exact.astype(np.float32), device_y.copy_to_host(), done


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no wider float to check with")
def test_the_result_is_a_correctly_rounded_fused_multiply_add(gpu, saxpy) -> None:
    expected, got, _ = run(gpu, saxpy, N)
    assert np.array_equal(expected.view(np.uint32), got.view(np.uint32))


def test_every_warp_loads_four_sectors_a_request(gpu, saxpy) -> None:
    counters = run(gpu, saxpy, N)[2].counters
    warps = N // 32
    assert warps == 32_768
    assert counters.global_load_requests == 2 * warps
    assert counters.global_load_sectors == 4 * counters.global_load_requests
    assert counters.global_load_lines == counters.global_load_requests
    assert counters.global_store_requests == warps
    assert counters.global_store_sectors == 4 * warps
    assert counters.global_load_bytes_requested == 2 * 4 * N
    assert counters.divergent_branches == 0


def test_the_tail_guard_diverges_in_one_warp(gpu, saxpy) -> None:
    counters = run(gpu, saxpy, N - 5)[2].counters
    assert counters.branches == N // 32
    assert counters.divergent_branches == 1
    # The other side returns (machine code has a predicated EXIT): nothing reconverges.
    assert counters.reconvergences == 0
    assert counters.global_store_bytes_requested == 4 * (N - 5)


def test_a_block_of_100_has_four_warps_and_28_lanes_that_never_existed(gpu, saxpy) -> None:
    x, y = gpu.to_device(np.ones(300, np.float32)), gpu.zeros(300, np.float32)
    counters = saxpy[3, 100](300, 1.0, x, y).counters
    per_thread = counters.warp_instructions // (3 * 4)
    assert counters.warp_instructions == 3 * 4 * per_thread
    assert counters.thread_instructions == 3 * 100 * per_thread
    assert counters.divergent_branches == 0


def test_without_its_guard_the_fault_is_found_and_nothing_else_is_touched(gpu) -> None:
    unguarded = SOURCE.read_text("utf-8").replace("if (i < n)", "")
    line = next(i for i, t in enumerate(unguarded.splitlines(), 1) if "y[i] =" in t)
    kernel = gpu.compile(unguarded, language="cuda", name="unguarded.cu")["saxpy"]
    n = 1000
    before = gpu.to_device(np.full(64, 7, np.float32), name="before")
    x = gpu.to_device(np.ones(n, np.float32), name="x")
    y = gpu.to_device(np.zeros(n, np.float32), name="y")
    after = gpu.to_device(np.full(64, 9, np.float32), name="after")
    with pytest.raises(wl.MemoryFault) as caught:
        kernel[4, THREADS](n, 2.0, x, y)
    fault = caught.value
    # Element 1000 is thread 232 of block 3, the first lane of its warp that reaches too far.
    assert (fault.kind, fault.block, fault.thread) == ("out of bounds", (3, 0, 0), (232, 0, 0))
    assert fault.nearest is not None
    assert fault.address == fault.nearest.address + 4 * n
    assert fault.line.endswith(f"unguarded.cu:{line}")
    for part in ("saxpy", f"unguarded.cu:{line}", "(3, 0, 0)", "(232, 0, 0)", hex(fault.address)):
        assert part in str(fault)
    assert set(before.copy_to_host()) == {7}
    assert set(after.copy_to_host()) == {9}
    assert np.array_equal(y.copy_to_host()[: 3 * THREADS], np.full(3 * THREADS, 2, np.float32))
    # The device stays usable.
    kernel[3, THREADS](n, 2.0, x, y)
    assert y.copy_to_host()[0] == 4
