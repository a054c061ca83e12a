"""Looks up the allocation of global memory that an address belongs to, for bounds checks of both
machines (interpreter and compiled kernels).

The live allocations are a flat table in order of address, ALLOCATION_WORDS words each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.simt.lane_counts import jitable

Allocations = npt.NDArray[np.uint64]

START, END, CONSTANT, ALLOCATION_WORDS = range(4)
"""Words of a table row: first address, address past the end, 1 if kernels may only read it."""


@jitable
def find_allocation(allocations: Any, address: Any, count: int) -> int:
    """Returns the index of the first word of the row of the last allocation that begins at or below
    `address`, by binary search over `count` rows, which rise by START; negative if there is none.
    The caller compares the address with the row's END."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if allocations[middle * ALLOCATION_WORDS + START] <= address:
            low = middle + 1
        else:
            high = middle
    # `low` is the first row that begins above the address; -ALLOCATION_WORDS if that is row 0.
    return (low - 1) * ALLOCATION_WORDS
