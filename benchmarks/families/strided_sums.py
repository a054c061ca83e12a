"""Sums, largest elements and counts over grid-stride loops, and rows that a warp shares."""

from __future__ import annotations

import numpy as np

from families import strided_loops as loops
from families.base import (
    LINEAR,
    POWERS,
    WARPS,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
    uniform,
)

BLOCKS = 264
"""Blocks of a launch: two for each multiprocessor of an H100, whatever the problem's size."""


def dot(shape: LaunchShape) -> Problem:
    n, threads = 2_000_000 + shape.excess, shape.threads
    a, b = uniform(np.float64, n), uniform(np.float64, n, seed=1)
    products = np.pad(a * b, (0, -n % (BLOCKS * threads)))
    sums = products.reshape(-1, BLOCKS, threads).sum((0, 2))
    arguments = (a, b, np.zeros_like(sums), n)
    return Problem((BLOCKS,), arguments, {2: sums}, 8 * threads)


def distance(shape: LaunchShape) -> Problem:
    n = 3_000_000 + shape.excess
    a, b = uniform(np.float32, n), uniform(np.float32, n, seed=1)
    total = ((a.astype(np.float64) - b) ** 2).sum(keepdims=True)
    return Problem((BLOCKS,), (a, b, np.zeros(1, np.float32), n), {2: total})


def largest(shape: LaunchShape) -> Problem:
    n = 6_000_000 + shape.excess
    values = integers(np.int32, -(1 << 31), 1 << 31, n)
    start = np.array([-(1 << 31)], np.int32)
    return Problem((BLOCKS,), (values, start, n), {1: values.max(keepdims=True)})


def joint_histogram(shape: LaunchShape) -> Problem:
    n = 1_500_000 + shape.excess
    a, b = integers(np.uint8, 0, 256, n), integers(np.uint8, 0, 256, n, seed=1)
    counts = np.bincount(a // 16 * 16 + b // 16, minlength=256).astype(np.uint32)
    return Problem((BLOCKS,), (a, b, np.zeros_like(counts), n), {2: counts})


def times_vector(shape: LaunchShape) -> Problem:
    rows, columns = 3_200, 1_000 + shape.excess
    matrix, x = uniform(np.float32, rows, columns), uniform(np.float32, columns, seed=1)
    arguments = (matrix, x, np.zeros(rows, np.float32), rows, columns)
    grid = cover((shape.threads,), 32 * rows)
    return Problem(grid, arguments, {2: matrix.astype(np.float64) @ x})


def row_norms(shape: LaunchShape) -> Problem:
    rows, columns = 16_000 + shape.excess, 160
    matrix = uniform(np.float32, rows, columns)
    norms = np.sqrt((matrix.astype(np.float64) ** 2).sum(1))
    return Problem((66,), (matrix, np.zeros(rows, np.float32), rows, columns), {1: norms})


CASES = (
    Case("strides, dot product", "strided_sums.cu", "dot", POWERS, dot, 1e-10),
    Case("strides, distance", "strided_sums.cu", "distance", WARPS, distance, 1e-4,
           in_place=True),
    Case("strides, largest", "strided_sums.cu", "largest", WARPS, largest, in_place=True,
           native=loops.largest),
    Case("strides, joint histogram", "strided_sums.cu", "joint_histogram", LINEAR,
           joint_histogram, in_place=True),
    Case("matrix by vector, warps", "strided_sums.cu", "times_vector", WARPS, times_vector, 1e-4,
           native=loops.times_vector),
    Case("norms of rows, warps", "strided_sums.cu", "row_norms", WARPS, row_norms, 1e-4),
)  # fmt: skip
