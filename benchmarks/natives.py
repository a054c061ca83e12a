"""The workloads (workloads.py) as loops for Numba's CPU compiler, one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(fastmath=False)
def saxpy(n: int, a: Any, x: Any, y: Any) -> None:
    for i in range(n):
        y[i] = a * x[i] + y[i]


@njit(fastmath={"reassoc"})
def reduce(x: Any, sums: Any, n: int) -> None:
    for block in range(n // 256):
        total = np.float32(0)
        for i in range(256):
            total += x[block * 256 + i]
        sums[block] = total


@njit(fastmath={"contract"})
def matmul(a: Any, b: Any, c: Any, n: int) -> None:
    for i in range(n):
        for j in range(n):
            c[i, j] = 0
        for k in range(n):
            left = a[i, k]
            for j in range(n):
                c[i, j] += left * b[k, j]


LANES = 32


@njit(fastmath={"contract"})
def mandelbrot(steps: Any, width: int, height: int, limit: int) -> None:
    """By 32 columns at a time, so that the compiler makes vectors of the inner loops."""
    cx, x = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    y, n = np.empty(LANES, np.float32), np.empty(LANES, np.int32)
    for row in range(height):
        cy = np.float32(-1.5) + np.float32(3.0) * np.float32(row) / np.float32(height)
        for left in range(0, width, LANES):
            for i in range(LANES):
                column = np.float32(left + i)
                cx[i] = np.float32(-2.0) + np.float32(3.0) * column / np.float32(width)
                x[i], y[i], n[i] = 0, 0, 0
            for _ in range(limit):
                inside = np.int32(0)
                for i in range(LANES):
                    a, b = x[i], y[i]
                    # One that is outside stays there: what is not below 4 is not, as no number is.
                    more = np.int32(a * a + b * b < np.float32(4))
                    n[i] += more
                    inside += more
                    x[i] = a * a - b * b + cx[i] if more else np.float32(2)
                    y[i] = np.float32(2) * a * b + cy if more else np.float32(2)
                if inside == 0:
                    break
            for i in range(LANES):
                steps[row, left + i] = n[i]


@njit
def histogram(data: Any, bins: Any, n: int) -> None:
    for i in range(n):
        bins[data[i]] += 1


@njit(fastmath=True, error_model="numpy")
def nbody(bodies: Any, accelerations: Any, n: int) -> None:
    """Over columns of their own, so that the compiler makes vectors of the inner loop."""
    x, y, z = bodies[:, 0].copy(), bodies[:, 1].copy(), bodies[:, 2].copy()
    mass = bodies[:, 3].copy()
    for i in range(n):
        ax, ay, az = np.float32(0), np.float32(0), np.float32(0)
        for k in range(n):
            dx, dy, dz = x[k] - x[i], y[k] - y[i], z[k] - z[i]
            r2 = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            inverse = np.float32(1) / np.sqrt(r2)
            pull = mass[k] * inverse * inverse * inverse
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        accelerations[i, 0], accelerations[i, 1], accelerations[i, 2] = ax, ay, az
        accelerations[i, 3] = 0


@njit
def transpose(source: Any, out: Any, n: int) -> None:
    for top in range(0, n, 32):
        for left in range(0, n, 32):
            for i in range(top, top + 32):
                for j in range(left, left + 32):
                    out[j, i] = source[i, j]
