"""Sorting and runs."""

from __future__ import annotations

import numpy as np

from families import loops
from families.base import (
    LINE,
    POWERS,
    WARPS,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
    uniform,
)


def bitonic(shape: LaunchShape) -> Problem:
    keys = integers(np.int32, -(1 << 31), 1 << 31, 80_000 // shape.threads, shape.threads)
    expected = np.sort(keys, 1)
    return Problem((len(keys),), (keys, np.zeros_like(keys)), {1: expected}, 4 * shape.threads)


def radix_pass(shape: LaunchShape) -> Problem:
    shift, rows = 12, 200_000 // shape.threads
    keys = integers(np.uint32, 0, 1 << 32, rows, shape.threads)
    digits = (keys >> shift) & 15
    ordered = np.take_along_axis(keys, np.argsort(digits, 1, kind="stable"), 1)
    counts = (digits[:, :, None] == np.arange(16)).sum(1).astype(np.uint32)
    arguments = (keys, np.zeros_like(keys), np.zeros_like(counts), shift)
    return Problem((rows,), arguments, {1: ordered, 2: counts}, 4 * shape.threads)


def rank_sort(shape: LaunchShape) -> Problem:
    n = 3000 + shape.excess
    values = np.floor(uniform(np.float32, n) * 1000)
    arguments = (values, np.zeros_like(values), n)
    return Problem(cover(shape.block, n), arguments, {1: np.sort(values)})


def run_lengths(shape: LaunchShape) -> Problem:
    n = 300_000 + shape.excess
    runs = integers(np.int64, 1, 60, n)
    values = np.repeat(integers(np.uint8, 0, 256, n, seed=1), runs)[:n]
    starts = np.flatnonzero(np.diff(values.astype(np.int16), prepend=-1))
    lengths = np.zeros(n, np.int32)
    lengths[starts] = np.diff(starts, append=n)
    arguments = (values, np.zeros_like(lengths), n)
    return Problem(cover(shape.block, n), arguments, {1: lengths})


CASES = (
    Case("bitonic sort", "sorting.cu", "bitonic", POWERS, bitonic),
    Case("radix sort pass", "sorting.cu", "radix_pass", WARPS, radix_pass),
    Case("rank sort", "sorting.cu", "rank_sort", LINE, rank_sort, native=loops.rank_sort),
    Case("lengths of runs", "sorting.cu", "run_lengths", LINE, run_lengths),
)
