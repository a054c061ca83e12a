"""Warploom beside what else runs such kernels on a CPU, in one run.

    python benchmarks/peers.py [--json FILE] [--rounds 5]

Eight workloads: Warploom with one and two workers, every counter and bounds check on; Numba's
native loops on one thread; PoCL through pyopencl on one thread (`apt-get install pocl-opencl-icd`,
`pip install pyopencl`). A peer that is missing is named and left out. Every result is checked
against NumPy; launches of all peers take turns, and the median of the rounds after a first is
given, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"

import natives
import numpy as np

import warploom as wl

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Workload:
    """A kernel, its launch, its arguments, and what its last array must then hold."""

    name: str
    source: Path
    kernel: str
    grid: tuple[int, int]
    block: tuple[int, int]
    shared_bytes: int
    arguments: tuple[Any, ...]
    native: Callable[..., None]
    expected: np.ndarray
    tolerance: float = 0.0
    other: float = 0.0
    """The share of elements that may differ, where compilers round a step in another place."""

    def check(self, who: str, arguments: Sequence[Any]) -> None:
        """Raise AssertionError where the output is not what it must be."""
        got = [a for a in arguments if isinstance(a, np.ndarray)][-1]
        wrong = ~np.isclose(got, self.expected, self.tolerance, self.tolerance)
        assert wrong.mean() <= self.other, (self.name, who)


def workloads() -> list[Workload]:
    random = np.random.default_rng(0)
    n = 1 << 24
    x, y = random.random(n, np.float32), random.random(n, np.float32)
    fused = (np.float64(2.0) * x + y).astype(np.float32)
    found = [
        Workload("SAXPY 2^24", EXAMPLES / "saxpy.cu", "saxpy", (n // 256, 1), (256, 1), 0,
                 (n, np.float32(2.0), x, y), natives.saxpy, fused, 1e-6),
    ]  # fmt: skip
    n = 1 << 22
    sums = x[:n].reshape(-1, 256).sum(1, dtype=np.float64).astype(np.float32)
    found.append(
        Workload("reduction 2^22", EXAMPLES / "reduction.cu", "reduce", (n // 256, 1), (256, 1),
                 1024, (x[:n].copy(), np.zeros_like(sums), n), natives.reduce, sums, 1e-4)
    )  # fmt: skip
    order = 512
    a, b = (random.random((order, order), np.float32) for _ in range(2))
    tiles = (order // 16, order // 16)
    for name in ("matmul_naive", "matmul_tiled"):
        found.append(
            Workload(f"{name} 512", EXAMPLES / "matmul.cu", name, tiles, (16, 16), 0,
                     (a, b, np.zeros_like(a), order), natives.matmul, a @ b, 1e-3)
        )  # fmt: skip
    size, limit = 1024, 256
    steps = np.zeros((size, size), np.int32)
    natives.mandelbrot(steps, size, size, limit)
    found.append(
        Workload("Mandelbrot 1024^2", EXAMPLES / "mandelbrot.cu", "mandelbrot",
                 (size // 32, size // 8), (32, 8), 0, (np.zeros_like(steps), size, size, limit),
                 natives.mandelbrot, steps, 0.0, 0.02)
    )  # fmt: skip
    data = random.integers(0, 256, n).astype(np.uint8)
    bins = np.bincount(data, minlength=256).astype(np.uint32)
    found.append(
        Workload("histogram 2^22", EXAMPLES / "histogram.cu", "histogram", (256, 1), (256, 1), 0,
                 (data, np.zeros_like(bins), n), natives.histogram, bins)
    )  # fmt: skip
    n = 4096
    bodies = random.random((n, 4), np.float32)
    delta = bodies[None, :, :3].astype(np.float64) - bodies[:, None, :3]
    pull = bodies[None, :, 3] * ((delta**2).sum(2) + 0.01) ** -1.5
    pulled = np.zeros_like(bodies)
    pulled[:, :3] = (pull[:, :, None] * delta).sum(1)
    found.append(
        Workload("n-body 4096", HERE / "nbody.cu", "nbody", (n // 256, 1), (256, 1), 256 * 16,
                 (bodies, np.zeros_like(bodies), n), natives.nbody, pulled, 1e-2)
    )  # fmt: skip
    order = 2048
    square = random.random((order, order), np.float32)
    found.append(
        Workload("transpose 2048^2", EXAMPLES / "transpose.cu", "transpose_naive",
                 (order // 32, order // 32), (32, 8), 0,
                 (square, np.zeros_like(square), order), natives.transpose, square.T)
    )  # fmt: skip
    return found


Launch = Callable[[], None]
Prepared = tuple[Launch, Callable[[], list[Any]]]
"""What launches once, and what gives the arguments as they are after one fresh launch."""


def on_warploom(work: Workload, workers: int) -> Prepared:
    gpu = wl.Device("h100", workers=workers)
    launcher = gpu.load(work.source)[work.kernel][work.grid, work.block, None, work.shared_bytes]
    given = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]

    def results() -> list[Any]:
        fresh = [gpu.to_device(a) if isinstance(a, np.ndarray) else a for a in work.arguments]
        launcher(*fresh)
        return [f.copy_to_host() if isinstance(f, wl.Buffer) else f for f in fresh]

    return lambda: launcher(*given) and None, results


def on_numba(work: Workload) -> Prepared:
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in work.arguments]

    def results() -> list[Any]:
        fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in work.arguments]
        work.native(*fresh)
        return fresh

    return lambda: work.native(*given), results


def on_pocl(work: Workload) -> Prepared:
    import pyopencl as cl  # pyright: ignore[reportMissingImports]

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, (HERE / "peers.cl").read_text()).build()
    kernel = getattr(program, work.kernel)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    size = tuple(g * b for g, b in zip(work.grid, work.block, strict=True))

    def made() -> list[Any]:
        return [
            cl.Buffer(context, flags, hostbuf=a) if isinstance(a, np.ndarray)
            else np.int32(a) if isinstance(a, int) else a
            for a in work.arguments
        ]  # fmt: skip

    given = made()

    def launch(arguments: list[Any]) -> None:
        kernel(queue, size, work.block, *arguments)
        queue.finish()

    def results() -> list[Any]:
        fresh = made()
        launch(fresh)
        got: list[Any] = []
        for host, buffer in zip(work.arguments, fresh, strict=True):
            copy = host.copy() if isinstance(host, np.ndarray) else host
            if isinstance(copy, np.ndarray):
                cl.enqueue_copy(queue, copy, buffer)
            got.append(copy)
        return got

    return lambda: launch(given), results


PEERS: dict[str, Callable[[Workload], Prepared]] = {
    "Warploom": lambda work: on_warploom(work, 1),
    "2 workers": lambda work: on_warploom(work, 2),
    "Numba": on_numba,
    "PoCL": on_pocl,
}


def available() -> dict[str, Callable[[Workload], Prepared]]:
    """The peers that are here; the others are named."""
    try:
        import pyopencl  # pyright: ignore[reportMissingImports]

        pyopencl.get_platforms()
    except Exception as error:
        print(f"PoCL is left out: {error}", file=sys.stderr)
        return {name: peer for name, peer in PEERS.items() if name != "PoCL"}
    return PEERS


def measured(work: Workload, rounds: int) -> dict[str, float]:
    """Milliseconds by peer, the medians of rounds in which they take turns."""
    ready: dict[str, Launch] = {}
    for name, peer in available().items():
        launch, results = peer(work)
        work.check(name, results())
        launch()
        ready[name] = launch
    times: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(rounds):
        for name, launch in ready.items():
            start = time.perf_counter()
            launch()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    table: dict[str, dict[str, float]] = {}
    names = list(available())
    print(f"{'milliseconds':20}" + "".join(f"{name:>11}" for name in names))
    for work in workloads():
        row = table[work.name] = measured(work, given.rounds)
        print(f"{work.name:20}" + "".join(f"{row[name]:11.2f}" for name in names), flush=True)
    for name in names[1:]:
        ratios = [row[name] / row["Warploom"] for row in table.values()]
        print(f"Warploom is {statistics.geometric_mean(ratios):.2f} times as fast as {name}")
    if given.json:
        given.json.write_text(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
