"""How fast the compiled engine runs, every counter and every bounds check on.

    python benchmarks/engine.py

Each kernel is compiled from CUDA C++ through NVRTC's PTX. `compile` is PTX to machine code; `run`
is the median of five launches, with the launch's own overhead; the rate is PTX instructions issued
by warps, as the engine counted them. One worker thread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

import warploom as wl

EXAMPLES = Path(__file__).parent.parent / "examples"


def vector_extension() -> str:
    """The widest vectors of this processor."""
    features = llvm.get_host_cpu_features().flatten().split(",")
    return next((n for n in ("avx512bw", "avx2", "sse4.2", "neon") if f"+{n}" in features), "none")


def measure(name: str, launch: Callable[[], wl.Run]) -> None:
    """Print one row: the first launch compiles, five more are timed."""
    start = time.perf_counter()
    launch()
    first = time.perf_counter() - start
    run, times = launch(), list[float]()
    for _ in range(5):
        start = time.perf_counter()
        launch()
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    rate = run.counters.warp_instructions / seconds / 1e9
    print(f"{name:26}{first - seconds:10.3f} s{1e3 * seconds:10.2f} ms{rate:12.2f}")


def main() -> None:
    print(f"{llvm.get_host_cpu_name()}, {vector_extension()}")
    print(f"{'kernel':26}{'compile':>12}{'run':>13}{'G warp inst/s':>14}")
    gpu = wl.Device("h100")
    warm = gpu.load(EXAMPLES / "saxpy.cu")["saxpy"]
    warm[1, 32](0, 0.0, gpu.zeros(1, np.float32), gpu.zeros(1, np.float32))

    size, limit = 1024, 256
    mandelbrot = gpu.load(EXAMPLES / "mandelbrot.cu")["mandelbrot"]
    steps = gpu.zeros((size, size), np.int32)
    measure(
        "Mandelbrot 1024^2, 256",
        lambda: mandelbrot[(size // 32, size // 8), (32, 8)](steps, size, size, limit),
    )
    n = 1 << 24
    x, y = gpu.to_device(np.ones(n, np.float32)), gpu.zeros(n, np.float32)
    saxpy = gpu.load(EXAMPLES / "saxpy.cu")["saxpy"]
    measure("SAXPY 2^24", lambda: saxpy[n // 256, 256](n, 2.0, x, y))
    n = 1 << 22
    sums = gpu.zeros(n // 256, np.float32)
    reduce = gpu.load(EXAMPLES / "reduction.cu")["reduce"]
    measure("block reduction 2^22", lambda: reduce[n // 256, 256, None, 1024](x, sums, n))
    order = 512
    a, b, c = (gpu.to_device(np.ones((order, order), np.float32)) for _ in range(3))
    module = gpu.load(EXAMPLES / "matmul.cu")
    for name in ("matmul_naive", "matmul_tiled"):
        kernel = module[name]
        tiles = (order // 16, order // 16)
        measure(f"{name} 512^3", lambda k=kernel, t=tiles: k[t, (16, 16)](a, b, c, order))
    data = gpu.to_device(np.random.default_rng(0).integers(0, 256, n).astype(np.uint8))
    bins = gpu.zeros(256, np.uint32)
    histogram = gpu.load(EXAMPLES / "histogram.cu")["histogram"]
    measure("histogram 2^22", lambda: histogram[256, 256](data, bins, n))
    order = 2048
    source, out = gpu.zeros((order, order), np.float32), gpu.zeros((order, order), np.float32)
    transpose = gpu.load(EXAMPLES / "transpose.cu")["transpose_naive"]
    tiles = (order // 32, order // 32)
    measure("naive transpose 2048^2", lambda: transpose[tiles, (32, 8)](source, out, order))


if __name__ == "__main__":
    main()
