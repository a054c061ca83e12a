"""How the cost of a launch grows with its size, its divergence, its strides and its atomics.

    python benchmarks/scaling.py [--write]

Each figure changes one quantity and keeps the rest; a point is the median of seven launches
after a first one, and of seven kernels that are new for the compilation. --write draws a plot
of each as SVG into docs/images, and puts the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import documents
import numpy as np
from points import Line, as_svg

import warploom as wl

IMAGES = Path(__file__).parent.parent / "docs" / "images"
GPU = wl.Device("h100")
ROUNDS = 7
THREADS = 1 << 16
"""Of every launch that keeps its size."""

SOURCE = r"""
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

// Lanes take as many ways as `paths` says; each is a loop of 64 laps that starts elsewhere.
extern "C" __global__ void parted(unsigned *out, int paths)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = i;
    for (int path = 0; path < paths; ++path)
        if (threadIdx.x % paths == path)
            for (int lap = 0; lap < 64; ++lap)
                x = x * 1664525u + 1013904223u + path;
    out[i] = x;
}

extern "C" __global__ void strided(const float *x, float *out, int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int lap = 0; lap < 16; ++lap)
        sum += x[(i * stride + lap * 32) & 0x1fffff];
    out[i] = sum;
}

// So many lanes of each warp add to one place; the others have one each.
extern "C" __global__ void contended(unsigned *bins, int lanes)
{
    int lane = threadIdx.x & 31, place = lane < lanes ? 0 : lane;
    for (int lap = 0; lap < 16; ++lap)
        atomicAdd(&bins[place], 1u);
}
"""


@dataclass(frozen=True)
class Figure:
    """What is changed, to which values, and what makes a launch (or a compilation) for each."""

    name: str
    title: str
    unit: str
    values: Sequence[int]
    make: Callable[[wl.Module, int], Callable[[], wl.Run]]


def grid(module: wl.Module, blocks: int) -> Callable[[], wl.Run]:
    return _saxpy(module, blocks, 256)


def block(module: wl.Module, threads: int) -> Callable[[], wl.Run]:
    return _saxpy(module, THREADS // threads, threads)


def _saxpy(module: wl.Module, blocks: int, threads: int) -> Callable[[], wl.Run]:
    n = blocks * threads
    x, y = GPU.to_device(np.ones(n, np.float32)), GPU.zeros(n, np.float32)
    return lambda: module["saxpy"][blocks, threads](n, 2.0, x, y)


def divergence(module: wl.Module, paths: int) -> Callable[[], wl.Run]:
    out = GPU.zeros(THREADS, np.uint32)
    return lambda: module["parted"][THREADS // 256, 256](out, paths)


def stride(module: wl.Module, step: int) -> Callable[[], wl.Run]:
    x, out = GPU.zeros(1 << 21, np.float32), GPU.zeros(THREADS, np.float32)
    return lambda: module["strided"][THREADS // 256, 256](x, out, step)


def contention(module: wl.Module, lanes: int) -> Callable[[], wl.Run]:
    bins = GPU.zeros(32, np.uint32)
    return lambda: module["contended"][THREADS // 256, 256](bins, lanes)


def compilation(_: wl.Module, instructions: int) -> Callable[[], wl.Run]:
    """From PTX to the end of a launch of one warp; every launch has a kernel that is new."""
    numbers: Iterator[int] = iter(range(1 << 30))
    out = GPU.zeros(32, np.uint32)

    def launch() -> wl.Run:
        body = "".join(
            f"    mad.lo.u32 %r{i % 16}, %r{(i + 5) % 16}, {i + 3}, %r{(i + 11) % 16};\n"
            for i in range(instructions)
        )
        text = PTX.replace("BODY", f"    mov.u32 %r1, {next(numbers)};\n{body}")
        return GPU.compile(text, language="ptx")["k"][1, 32](out)

    return launch


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<16>;
    .reg .b64 %at;
    ld.param.u64 %at, [out];
    mov.u32 %r0, %tid.x;
BODY
    st.global.u32 [%at], %r0;
    ret;
}
"""

LANES = (1, 2, 4, 8, 16, 32)
FIGURES = (
    Figure("grid", "SAXPY, blocks of 256 threads", "blocks", [4**k for k in range(9)], grid),
    Figure("block", "SAXPY, 65,536 threads", "threads per block",
           [2**k for k in range(5, 11)], block),
    Figure("divergence", "Paths that a warp's lanes take", "paths", LANES, divergence),
    Figure("stride", "Loads with a stride between lanes", "words", LANES, stride),
    Figure("contention", "Atomic additions to one address", "lanes", LANES, contention),
    Figure("compilation", "From PTX to the end of the first launch", "instructions",
           (10, 30, 100, 300, 1000, 3000), compilation),
)  # fmt: skip


def milliseconds(figure: Figure, module: wl.Module, value: int) -> tuple[float, str]:
    """Returns the median of ROUNDS, after one that is not counted, and the code of the last one."""
    launch, times = figure.make(module, value), list[float]()
    run = launch()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run = launch()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times), run.tier


def main() -> None:
    options = argparse.ArgumentParser(description="Measure how costs grow.")
    options.add_argument("--write", action="store_true", help="write docs/performance.md and SVG")
    given = options.parse_args()
    module = GPU.compile(SOURCE)
    lines: list[str] = []
    for figure in FIGURES:
        points = [milliseconds(figure, module, value) for value in figure.values]
        times, tiers = zip(*points, strict=True)
        lines += [
            f"{figure.title}",
            f"{figure.unit:>16}" + "".join(f"{value:>10,}" for value in figure.values),
            f"{'ms':>16}" + "".join(f"{taken:10.3f}" for taken in times),
            f"{'code':>16}" + "".join(f"{tier:>10}" for tier in tiers),
        ]
        print("\n".join(lines[-4:]), flush=True)
        if given.write:
            line = Line(figure.title, figure.unit, "ms", tuple(figure.values), times)
            (IMAGES / f"scaling-{figure.name}.svg").write_text(as_svg(line), "utf-8")
    if given.write:
        documents.write("scaling", "\n".join(lines))


if __name__ == "__main__":
    # A cache of its own, empty: kernels that are compiled to be measured are not worth keeping.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARPLOOM_CACHE_DIR"] = folder
        main()
