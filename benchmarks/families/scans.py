"""Scans and reductions: sums, largest elements and kept elements of each block's part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from families.base import (
    LINEAR,
    POWERS,
    WARPS,
    Array,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
    uniform,
)


def _parts(values: Array, size: int) -> Array:
    """Returns the values as rows of `size`, the last filled with zeros."""
    return np.pad(values, (0, -len(values) % size)).reshape(-1, size)


def _scan(element: int) -> Callable[[LaunchShape], Problem]:
    """Returns the builder of an inclusive sum, with `element` bytes of shared memory a thread."""

    def build(shape: LaunchShape) -> Problem:
        n = 600_000 + shape.excess
        values = integers(np.int32, -100, 100, n)
        sums = _parts(values, shape.threads).cumsum(1, dtype=np.int32).ravel()[:n]
        arguments = (values, np.zeros(n, np.int32), n)
        return Problem(cover((shape.threads,), n), arguments, {1: sums}, element * shape.threads)

    return build


def scan_tree(shape: LaunchShape) -> Problem:
    n, size = 200_000 + shape.excess, 2 * shape.threads
    values = uniform(np.float32, n)
    parts = _parts(values, size).astype(np.float64)
    sums = (parts.cumsum(1) - parts).ravel()[:n]
    return Problem(cover((size,), n), (values, np.zeros(n, np.float32), n), {1: sums}, 4 * size)


def sum_squares(shape: LaunchShape) -> Problem:
    n, blocks, threads = 4_000_000 + shape.excess, 120, shape.threads
    values = uniform(np.float32, n)
    parts = _parts(values.astype(np.float64) ** 2, blocks * threads)
    sums = parts.reshape(-1, blocks, threads).sum((0, 2))
    arguments = (values, np.zeros(blocks, np.float64), n)
    return Problem((blocks,), arguments, {1: sums}, 8 * threads)


def argmax_rows(shape: LaunchShape) -> Problem:
    rows, columns = 400, 2000 + shape.excess
    values = uniform(np.float32, rows, columns)
    places = values.argmax(1).astype(np.int32)
    arguments = (values, np.zeros(rows, np.int32), columns)
    return Problem((rows,), arguments, {1: places}, 8 * shape.threads)


def compact(shape: LaunchShape) -> Problem:
    n, threads = 400_000 + shape.excess, shape.threads
    values = integers(np.int32, -100, 100, n)
    parts = _parts(values, threads)
    kept = np.zeros_like(parts)
    for part, row in zip(parts, kept, strict=True):
        positive = part[part > 0]
        row[: len(positive)] = positive
    counts = (parts > 0).sum(1).astype(np.int32)
    arguments = (values, np.zeros(parts.size, np.int32), np.zeros_like(counts), n)
    return Problem(cover((threads,), n), arguments, {1: kept.ravel(), 2: counts})


CASES = (
    Case("scan in shared memory", "scans.cu", "scan_shared", LINEAR, _scan(4)),
    Case("scan up and down a tree", "scans.cu", "scan_tree", POWERS, scan_tree, 1e-4),
    Case("scan by shuffles", "scans.cu", "scan_shuffles", WARPS, _scan(0)),
    Case("sum of squares", "scans.cu", "sum_squares", LINEAR, sum_squares, 1e-12),
    Case("argmax of rows", "scans.cu", "argmax_rows", POWERS, argmax_rows),
    Case("compaction by ballots", "scans.cu", "compact", LINEAR, compact),
)
