"""Accesses to words of shared memory that are put on a list, and counted many at once.

Where lanes go anywhere, hardly one access lies as an earlier one did (`cost.pattern_table`). Then
compiled code only notes which words its lanes want, a byte each, if all lanes are on and lie in one
window of 1 KiB. A list that is full is counted whole: what lane 0 wanted in each access is one
vector, what lane 1 wanted the next (`helpers.deferred_counts`). It is the same sum in another
order.

This is for 32 banks of 4 bytes (`AccessRules.lists_words`), and for atomics.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import (
    BANK_CONFLICTS,
    BYTES_MOVED,
    BYTES_REQUESTED,
    EXAMPLE_ADDRESSES,
    EXAMPLE_COST,
    EXAMPLE_MASK,
    LINES,
    PASSES,
    REQUESTS,
    SECTORS,
    TRANSACTIONS,
    WAVEFRONTS,
)
from warploom.cost.overlap import count_coinciding, count_in_columns
from warploom.cost.pattern_table import DOUBT, PATTERNS_END, TRIALS
from warploom.simt.lane_counts import ALL_LANES, Addresses, Row, jitable

BANKS = 32
WORD_BITS = 2
WINDOW_WORDS = 256
WINDOW_UNIT = 128
"""A window begins at the first of all banks."""

LENGTH = 32
"""Accesses on a full list."""

DEFERRED, WINDOW, EXTENT, KEYS = range(PATTERNS_END, PATTERNS_END + 4)
ROW_END = KEYS + LENGTH * 32 // 8
"""What follows the patterns in a row of compiled code: how many accesses are on the list, where the
window begins and how many words it has, and for each access 32 bytes: each lane's word in the
window. There is none, of 0 words, as long as patterns are on trial."""

Many = tuple[int, int, int, int, int, int, int]


def count_many(row: Row, count: int) -> Many:
    """Count, of the first `count` accesses on the list of a row, at least one: how many words,
    sectors, lines and wavefronts they take, each added up; the sum of the most lanes on one word;
    the most wavefronts of any; and which access was the first to take so many."""
    counts = [_count_one(row, access) for access in range(count)]
    words, sectors, lines, wavefronts, most = (list(one) for one in zip(*counts, strict=True))
    worst = max(wavefronts)
    sums = sum(words), sum(sectors), sum(lines), sum(wavefronts), sum(most)
    return *sums, worst, wavefronts.index(worst)


def _count_one(row: Row, access: int) -> tuple[int, ...]:
    """Returns what `count_in_columns` says of one access, and the most lanes on one word."""
    addresses = np.array([deferred_address(row, access, lane) for lane in range(32)], np.uint64)
    found = count_in_columns(addresses, ALL_LANES, WORD_BITS, BANKS)
    return *found, count_coinciding(addresses, ALL_LANES, WORD_BITS)


@jitable
def deferred_address(row: Row, access: int, lane: int) -> int:
    """Returns where a lane reached in an access of the list."""
    word = (row[KEYS + 4 * access + lane // 8] >> (lane % 8 * 8)) & (WINDOW_WORDS - 1)
    return row[WINDOW] + (word << WORD_BITS)  # type: ignore[no-any-return]


@jitable
def count_deferred_access(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Count what is on the list of a row, which is empty then; of a call of a rule it only uses
    the row."""
    count = row[DEFERRED]
    if count == 0:
        return
    row[DEFERRED] = 0
    words, sectors, lines, wavefronts, passes, worst, which = count_many(row, count)
    row[REQUESTS] += count
    row[SECTORS] += sectors
    row[LINES] += lines
    row[TRANSACTIONS] += wavefronts
    row[BYTES_REQUESTED] += count * (32 << WORD_BITS)
    row[BYTES_MOVED] += words << WORD_BITS
    row[WAVEFRONTS] += wavefronts
    row[BANK_CONFLICTS] += wavefronts - count
    row[PASSES] += passes
    if worst > row[EXAMPLE_COST]:
        row[EXAMPLE_COST] = worst
        row[EXAMPLE_MASK] = ALL_LANES
        for lane in range(32):
            row[EXAMPLE_ADDRESSES + lane] = deferred_address(row, which, lane)


@jitable
def place_window(addresses: Addresses, mask: int, limit: int, row: Row) -> None:
    """Empty the list, and have the window begin where an access lies in it: not behind where it
    began before, if all is in it then. `limit` is the end of the shared memory."""
    count_deferred_access(addresses, mask, 0, row)
    low = -1
    high = 0
    for lane in range(32):
        if (mask >> lane) & 1:
            at = int(np.int64(addresses[lane]))
            low = at if low < 0 else min(low, at)
            high = max(high, at)
    low -= low % WINDOW_UNIT
    start = min(low, row[WINDOW])
    row[WINDOW] = start if high - start < WINDOW_WORDS << WORD_BITS else low
    extent = min(WINDOW_WORDS, (limit - row[WINDOW]) >> WORD_BITS)
    row[EXTENT] = extent if row[DOUBT] >= TRIALS - 1 else 0
