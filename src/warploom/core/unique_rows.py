"""Finds equal rows of a matrix by hashes: sorting whole rows would take most of the time of
building a record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SECOND_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)


def unique_rows(rows: Words) -> tuple[Words, Words, Words]:
    """Returns the distinct rows, the index of the first of each, and for every row the index of its
    distinct row.

    Rows count as equal if both of their hashes are equal. If rows that differ share the first hash,
    whole rows are compared instead.
    """
    first_hash, second_hash = hash_rows(rows)
    _, first, index = np.unique(first_hash, return_index=True, return_inverse=True)
    index = index.reshape(-1)
    # Both hashes agree for every pair of rows that share the first one.
    if np.array_equal(second_hash[first][index], second_hash):
        return rows[first], first, index
    distinct, first, index = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return distinct, first, index.reshape(-1)


def hash_rows(rows: Words) -> tuple[Hashes, Hashes]:
    """Returns two different hashes of each row, shape (rows,) each."""
    first = np.zeros(len(rows), np.uint64)
    second = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        value = column.astype(np.uint64)
        first = _mix((first ^ value) * _MULTIPLIER)
        second = _mix((second + value) * _SECOND_MULTIPLIER)
    return first, second


def _mix(value: Hashes) -> Hashes:
    """Returns values whose bits depend on all bits of the argument (xor-shift and multiply)."""
    value = value ^ (value >> np.uint64(31))
    value = value * _SECOND_MULTIPLIER
    return value ^ (value >> np.uint64(29))
