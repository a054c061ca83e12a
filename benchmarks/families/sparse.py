"""Products of a sparse matrix and a vector, in four formats."""

from __future__ import annotations

from typing import Any

import numpy as np

from families import loops
from families.base import (
    LINE,
    WARPS,
    Array,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
    uniform,
)


def _matrix(rows: int, longest: int, dtype: Any) -> tuple[Array, Array, Array, Array]:
    """Draws a square matrix: row of each element, starts of rows, columns, values."""
    lengths = integers(np.int32, 0, longest, rows)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    row_of = np.repeat(np.arange(rows, dtype=np.int32), lengths)
    columns = integers(np.int32, 0, rows, len(row_of), seed=1)
    return row_of, starts, columns, uniform(dtype, len(row_of), seed=2)


def _product(row_of: Array, columns: Array, values: Array, x: Array) -> Array:
    return np.bincount(row_of, values.astype(np.float64) * x[columns], len(x))


def _by_rows(shape: LaunchShape, rows: int, longest: int, dtype: Any, threads: int) -> Problem:
    """Returns a problem in the compressed format, with so many threads for each row."""
    row_of, starts, columns, values = _matrix(rows, longest, dtype)
    x = uniform(dtype, rows, seed=3)
    arguments = (starts, columns, values, x, np.zeros_like(x), rows)
    expected = {4: _product(row_of, columns, values, x)}
    return Problem(cover((shape.threads,), threads * rows), arguments, expected)


def csr_scalar(shape: LaunchShape) -> Problem:
    return _by_rows(shape, 40_000 + shape.excess, 40, np.float64, 1)


def csr_vector(shape: LaunchShape) -> Problem:
    return _by_rows(shape, 8_000 + shape.excess, 160, np.float32, 32)


def ell(shape: LaunchShape) -> Problem:
    rows, width = 40_000 + shape.excess, 24
    columns = integers(np.int32, -rows // 4, rows, width, rows).clip(-1)
    values, x = uniform(np.float32, width, rows, seed=1), uniform(np.float32, rows, seed=2)
    wide = values.astype(np.float64)
    expected = np.where(columns >= 0, wide * x[columns], 0).sum(0)
    arguments = (columns, values, x, np.zeros_like(x), rows, width)
    return Problem(cover(shape.block, rows), arguments, {3: expected})


def coordinates(shape: LaunchShape) -> Problem:
    row_of, _, columns, values = _matrix(10_000 + shape.excess, 60, np.float32)
    x, n = uniform(np.float32, 10_000 + shape.excess, seed=3), len(row_of)
    arguments = (row_of, columns, values, x, np.zeros_like(x), n)
    return Problem(cover(shape.block, n), arguments, {4: _product(row_of, columns, values, x)})


CASES = (
    Case("CSR, thread per row", "sparse.cu", "csr_scalar", LINE, csr_scalar, 1e-12,
           native=loops.csr_scalar),
    Case("CSR, warp per row", "sparse.cu", "csr_vector", WARPS, csr_vector, 1e-4),
    Case("ELL", "sparse.cu", "ell", LINE, ell, 1e-4),
    Case("COO with atomics", "sparse.cu", "coordinates", LINE, coordinates, 1e-4, in_place=True),
)  # fmt: skip
