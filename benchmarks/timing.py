"""The timing engine: how fast it replays, what memory it takes, and how far it is from published
figures.

    python benchmarks/timing.py [speed | errors]

Errors are against figures that others measured on the cards; docs/timing.md has their sources.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import warploom as wl
from warploom.timing.compiled import functions
from warploom.timing.result import Timing

EXAMPLES = Path(__file__).parent.parent / "examples"

KERNELS = """
extern "C" __global__ void sums(float *y, int m) {
    float a = threadIdx.x, b = 1.f, c = 2.f, d = 3.f;
    for (int i = 0; i < m; i++) {
        a = a * 1.5f + .5f; b = b * 1.5f + .5f; c = c * 1.5f + .5f; d = d * 1.5f + .5f;
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}
extern "C" __global__ void scale(double *a, const double *b, int n) {
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        a[i] = b[i] * 1.2;
}
extern "C" __global__ void chase(long long *x, int steps) {
    long long *p = x;
    #pragma unroll 1
    for (int i = 0; i < steps; i++) p = (long long *)*p;
    x[1] = (long long)p;
}
"""

SCALE = {
    "v100": {32: 128, 128: 423, 256: 673, 512: 784, 1024: 802},
    "a100": {32: 151, 128: 548, 256: 954, 512: 1338, 1024: 1381},
    "h200": {32: 240, 128: 852, 256: 1395, 512: 2263, 1024: 3165},
}
"""GB/s of gpu-benches' gpu-stream, "scale", by threads of the one block of each SM."""

CHASE = {
    "v100": {"L1": (16, 30.3), "L2": (2048, 214.4), "DRAM": (32768, 428.0)},
    "a100": {"L1": (16, 36.1), "L2": (2048, 211.0), "DRAM": (131072, 567.0)},
    "h100": {"L1": (16, 34.1), "L2": (2048, 265.5), "DRAM": (131072, 648.0)},
}
"""Cycles of gpu-benches' gpu-latency by KiB of the buffer."""


def saxpy(gpu: wl.Device, n: int) -> wl.Run:
    """SAXPY of so many elements."""
    x, y = gpu.zeros(n, np.float32), gpu.zeros(n, np.float32)
    return gpu.load(EXAMPLES / "saxpy.cu")["saxpy"][n // 256, 256](n, 2.0, x, y)


def sums(gpu: wl.Device) -> wl.Run:
    """Arithmetic alone."""
    y = gpu.zeros(528 * 256, np.float32)
    return gpu.compile(KERNELS)["sums"][528, 256](y, 256)


def speed() -> None:
    """Warp instructions in a second of one core, and the memory of the process. The processor's
    time counts, for other work on the computer adds to the clock's. Each case has a process of its
    own."""
    functions()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for device in ("v100", "h100"):
            for name in ("sums", "SAXPY of 2^24"):
                print(pool.submit(measured, device, name).result())


def measured(device: str, name: str) -> str:
    """The speed of one case."""
    gpu = wl.Device(device, record=True)
    run = sums(gpu) if name == "sums" else saxpy(gpu, 1 << 24)
    timing, both, taken = run.time(), run.time(workers=2), list[float]()
    for _ in range(3):
        began = time.process_time()
        run.time()
        taken.append(time.process_time() - began)
    rate = timing.instructions / min(taken) / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{name} on {device}: {timing.cycles:,} cycles (two workers: {both.cycles:,}),"
        f" {timing.instructions:,} instructions, {rate:.2f} million a second; {most:.0f} MB"
    )


def errors() -> None:
    """Modelled against published, figure by figure."""
    print("| device | figure | published | modelled | error |")
    print("| --- | --- | --- | --- | --- |")
    for rows in (chases, scales, copies):
        for device, figure, published, modelled in rows():
            error = 100 * (modelled / published - 1)
            print(f"| {device} | {figure} | {published:g} | {modelled:.1f} | {error:+.1f} % |")


Figure = tuple[str, str, float, float]


def chases() -> Iterator[Figure]:
    """A pointer chase by one thread, in the order of the lines, behind a first round."""
    for device, levels in CHASE.items():
        for level, (kib, published) in levels.items():
            lines = min(kib * 8, 8192)
            gpu = wl.Device(device, record=True)
            x = gpu.zeros((lines, 16), np.int64)
            x.view[:, 0] = x.address + 128 * np.roll(np.arange(lines), -1)
            kernel = gpu.compile(KERNELS)["chase"]
            cold = level == "DRAM"
            steps = (lines // 2, lines) if cold else (lines, 2 * lines)
            first, second = (kernel[1, 1](x, n).time().cycles for n in steps)
            each = (second - first) / (steps[1] - steps[0])
            yield device, f"chase of {kib:,} KiB ({level}), cycles", published, each


def scales() -> Iterator[Figure]:
    """A scaled copy by one block on each SM: Little's law, and then the roof."""
    for device, blocks in SCALE.items():
        gpu = wl.Device(device, record=True)
        kernel = gpu.compile(KERNELS)["scale"]
        for threads, published in blocks.items():
            n = gpu.spec.sms * threads * max(16, 2048 // threads)
            a, b = gpu.zeros(n, np.float64), gpu.zeros(n, np.float64)
            timing = kernel[gpu.spec.sms, threads](a, b, n).time()
            yield device, f"scale, {threads} threads an SM, GB/s", published, rate(timing, 16 * n)
            a.free()
            b.free()


def copies() -> Iterator[Figure]:
    """SAXPY against what a copy reaches."""
    for device, published in (("v100", 802), ("a100", 1381)):
        n = 1 << 22
        timing = saxpy(wl.Device(device, record=True), n).time()
        yield device, "SAXPY of 2^22 against a copy, GB/s", published, rate(timing, 12 * n)


def rate(timing: Timing, moved: int) -> float:
    """GB/s."""
    return moved / timing.seconds / 1e9


if __name__ == "__main__":
    chosen: dict[str, Callable[[], None]] = {"speed": speed, "errors": errors}
    for name in sys.argv[1:] or chosen:
        chosen[name]()
