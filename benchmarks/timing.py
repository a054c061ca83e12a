"""The timing engine: how fast it replays, what memory it takes, and how far it is from published
figures.

    python benchmarks/timing.py [speed | errors | streams]

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
from warploom.timing.engine.compiled import functions
from warploom.timing.result import Timing

EXAMPLES = Path(__file__).parent.parent / "examples"

SUMS = """
extern "C" __global__ void sums(float *y, int m) {
    float a = threadIdx.x, b = 1.f, c = 2.f, d = 3.f;
    for (int i = 0; i < m; i++) {
        a = a * 1.5f + .5f; b = b * 1.5f + .5f; c = c * 1.5f + .5f; d = d * 1.5f + .5f;
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}
"""

KERNELS = (Path(wl.__file__).parent / "validation" / "kernels.cu").read_text("utf-8")
"""Those of the published figures that `warploom validate` uses."""

THREADS = (64, 128, 256, 512, 1024)
STREAM = {
    "v100": {
        "init": (306, 595, 895, 895, 895),
        "read": (139, 262, 490, 746, 866),
        "scale": (244, 423, 673, 784, 802),
        "triad": (323, 545, 765, 800, 814),
    },
    "a100": {
        "init": (407, 788, 1473, 1503, 1503),
        "read": (158, 304, 579, 1042, 1490),
        "scale": (291, 548, 954, 1338, 1381),
        "triad": (403, 743, 1231, 1359, 1360),
    },
    "h200": {
        "init": (590, 1163, 2196, 3670, 3884),
        "read": (244, 485, 935, 1707, 2756),
        "scale": (463, 852, 1395, 2263, 3165),
        "triad": (638, 1129, 1905, 2919, 3534),
    },
    "l40s": {
        "init": (643, 845, 846, 846),
        "read": (320, 615, 844, 844),
        "scale": (549, 772, 792, 778),
        "triad": (702, 769, 795, 798),
    },
}
"""GB/s of gpu-benches' gpu-stream, by the threads of a block: two blocks are on an SM, and each
thread has one element. The figures of the L40S are an L40's."""

STREAM_BYTES = {"init": 8, "read": 8, "scale": 16, "triad": 24}
STREAM_DIRTY = {"init": 1, "read": 0, "scale": 1 / 2, "triad": 1 / 3}
"""The share of L2's lines that are dirty while a stream runs."""

CHASE = {
    "v100": {"L1": (16, 30.3), "L2": (2048, 214.4), "DRAM": (32768, 428.0)},
    "a100": {"L1": (16, 36.1), "L2": (2048, 211.0), "DRAM": (131072, 567.0)},
    "h100": {"L1": (16, 34.1), "L2": (2048, 265.5), "DRAM": (131072, 648.0)},
    "l40s": {"L1": (16, 36.1), "L2": (2048, 276.5), "DRAM": (131072, 631.0)},
    "rtx-4090": {"L1": (16, 36.1), "L2": (2048, 284.8), "DRAM": (131072, 571.0)},
}
"""Cycles of gpu-benches' gpu-latency by KiB of the buffer (the L40S's are an L40's, the RTX 4090's
of HPMLL/NVIDIA-Hopper-Benchmark)."""

TITAN_V = {"L1": (16, 33.7), "L2": (2048, 211.0), "DRAM": (32768, 313.0)}
"""The same of a TITAN V, which is a V100 with another memory, by Accel-Sim's microbenchmarks."""

BARRIERS = {128: 31.8, 256: 36.4, 512: 44.4, 1024: 61.5}
"""Nanoseconds of __syncthreads() on an H200 by threads of the block (probes that others
published)."""


def saxpy(gpu: wl.Device, n: int) -> wl.Run:
    """SAXPY of so many elements."""
    x, y = gpu.zeros(n, np.float32), gpu.zeros(n, np.float32)
    return gpu.load(EXAMPLES / "saxpy.cu")["saxpy"][n // 256, 256](n, 2.0, x, y)


def sums(gpu: wl.Device) -> wl.Run:
    """Arithmetic alone."""
    y = gpu.zeros(528 * 256, np.float32)
    return gpu.compile(SUMS)["sums"][528, 256](y, 256)


def speed() -> None:
    """Warp instructions in a second of one core, and the memory of a process that launches a kernel
    and times it. The processor's time counts, for other work on the computer adds to the clock's.
    Each case has a process of its own."""
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
    timing, taken = run.time(), list[float]()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    both = run.time(workers=2)
    for _ in range(3):
        began = time.process_time()
        run.time()
        taken.append(time.process_time() - began)
    rate = timing.instructions / min(taken) / 1e6
    return (
        f"{name} on {device}: {timing.cycles:,} cycles (two workers: {both.cycles:,}),"
        f" {timing.instructions:,} instructions, {rate:.2f} million per second; {most:.0f} MB"
    )


def errors() -> None:
    """Modelled against published, figure by figure."""
    print("| device | figure | published | modelled | error |")
    print("| --- | --- | --- | --- | --- |")
    for rows in (chases, barriers, copies):
        for device, figure, published, modelled in rows():
            error = 100 * (modelled / published - 1)
            print(f"| {device} | {figure} | {published:g} | {modelled:.1f} | {error:+.1f} % |")


Figure = tuple[str, str, float, float]


def chases() -> Iterator[Figure]:
    """A pointer chase by one thread, in the order of the lines, behind a first round."""
    for device, levels in (*CHASE.items(), ("v100", TITAN_V)):
        of = " on a TITAN V" if levels is TITAN_V else ""
        for level, (kib, published) in levels.items():
            lines = min(kib * 8, 8192)
            gpu = wl.Device(device, record=True)
            x = gpu.zeros((lines, 16), np.int64)
            x.view[:, 0] = x.address + 128 * np.roll(np.arange(lines), -1)
            kernel = gpu.compile(KERNELS)["chase"]
            cold = level == "DRAM"
            steps = (lines // 2, lines) if cold else (lines, 2 * lines)
            first, second = (kernel[1, 1](x, n).time(code="ptx").cycles for n in steps)
            each = (second - first) / (steps[1] - steps[0])
            yield device, f"pointer chase over {kib:,} KiB ({level}){of}, cycles", published, each


def barriers() -> Iterator[Figure]:
    """Barriers, one after the other: those of twice as many less those of as many."""
    gpu = wl.Device("h200", record=True)
    kernel = gpu.compile(KERNELS)["barriers"]
    for threads, published in BARRIERS.items():
        few, many = (kernel[1, threads](n).time(code="ptx").seconds for n in (64, 128))
        yield "h200", f"barrier of {threads:,} threads, ns", published, (many - few) / 64 * 1e9


def streams() -> None:
    """Modelled against published bandwidth, while more and more bytes are on their way."""
    print(f"| device | kernel | {' | '.join(f'2 x {threads:,}' for threads in THREADS)} |")
    print(f"| --- | --- |{' --- |' * len(THREADS)}")
    for device, kernels in STREAM.items():
        for name, published in kernels.items():
            cells = [
                f"{gb:,} {100 * (streamed(device, name, threads) / gb - 1):+.0f} %"
                for threads, gb in zip(THREADS, published, strict=False)
            ]
            cells += [""] * (len(THREADS) - len(cells))
            print(f"| {device} | {name} | {' | '.join(cells)} |")


def streamed(device: str, name: str, threads: int) -> float:
    """GB/s, of so many more blocks than of half as many: a launch begins and ends slowly."""
    gpu = wl.Device(device, record=True)
    kernel = gpu.compile(KERNELS)[name]
    shared = gpu.spec.shared_bytes_per_sm * 3 // 8  # room for two blocks, not for three
    times, rounds = list[float](), (8, 20) if threads < 1024 else (5, 11)
    for count in rounds:
        blocks = 2 * count * gpu.spec.sms
        n = blocks * threads
        a, b = gpu.zeros(n, np.float64), gpu.zeros(2 * n, np.float64)
        run = kernel[blocks, threads, 0, shared](a, b, n)
        assert run.occupancy.active_blocks == 2
        l2 = wl.CacheModel(dirty=STREAM_DIRTY[name])
        times.append(run.time(code="ptx", l2=l2).seconds)
        a.free()
        b.free()
    moved = STREAM_BYTES[name] * threads * 2 * gpu.spec.sms * (rounds[1] - rounds[0])
    return moved / (times[1] - times[0]) / 1e9


def copies() -> Iterator[Figure]:
    """SAXPY against the rate of a copy: "scale" at full occupancy."""
    for device, kernels in STREAM.items():
        n = 1 << 24
        l2 = wl.CacheModel(dirty=STREAM_DIRTY["scale"])
        timing = saxpy(wl.Device(device, record=True), n).time(code="ptx", l2=l2)
        published = kernels["scale"][-1]
        if device == "l40s":
            published = 770  # with 768 threads a block
        yield device, "SAXPY of 2^24 elements, GB/s", published, rate(timing, 12 * n)


def rate(timing: Timing, moved: int) -> float:
    """GB/s."""
    return moved / timing.seconds / 1e9


if __name__ == "__main__":
    chosen: dict[str, Callable[[], None]] = {
        "speed": speed,
        "errors": errors,
        "streams": streams,
    }
    for name in sys.argv[1:] or chosen:
        chosen[name]()
