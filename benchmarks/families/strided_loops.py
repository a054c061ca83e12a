"""Native loops of the kernels with grid-stride loops, for Numba's CPU compiler (see loops.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(fastmath={"contract"})
def axpy(x: Any, y: Any, a: float, n: int) -> None:
    for i in range(n):
        y[i] = a * x[i] + y[i]


@njit(fastmath={"contract"})
def triad(a: Any, b: Any, c: Any, factor: Any, n: int) -> None:
    for i in range(n):
        c[i] = a[i] + factor * b[i]


@njit
def largest(values: Any, out: Any, n: int) -> None:
    most = values[0]
    for i in range(n):
        most = max(most, values[i])
    out[0] = most


@njit(fastmath={"contract"})
def times_vector(matrix: Any, x: Any, y: Any, rows: int, columns: int) -> None:
    for row in range(rows):
        total = np.float32(0)
        for c in range(columns):
            total += matrix[row, c] * x[c]
        y[row] = total
