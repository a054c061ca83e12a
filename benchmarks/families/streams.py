"""Flat streams, one thread an element, and blocks that reduce what each thread has loaded."""

from __future__ import annotations

import numpy as np

from families.base import LINE, Case, LaunchShape, Problem, cover, shapes, uniform

TREES = shapes("256 64 128 512 1024")
FIXED = shapes("256 256+1 256+77 256+128 256+255")
BLOCKS = shapes("256 64 128 192 1024")
WHOLE = shapes("16x16 8x8 32x8 64x4 8x32 128")
"""Shapes that cover a matrix of 640 rows and 768 columns exactly."""


def add(shape: LaunchShape) -> Problem:
    n = 1_000_000 + shape.excess
    a, b = uniform(np.float32, 2, n)
    return Problem(cover(shape.block, n), (a, b, np.zeros_like(a), n), {2: a + b})


def gelu(shape: LaunchShape) -> Problem:
    n = 300_000 + shape.excess
    x = 8 * uniform(np.float64, n) - 4
    arguments = (x, np.zeros(n, np.float32), n)
    return Problem(cover(shape.block, n), arguments, {1: x / (1 + np.exp(-1.702 * x))})


def blend(shape: LaunchShape) -> Problem:
    rows, columns, pitch = 640, 768, 800
    a, b = uniform(np.float32, 2, rows, pitch)
    expected = np.zeros_like(a)
    expected[:, :columns] = (0.25 * a + 0.75 * b)[:, :columns]
    arguments = (a, b, np.zeros_like(a), np.float32(0.25), pitch)
    return Problem(cover(shape.block, columns, rows), arguments, {2: expected})


def dot_blocks(shape: LaunchShape) -> Problem:
    n, threads = 400_000 + shape.excess, shape.threads
    a, b = uniform(np.float64, 2, n)
    sums = np.pad(a * b, (0, -n % threads)).reshape(-1, threads).sum(1)
    arguments = (a, b, np.zeros_like(sums), n)
    return Problem((len(sums),), arguments, {2: sums}, 8 * threads)


def sum_blocks(shape: LaunchShape) -> Problem:
    n, threads = 400_000 + shape.excess, shape.threads
    values = uniform(np.float32, n)
    sums = np.pad(values, (0, -n % threads)).reshape(-1, threads).sum(1)
    return Problem((len(sums),), (values, np.zeros_like(sums), n), {1: sums})


def softmax_row(shape: LaunchShape) -> Problem:
    rows, columns = 1_000, shape.threads
    values = 8 * uniform(np.float32, rows, columns)
    powers = np.exp(values - values.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    return Problem((rows,), (values, np.zeros_like(values)), {1: expected})


def moving_mean(shape: LaunchShape) -> Problem:
    n = 1_000 * shape.threads
    values = uniform(np.float32, n + 32)
    means = np.lib.stride_tricks.sliding_window_view(values, 16)[:n].mean(1)
    return Problem((1_000,), (values, np.zeros(n, np.float32)), {1: means})


CASES = (
    Case("sum of vectors", "streams.cu", "add", LINE, add),
    Case("GELU", "streams.cu", "gelu", LINE, gelu, 1e-4),
    Case("blend of matrices", "streams.cu", "blend", WHOLE, blend, 1e-5),
    Case("dot product, tree", "streams.cu", "dot_blocks", TREES, dot_blocks, 1e-12),
    Case("sums of blocks, unrolled", "streams.cu", "sum_blocks", FIXED, sum_blocks, 1e-5),
    Case("softmax, tree", "streams.cu", "softmax_row", TREES, softmax_row, 1e-4),
    Case("moving mean", "streams.cu", "moving_mean", BLOCKS, moving_mean, 1e-5),
)
