"""The workloads (workloads.py) as loops for Numba's CPU compiler, one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(fastmath=False, cache=True)
def saxpy(n: int, a: Any, x: Any, y: Any) -> None:
    for i in range(n):
        y[i] = a * x[i] + y[i]


@njit(fastmath={"reassoc"}, cache=True)
def reduce(x: Any, sums: Any, n: int) -> None:
    for block in range(n // 256):
        total = np.float32(0)
        for i in range(256):
            total += x[block * 256 + i]
        sums[block] = total


@njit(fastmath={"contract"}, cache=True)
def matmul(a: Any, b: Any, c: Any, n: int) -> None:
    for i in range(n):
        for j in range(n):
            c[i, j] = 0
        for k in range(n):
            left = a[i, k]
            for j in range(n):
                c[i, j] += left * b[k, j]


@njit(fastmath={"contract"}, cache=True)
def mandelbrot(steps: Any, width: int, height: int, limit: int) -> None:
    for row in range(height):
        cy = np.float32(-1.5) + np.float32(3.0) * np.float32(row) / np.float32(height)
        for column in range(width):
            cx = np.float32(-2.0) + np.float32(3.0) * np.float32(column) / np.float32(width)
            x, y, n = np.float32(0), np.float32(0), 0
            while n < limit and x * x + y * y < np.float32(4):
                x, y = x * x - y * y + cx, np.float32(2) * x * y + cy
                n += 1
            steps[row, column] = n


@njit(cache=True)
def histogram(data: Any, bins: Any, n: int) -> None:
    for i in range(n):
        bins[data[i]] += 1


@njit(fastmath=True, cache=True)
def nbody(bodies: Any, accelerations: Any, n: int) -> None:
    for i in range(n):
        ax, ay, az = np.float32(0), np.float32(0), np.float32(0)
        for k in range(n):
            dx, dy, dz = (
                bodies[k, 0] - bodies[i, 0],
                bodies[k, 1] - bodies[i, 1],
                bodies[k, 2] - bodies[i, 2],
            )
            r2 = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            inverse = np.float32(1) / np.sqrt(r2)
            pull = bodies[k, 3] * inverse * inverse * inverse
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        accelerations[i, 0], accelerations[i, 1], accelerations[i, 2] = ax, ay, az
        accelerations[i, 3] = 0


@njit(cache=True)
def transpose(source: Any, out: Any, n: int) -> None:
    for top in range(0, n, 32):
        for left in range(0, n, 32):
            for i in range(top, top + 32):
                for j in range(left, left + 32):
                    out[j, i] = source[i, j]
