"""Looks up the allocation of global memory that an address belongs to, for bounds checks of both
machines (interpreter and compiled kernels).

The live allocations are a table of rows (`AllocationRow`) in order of address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord

Allocations = npt.NDArray[np.uint64]


class AllocationRow(WordRecord):
    """A live allocation."""

    start: int  # its first address
    end: int  # the address past its end
    constant: int  # 1 if kernels may only read it


@jitable
def find_allocation(allocations: Any, address: Any, count: int) -> AllocationRow:
    """Returns the row of the last allocation that begins at or below `address`, as a view of
    `allocations`, by binary search over its first `count` rows, which rise by `start`; a view whose
    index `at` is negative if there is none. The caller compares the address with the row's
    `end`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if AllocationRow(allocations, 0, middle).start <= address:
            low = middle + 1
        else:
            high = middle
    # `low` is the first row that begins above the address.
    return AllocationRow(allocations, 0, low - 1)
