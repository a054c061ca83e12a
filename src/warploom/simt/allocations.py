"""The live allocations of global memory, as code that runs looks them up: rows of a table, in order
of address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.simt.lane_counts import jitable

Allocations = npt.NDArray[np.uint64]

START, END, CONSTANT, ALLOCATION_WORDS = range(4)
"""The words of a row: where an allocation begins, where it ends, and whether kernels may only read
it."""


@jitable
def find_allocation(allocations: Any, address: Any, count: int) -> int:
    """Returns where the row begins of the last of `count` allocations that begins at or below an
    address; less than 0 where none does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if allocations[middle * ALLOCATION_WORDS + START] <= address:
            low = middle + 1
        else:
            high = middle
    return (low - 1) * ALLOCATION_WORDS
