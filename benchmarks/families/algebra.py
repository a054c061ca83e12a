"""Dense linear algebra: products, transposition, factorisation, triangular systems."""

from __future__ import annotations

import numpy as np

from families import loops
from families.base import (
    LINE,
    LINEAR,
    PLANE,
    WIDE,
    Case,
    LaunchShape,
    Problem,
    cover,
    uniform,
)


def product(shape: LaunchShape) -> Problem:
    m, n, k = 320 + shape.excess, 320 + shape.excess, 200
    a, b = uniform(np.float32, m, k), uniform(np.float32, k, n, seed=1)
    arguments = (a, b, np.zeros((m, n), np.float32), m, n, k)
    return Problem(cover(shape.block, n, m), arguments, {2: a.astype(np.float64) @ b})


def product_tiled(shape: LaunchShape) -> Problem:
    m, n, k = 160 + shape.excess, 192 + shape.excess, 160
    a, b = uniform(np.float64, m, k), uniform(np.float64, k, n, seed=1)
    width, height = (*shape.block, 1)[:2]
    arguments = (a, b, np.zeros((m, n)), m, n, k)
    grid = cover(shape.block, n, m)
    return Problem(grid, arguments, {2: a @ b}, 8 * 16 * (width + height))


def transpose(shape: LaunchShape) -> Problem:
    rows, columns = 640 + shape.excess, 800 + shape.excess
    matrix = uniform(np.float32, rows, columns)
    arguments = (matrix, np.zeros((columns, rows), np.float32), rows, columns)
    return Problem(cover((32, 32), columns, rows), arguments, {1: matrix.T})


def eliminate(shape: LaunchShape) -> Problem:
    n, k = 700 + shape.excess, 30
    matrix = uniform(np.float64, n, n)
    matrix[k, k] += 1
    expected = matrix.copy()
    factors = matrix[k + 1 :, k : k + 1] / matrix[k, k]
    expected[k + 1 :, k + 1 :] -= factors * matrix[k, k + 1 :]
    return Problem(cover(shape.block, n - k, n - k - 1), (matrix, n, k), {0: expected})


def substitute(shape: LaunchShape) -> Problem:
    systems, n = 40, 100 + shape.excess
    matrices = np.tril(uniform(np.float32, systems, n, n)) / np.float32(n)
    matrices[:, range(n), range(n)] += 1
    right = uniform(np.float32, systems, n, seed=1)
    expected = np.linalg.solve(matrices.astype(np.float64), right[..., None].astype(np.float64))
    arguments = (matrices, right, np.zeros_like(right), n)
    return Problem((systems,), arguments, {2: expected[..., 0]}, 4 * n)


def jacobi(shape: LaunchShape) -> Problem:
    n = 1000 + shape.excess
    a, b, x = uniform(np.float64, n, n), uniform(np.float64, n, seed=1), uniform(np.float64, n)
    diagonal = a.diagonal() + n
    np.fill_diagonal(a, diagonal)
    expected = (b - (a @ x - diagonal * x)) / diagonal
    arguments = (a, b, x, np.zeros_like(x), n)
    return Problem(cover(shape.block, n), arguments, {3: expected})


CASES = (
    Case("matrix product", "algebra.cu", "product", PLANE, product, 1e-4, native=loops.product),
    Case("tiled product, doubles", "algebra.cu", "product_tiled", PLANE, product_tiled, 1e-10),
    Case("transposition by tiles", "algebra.cu", "transpose", WIDE, transpose),
    Case("LU step", "algebra.cu", "eliminate", PLANE, eliminate, 1e-10, in_place=True),
    Case("triangular systems", "algebra.cu", "substitute", LINEAR, substitute, 1e-4),
    Case("Jacobi, thread per row", "algebra.cu", "jacobi", LINE, jacobi, 1e-10,
           native=loops.jacobi),
)  # fmt: skip
