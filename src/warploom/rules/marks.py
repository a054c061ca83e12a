"""Marking what the lanes touch, a bit for each stretch of memory: any pattern in one pass.

The marks are 32 words of 32 bits behind a row's record, a scratch that nothing else reads. They
cover 1,024 stretches from a multiple of 32 on; lanes further apart have to be counted otherwise.
"""

from __future__ import annotations

import numpy as np

from warploom.rules.distinct import Addresses, Row, count_lanes, first_lane, jitable
from warploom.rules.fields import SCRATCH

WORDS = 32


@jitable
def mark(addresses: Addresses, mask: int, shift: int, row: Row) -> int:
    """Mark the stretches of 2^shift bytes that the lanes touch.

    Gives the words in use, or 0 where the lanes are too far apart. Word 0 begins at a multiple of
    32 stretches.
    """
    bits = np.uint64(shift)
    lowest = addresses[first_lane(mask)]
    highest = lowest
    for lane in range(32):
        if (mask >> lane) & 1:
            lowest = min(lowest, addresses[lane])
            highest = max(highest, addresses[lane])
    start = (lowest >> bits) & ~np.uint64(31)
    words = int(np.int64(((highest >> bits) - start) >> np.uint64(5))) + 1
    if words > WORDS:
        return 0
    for word in range(words):
        row[SCRATCH + word] = 0
    for lane in range(32):
        if (mask >> lane) & 1:
            place = int(np.int64((addresses[lane] >> bits) - start))
            row[SCRATCH + (place >> 5)] |= 1 << (place & 31)
    return words


@jitable
def count_marks(words: int, row: Row) -> int:
    """How many stretches are marked."""
    count = 0
    for word in range(words):
        count += count_lanes(row[SCRATCH + word])
    return count


@jitable
def count_marked_groups(words: int, size: int, row: Row) -> int:
    """How many groups of 4, 8 or 32 neighbouring stretches have a mark."""
    count = 0
    for word in range(words):
        marks = row[SCRATCH + word]
        if size == 32:
            count += 1 if marks != 0 else 0
        else:
            marks |= (marks >> 1) & 0x77777777
            marks |= (marks >> 2) & 0x33333333
            if size == 4:
                count += count_lanes(marks & 0x11111111)
            else:
                count += count_lanes((marks | (marks >> 4)) & 0x01010101)
    return count


@jitable
def count_most_over(words: int, row: Row) -> int:
    """The most marks that any of the 32 bit places has over all words.

    Counts of all places at once, as six bits that stand in six numbers: adding a word is a carry
    from one to the next.
    """
    ones, twos, fours, eights, sixteens, all_of_them = 0, 0, 0, 0, 0, 0
    for word in range(words):
        carry = row[SCRATCH + word]
        ones, carry = ones ^ carry, ones & carry
        twos, carry = twos ^ carry, twos & carry
        fours, carry = fours ^ carry, fours & carry
        eights, carry = eights ^ carry, eights & carry
        sixteens, carry = sixteens ^ carry, sixteens & carry
        all_of_them |= carry
    most = 0
    places = 0xFFFFFFFF
    for weight, bit in (
        (32, all_of_them),
        (16, sixteens),
        (8, eights),
        (4, fours),
        (2, twos),
        (1, ones),
    ):
        if places & bit:
            places &= bit
            most += weight
    return most
