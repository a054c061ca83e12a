"""What counting costs: the engine's kernels with all counters and device rules, and without any.

    python benchmarks/observers.py

Both versions of a kernel run in turn, and the quickest of several launches of each counts, for
other work on the computer only ever adds time. Checks of addresses stay on in both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
from llvmlite import ir

import warploom as wl
from warploom.codegen import cache
from warploom.codegen.access_costs import AccessCosts
from warploom.codegen.common_access import CommonAccess
from warploom.codegen.frame import Frame
from warploom.codegen.lanes import I1
from warploom.codegen.row_loads import RowLoads

EXAMPLES = Path(__file__).parent.parent / "examples"
LAUNCHES = 9

Launch = Callable[[], wl.Run]


find = cache.find


def found(kind: str, key: str) -> bytes | None:
    """What is in the cache, but for kernels."""
    return None if kind == "kernel" else find(kind, key)


def without_counters(make: Callable[[], Launch]) -> Launch:
    """A launch whose kernel was compiled with nothing to count."""

    def nothing(*_: object) -> None:
        return None

    with (
        patch.object(AccessCosts, "count", nothing),
        patch.object(CommonAccess, "count", nothing),
        patch.object(RowLoads, "count", nothing),
        patch.object(RowLoads, "note", nothing),
        patch.object(RowLoads, "is_known", lambda *_: ir.Constant(I1, 1)),
        patch.object(Frame, "count", nothing),
        # What was compiled before counts, and what is compiled now must not be kept.
        patch.object(
            cache, "find", lambda kind, key: find(kind, key) if kind != "kernel" else None
        ),
        patch.object(cache, "keep", nothing),
    ):
        launch = make()
        launch()
    return launch


def quickest(*launches: Launch) -> list[float]:
    """The quickest launch of each, in seconds, all taking turns."""
    times = [float("inf")] * len(launches)
    for _ in range(LAUNCHES):
        for index, launch in enumerate(launches):
            start = time.perf_counter()
            launch()
            times[index] = min(times[index], time.perf_counter() - start)
    return times


def measure(name: str, make: Callable[[], Launch]) -> float:
    """Print one row, and give the share of the speed that is left; `make` gives a launch on a
    device of its own."""
    bare, counted = without_counters(make), make()
    counted()
    plain, full = quickest(bare, counted)
    print(f"{name:26}{1e3 * plain:12.2f}{1e3 * full:12.2f}{100 * (1 - plain / full):10.1f} %")
    return plain / full


def mandelbrot() -> Launch:
    gpu, size = wl.Device("h100"), 1024
    kernel = gpu.load(EXAMPLES / "mandelbrot.cu")["mandelbrot"]
    steps = gpu.zeros((size, size), np.int32)
    return lambda: kernel[(size // 32, size // 8), (32, 8)](steps, size, size, 256)


def saxpy() -> Launch:
    gpu, n = wl.Device("h100"), 1 << 22
    kernel = gpu.load(EXAMPLES / "saxpy.cu")["saxpy"]
    x, y = gpu.to_device(np.ones(n, np.float32)), gpu.zeros(n, np.float32)
    return lambda: kernel[n // 256, 256](n, 2.0, x, y)


def reduction() -> Launch:
    gpu, n = wl.Device("h100"), 1 << 22
    kernel = gpu.load(EXAMPLES / "reduction.cu")["reduce"]
    x, sums = gpu.to_device(np.ones(n, np.float32)), gpu.zeros(n // 256, np.float32)
    return lambda: kernel[n // 256, 256, None, 1024](x, sums, n)


def matmul(name: str) -> Callable[[], Launch]:
    def make() -> Launch:
        gpu, order = wl.Device("h100"), 256
        kernel = gpu.load(EXAMPLES / "matmul.cu")[name]
        a, b, c = (gpu.to_device(np.ones((order, order), np.float32)) for _ in range(3))
        tiles = (order // 16, order // 16)
        return lambda: kernel[tiles, (16, 16)](a, b, c, order)

    return make


def histogram() -> Launch:
    gpu, n = wl.Device("h100"), 1 << 20
    kernel = gpu.load(EXAMPLES / "histogram.cu")["histogram"]
    data = gpu.to_device(np.random.default_rng(0).integers(0, 256, n).astype(np.uint8))
    bins = gpu.zeros(256, np.uint32)
    return lambda: kernel[256, 256](data, bins, n)


def transpose() -> Launch:
    gpu, order = wl.Device("h100"), 1024
    kernel = gpu.load(EXAMPLES / "transpose.cu")["transpose_naive"]
    source, out = (gpu.zeros((order, order), np.float32) for _ in range(2))
    tiles = (order // 32, order // 32)
    return lambda: kernel[tiles, (32, 8)](source, out, order)


def main() -> None:
    print(f"{'kernel':26}{'bare, ms':>12}{'counted, ms':>12}{'cost':>12}")
    left = [
        measure("Mandelbrot 1024^2", mandelbrot),
        measure("SAXPY 2^22", saxpy),
        measure("block reduction 2^22", reduction),
        measure("matmul_naive 256^3", matmul("matmul_naive")),
        measure("matmul_tiled 256^3", matmul("matmul_tiled")),
        measure("histogram 2^20", histogram),
        measure("naive transpose 1024^2", transpose),
    ]
    print(f"{'geometric mean':50}{100 * (1 - statistics.geometric_mean(left)):10.1f} %")


if __name__ == "__main__":
    main()
