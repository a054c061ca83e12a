"""Elements moved: by an index array, along columns, by fields of records, in reverse."""

from __future__ import annotations

import numpy as np

from families import loops
from families.base import LINE, WIDE, Case, LaunchShape, Problem, cover, integers, uniform


def gather(shape: LaunchShape) -> Problem:
    n = 600_000 + shape.excess
    values, index = uniform(np.float64, n), integers(np.int32, 0, n, n, seed=1)
    arguments = (values, index, np.zeros_like(values), n)
    return Problem(cover(shape.block, n), arguments, {2: values[index]})


def scatter(shape: LaunchShape) -> Problem:
    n = 400_000 + shape.excess
    values, index = uniform(np.float32, n), np.random.default_rng(1).permutation(n)
    expected = np.zeros_like(values)
    expected[index] = 2 * values
    arguments = (values, index.astype(np.int32), np.zeros_like(values), n)
    return Problem(cover(shape.block, n), arguments, {2: expected})


def scale_columns(shape: LaunchShape) -> Problem:
    rows, columns = 900 + shape.excess, 700 + shape.excess
    matrix, scales = uniform(np.float32, rows, columns), uniform(np.float32, columns, seed=1)
    arguments = (matrix, scales, np.zeros_like(matrix), rows, columns)
    return Problem(cover(shape.block, rows, columns), arguments, {2: matrix * scales})


def row_sums(shape: LaunchShape) -> Problem:
    rows, columns = 5_000 + shape.excess, 400
    matrix = integers(np.int32, -(1 << 31), 1 << 31, rows, columns)
    sums = matrix.sum(1, dtype=np.int64)
    arguments = (matrix, np.zeros_like(sums), rows, columns)
    return Problem(cover(shape.block, rows), arguments, {1: sums})


RECORD = np.dtype([("id", "i4"), ("kind", "i2"), ("flags", "u1"), ("age", "u1"), ("amount", "f8")])


def split_records(shape: LaunchShape) -> Problem:
    n = 300_000 + shape.excess
    records = np.zeros(n, RECORD)
    records["id"], records["kind"] = integers(np.int64, 0, 10_000, 2, n)
    records["flags"], records["age"] = integers(np.int64, 0, 100, 2, n, seed=1)
    records["amount"] = uniform(np.float64, n, seed=2)
    wanted = records["flags"] & 4 != 0
    expected = {
        1: np.where(wanted, records["id"], np.int32(0)),
        2: np.where(wanted, records["kind"], np.int16(0)),
        3: np.where(wanted, records["amount"] * records["age"], 0.0),
    }
    outputs = [np.zeros_like(array) for array in expected.values()]
    return Problem(cover(shape.block, n), (records.view(np.uint8), *outputs, n), expected)


def reverse(shape: LaunchShape) -> Problem:
    n = 2_000_000 + shape.excess
    values = integers(np.int16, -(1 << 15), 1 << 15, n)
    return Problem(cover(shape.block, n), (values, np.zeros_like(values), n), {1: values[::-1]})


CASES = (
    Case("gather, doubles", "moving.cu", "gather", LINE, gather, native=loops.gather),
    Case("scatter, floats", "moving.cu", "scatter", LINE, scatter),
    Case("columns by rows", "moving.cu", "scale_columns", WIDE, scale_columns),
    Case("sums of rows", "moving.cu", "row_sums", LINE, row_sums),
    Case("fields of records", "moving.cu", "split_records", LINE, split_records),
    Case("reversal, 16 bits", "moving.cu", "reverse", LINE, reverse),
)
