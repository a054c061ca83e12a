"""Marking what the lanes touch, a byte for each stretch of memory: any pattern in two passes.

The marks are 32 rows of 32 bytes behind a row's record, a scratch that nothing else reads: each
counts the lanes on its stretch, and all are zero between accesses. They cover 1,024 stretches from
a multiple of 32 on; lanes further apart have to be counted otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.rules.distinct import ALL_LANES, Addresses, Row, compiled_as, first_lane, jitable
from warploom.rules.fields import SCRATCH

ROWS = 32
ROW_WORDS = 4
"""Words of 8 marks in a row of marks."""

EACH = 0x0101010101010101
"""A one in each byte."""

Marks = npt.NDArray[np.uint8]


END = SCRATCH + ROWS * ROW_WORDS


def _compiled_marks(row: object) -> Callable[..., Marks]:
    """`marks_of` in compiled code, where a row may be an address."""
    from numba import carray
    from numba.core.types import CPointer

    def at_address(row: Any) -> Marks:
        return carray(row, (END,))[SCRATCH:END].view(np.uint8)

    def of_array(row: Any) -> Marks:
        return row[SCRATCH:END].view(np.uint8)

    return at_address if isinstance(row, CPointer) else of_array


@compiled_as(_compiled_marks)
def marks_of(row: Row) -> Marks:
    """The marks as bytes."""
    return row[SCRATCH:END].view(np.uint8)


@jitable
def mark(addresses: Addresses, mask: int, shift: int, row: Row) -> tuple[int, int]:
    """Count the lanes on each stretch of 2^shift bytes: how many rows of marks are in use, and the
    most lanes on one stretch; zeros where the lanes are too far apart.

    The first row begins at a multiple of 32 stretches. `take_marks` has to follow.
    """
    bits = np.uint64(shift)
    some = addresses[first_lane(mask)]
    lowest, highest = some, some
    for lane in range(32):
        here = addresses[lane] if (mask >> lane) & 1 else some
        lowest = min(lowest, here)
        highest = max(highest, here)
    start = (lowest >> bits) & ~np.uint64(31)
    rows = int(np.int64(((highest >> bits) - start) >> np.uint64(5))) + 1
    if rows > ROWS:
        return 0, 0
    marks, most = marks_of(row), 0
    if mask == ALL_LANES:
        for lane in range(32):
            most = max(most, mark_one((addresses[lane] >> bits) - start, marks))
    else:
        for lane in range(32):
            if (mask >> lane) & 1:
                most = max(most, mark_one((addresses[lane] >> bits) - start, marks))
    return rows, most


@jitable
def mark_one(stretch: np.uint64, marks: Marks) -> int:
    """Add one to a mark; gives what it is then. An unsigned index costs no look at its sign."""
    count = int(marks[stretch]) + 1
    marks[stretch] = count
    return count


@jitable
def take_marks(rows: int, row: Row) -> tuple[int, int, int, int, int]:
    """What the marks say, which are zero again then: how many stretches are marked, how many
    groups of 4, 8 and 32 neighbours have a marked one, and the most that are marked in any of the
    32 columns."""
    fours, eights, lines = 0, 0, 0
    a, b, c, d = 0, 0, 0, 0
    for first in range(SCRATCH, SCRATCH + rows * ROW_WORDS, ROW_WORDS):
        p, q, r, s = int(row[first]), int(row[first + 1]), int(row[first + 2]), int(row[first + 3])
        row[first] = row[first + 1] = row[first + 2] = row[first + 3] = 0
        a += marked(p)
        b += marked(q)
        c += marked(r)
        d += marked(s)
        eights += (p != 0) + (q != 0) + (r != 0) + (s != 0)
        fours += halves(p) + halves(q) + halves(r) + halves(s)
        lines += p | q | r | s != 0
    most = highest_of(larger(larger(a, b), larger(c, d)))
    return sum_of(a + b + c + d), int(fours), int(eights), int(lines), most


@jitable
def marked(marks: int) -> int:
    """A one for each of 8 marks, all below 128, that is not zero."""
    return ((marks + 127 * EACH) >> 7) & EACH


@jitable
def halves(marks: int) -> int:
    """How many halves of 8 marks have one that is not zero."""
    return int(marks & 0xFFFFFFFF != 0) + int(marks >> 32 != 0)


@jitable
def larger(one: int, other: int) -> int:
    """The larger of each of 8 bytes, all below 64."""
    wins = ((one + 64 * EACH - other) >> 6) & EACH
    chosen = wins * 127
    return (one & chosen) | (other & ~chosen)


@jitable
def highest_of(each: int) -> int:
    """The highest of 8 bytes, all below 64."""
    each = larger(each, each >> 32)
    each = larger(each, each >> 16)
    return larger(each, each >> 8) & 0x7F


@jitable
def sum_of(each: int) -> int:
    """The sum of 8 bytes, which is below 256."""
    return ((each * EACH) >> 56) & 0xFF
