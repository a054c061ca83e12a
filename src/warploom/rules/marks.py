"""Marking what the lanes touch, a byte for each stretch of memory: any pattern in one pass.

The marks are 32 rows of 32 bytes behind a row's record, a scratch that nothing else reads: each
counts the lanes on its stretch. They cover 1,024 stretches from a multiple of 32 on; lanes further
apart have to be counted otherwise.
"""

from __future__ import annotations

import numpy as np

from warploom.rules.distinct import ALL_LANES, Addresses, Row, first_lane, jitable
from warploom.rules.fields import SCRATCH

ROWS = 32
ROW_WORDS = 4
"""Words of 8 marks in a row of marks."""


@jitable
def mark(addresses: Addresses, mask: int, shift: int, row: Row) -> tuple[int, int, int]:
    """Count the lanes on each stretch of 2^shift bytes.

    Gives the rows of marks in use, how many stretches are marked and the most lanes on one; zeros
    where the lanes are too far apart. The first row begins at a multiple of 32 stretches.
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
        return 0, 0, 0
    for word in range(rows * ROW_WORDS):
        row[SCRATCH + word] = 0
    stretches, most = 0, 0
    if mask == ALL_LANES:
        for lane in range(32):
            before = mark_one(int(np.int64((addresses[lane] >> bits) - start)), row)
            most = max(most, before)
            stretches += before == 0
    else:
        for lane in range(32):
            if (mask >> lane) & 1:
                before = mark_one(int(np.int64((addresses[lane] >> bits) - start)), row)
                most = max(most, before)
                stretches += before == 0
    return rows, int(stretches), most + 1


@jitable
def mark_one(place: int, row: Row) -> int:
    """Add one to a mark; gives what it was."""
    at, shift = SCRATCH + (place >> 3), (place & 7) << 3
    marks = int(row[at])
    row[at] = marks + (1 << shift)
    return (marks >> shift) & 0xFF


@jitable
def count_marked_groups(rows: int, size: int, row: Row) -> int:
    """How many groups of 4, 8 or 32 neighbouring stretches have a mark."""
    count = 0
    if size == 32:
        for first in range(SCRATCH, SCRATCH + rows * ROW_WORDS, ROW_WORDS):
            count += row[first] | row[first + 1] | row[first + 2] | row[first + 3] != 0
    elif size == 8:
        for word in range(SCRATCH, SCRATCH + rows * ROW_WORDS):
            count += row[word] != 0
    else:
        for word in range(SCRATCH, SCRATCH + rows * ROW_WORDS):
            marks = int(row[word])
            count += (marks & 0xFFFFFFFF != 0) + (marks >> 32 != 0)
    return int(count)


EACH = 0x0101010101010101
"""A one in each byte."""


@jitable
def count_most_over(rows: int, row: Row) -> int:
    """The most stretches that are marked in any of the 32 columns."""
    a, b, c, d = 0, 0, 0, 0
    for first in range(SCRATCH, SCRATCH + rows * ROW_WORDS, ROW_WORDS):
        a += beyond(row[first], 0)
        b += beyond(row[first + 1], 0)
        c += beyond(row[first + 2], 0)
        d += beyond(row[first + 3], 0)
    most = 1
    while (beyond(a, most) | beyond(b, most) | beyond(c, most) | beyond(d, most)) != 0:
        most += 1
    return most


@jitable
def beyond(counts: int, most: int) -> int:
    """Which of 8 numbers, all below 128, are larger than `most`: a one for each."""
    return ((int(counts) + (127 - most) * EACH) >> 7) & EACH
