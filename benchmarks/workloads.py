"""The eight workloads of peers.py, in any size: their data, launches, results and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import natives
import numpy as np

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
ITERATIONS = 256
"""The limit of Mandelbrot's iterations."""


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
    expected: Callable[[], np.ndarray]
    units: int
    """How much there is to do: elements, products, pairs or iterations."""
    bytes_moved: int
    """What has to come from memory and go there, each byte once."""
    operations: int
    """Additions and multiplications of single precision; a fused one is two."""
    tolerance: float = 0.0
    other: float = 0.0
    """The share of elements that may differ, where compilers round a step in another place."""

    def check(self, who: str, arguments: Sequence[Any]) -> None:
        """Raise AssertionError where the output is not what it must be."""
        got = [a for a in arguments if isinstance(a, np.ndarray)][-1]
        wrong = ~np.isclose(got, self.expected(), self.tolerance, self.tolerance)
        assert wrong.mean() <= self.other, (self.name, who)


def saxpy(n: int) -> Workload:
    x, y = _random(n), _random(n)

    def expected() -> np.ndarray:
        return (np.float64(2.0) * x + y).astype(np.float32)

    return Workload("SAXPY", EXAMPLES / "saxpy.cu", "saxpy", (n // 256, 1), (256, 1), 0,
                    (n, np.float32(2.0), x, y), natives.saxpy, expected,
                    n, 12 * n, 2 * n, 1e-6)  # fmt: skip


def reduction(n: int) -> Workload:
    x = _random(n)

    def expected() -> np.ndarray:
        return x.reshape(-1, 256).sum(1, dtype=np.float64).astype(np.float32)

    return Workload("reduction", EXAMPLES / "reduction.cu", "reduce", (n // 256, 1), (256, 1), 1024,
                    (x, np.zeros(n // 256, np.float32), n), natives.reduce, expected,
                    n, 4 * n + n // 64, n, 1e-4)  # fmt: skip


def matmul_naive(order: int) -> Workload:
    return _matmul("matmul_naive", order)


def matmul_tiled(order: int) -> Workload:
    return _matmul("matmul_tiled", order)


def _matmul(name: str, order: int) -> Workload:
    a, b, tiles = _random(order, order), _random(order, order), (order // 16, order // 16)
    return Workload(name, EXAMPLES / "matmul.cu", name, tiles, (16, 16), 0,
                    (a, b, np.zeros_like(a), order), natives.matmul, lambda: a @ b,
                    order**3, 12 * order**2, 2 * order**3, 1e-3)  # fmt: skip


def mandelbrot(size: int) -> Workload:
    """An iteration is 3 multiplications and 5 additions, the comparison among these."""
    steps = _escapes(size)
    done = int(steps.sum())
    return Workload("Mandelbrot", EXAMPLES / "mandelbrot.cu", "mandelbrot",
                    (size // 32, size // 8), (32, 8), 0,
                    (np.zeros_like(steps), size, size, ITERATIONS), natives.mandelbrot,
                    lambda: steps, done, 4 * size**2, 8 * done, 0.0, 0.02)  # fmt: skip


def _escapes(size: int) -> np.ndarray:
    """After how many iterations each point of the plane leaves the circle of radius 2."""
    scale = np.float32(3.0) * np.arange(size, dtype=np.float32) / np.float32(size)
    cx, cy = np.broadcast_arrays(scale - np.float32(2.0), (scale - np.float32(1.5))[:, None])
    x, y, steps = np.zeros_like(cx), np.zeros_like(cy), np.zeros(cx.shape, np.int32)
    inside = np.ones(cx.shape, bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(ITERATIONS):
            inside &= x * x + y * y < 4
            steps += inside
            x, y = x * x - y * y + cx, 2 * x * y + cy
    return steps


def histogram(n: int) -> Workload:
    data = np.random.default_rng(0).integers(0, 256, n, np.uint8)
    blocks = min(256, n // 256)

    def expected() -> np.ndarray:
        return np.bincount(data, minlength=256).astype(np.uint32)

    return Workload("histogram", EXAMPLES / "histogram.cu", "histogram", (blocks, 1), (256, 1), 0,
                    (data, np.zeros(256, np.uint32), n), natives.histogram, expected,
                    n, n, 0)  # fmt: skip


def nbody(n: int) -> Workload:
    """A pair is 20 operations (Nyland, Harris and Prins, GPU Gems 3, chapter 31)."""
    bodies = _random(n, 4)

    def expected() -> np.ndarray:
        delta = bodies[None, :, :3].astype(np.float64) - bodies[:, None, :3]
        pull = bodies[None, :, 3] * ((delta**2).sum(2) + 0.01) ** -1.5
        pulled = np.zeros_like(bodies)
        pulled[:, :3] = (pull[:, :, None] * delta).sum(1)
        return pulled

    return Workload("n-body", HERE / "nbody.cu", "nbody", (n // 256, 1), (256, 1), 256 * 16,
                    (bodies, np.zeros_like(bodies), n), natives.nbody, expected,
                    n * n, 32 * n, 20 * n * n, 1e-2)  # fmt: skip


def transpose(order: int) -> Workload:
    square, tiles = _random(order, order), (order // 32, order // 32)
    return Workload("transpose", EXAMPLES / "transpose.cu", "transpose_naive", tiles, (32, 8), 0,
                    (square, np.zeros_like(square), order), natives.transpose, lambda: square.T,
                    order**2, 8 * order**2, 0)  # fmt: skip


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


MAKERS: dict[Callable[[int], Workload], dict[str, int]] = {
    saxpy: {"full": 1 << 24, "Oclgrind": 1 << 16, "CUDA simulator": 1 << 12},
    reduction: {"full": 1 << 22, "Oclgrind": 1 << 14, "CUDA simulator": 1 << 10},
    matmul_naive: {"full": 512, "Oclgrind": 64, "CUDA simulator": 32},
    matmul_tiled: {"full": 512, "Oclgrind": 64, "CUDA simulator": 32},
    mandelbrot: {"full": 1024, "Oclgrind": 64, "CUDA simulator": 32},
    histogram: {"full": 1 << 22, "Oclgrind": 1 << 15, "CUDA simulator": 1 << 12},
    nbody: {"full": 4096, "Oclgrind": 256, "CUDA simulator": 256},
    transpose: {"full": 2048, "Oclgrind": 256, "CUDA simulator": 64},
}
"""What makes each workload, and its sizes: what all peers run, and what the slow ones do."""


def workloads(size: str = "full") -> list[Workload]:
    """All of one column of MAKERS."""
    return [make(sizes[size]) for make, sizes in MAKERS.items()]
