"""Rows of numbers that are equal, found by hashes: sorting whole rows would take most of the time
of a record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)


def unique_rows(rows: Words) -> tuple[Words, Words, Words]:
    """Return the distinct rows, where each is first, and for every row which of them it is.

    Rows count as equal whose two hashes are; where two that are not share the first, all are
    compared.
    """
    one, other = mixed_rows(rows)
    _, first, which = np.unique(one, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    if np.array_equal(other[first][which], other):
        return rows[first], first, which
    kinds, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return kinds, first, which.reshape(-1)


def mixed_rows(rows: Words) -> tuple[Hashes, Hashes]:
    """Return two hashes of each row."""
    one = np.zeros(len(rows), np.uint64)
    other = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        value = column.astype(np.uint64)
        one = _mix((one ^ value) * _ODD)
        other = _mix((other + value) * _OTHER)
    return one, other


def _mix(value: Hashes) -> Hashes:
    value = value ^ (value >> np.uint64(31))
    value = value * _OTHER
    return value ^ (value >> np.uint64(29))
