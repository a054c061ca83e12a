"""Defers counting the costs of atomics on shared memory, not the atomics: collects accesses in a
list, and counts them together.

If addresses are irregular, as in a histogram, the pattern table (`cost.pattern_table`) rarely hits.
Then compiled code only appends the words that the 32 lanes access to a list, as numbers of one byte
each in a window of 256 words; all lanes must be active and in the window. A full list is counted
with vectors across accesses: one vector has the words of lane 0 in each access, the next those of
lane 1 (`helpers.deferred_counts`). The sums are the same as counting each access alone.

    window at 0x400, lanes at 0x400, 0x410, 0x408, ...   ->   appends the bytes 0, 4, 2, ...

This is for 32 banks of 4 bytes (`AccessRules.defers_atomics`), and for atomics of 4 bytes.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from warploom.cost.overlap import count_coinciding, count_in_columns
from warploom.cost.pattern_table import TRIAL_PATTERNS, CostTable
from warploom.simt.lane_counts import ALL_LANES, Addresses, Ints, jitable
from warploom.simt.records import WordRecord, Words

BANKS = 32
WORD_BITS = 2
WINDOW_WORDS = 256
WINDOW_UNIT = 128
"""Bytes to which the window is aligned, so that it begins at bank 0."""

LENGTH = 32
"""Accesses of a full list."""


class AccessCounts(WordRecord):
    """The record of an access in compiled code, with the tables that count it: its patterns, and
    the list of deferred accesses."""

    table: CostTable
    deferred: int  # accesses in the list
    window: int  # the address of the window
    extent: int  # its length in words, 0 (nothing fits) while patterns are on trial
    keys: Annotated[Words, LENGTH * 32 // 8]  # 32 bytes an access: each lane's word in the window


DeferredCosts = tuple[int, int, int, int, int, int, int]


def sum_deferred_costs(record: Ints, count: int) -> DeferredCosts:
    """Returns the costs of the first `count` (at least 1) deferred accesses: the sums of their
    words, sectors, lines, wavefronts and passes (most lanes on one word); the most wavefronts of
    one access; and the index of the first access with that many."""
    # Compiled code counts all accesses at once instead, by `helpers.deferred_counts`.
    counts = [_count_one(record, access) for access in range(count)]
    words, sectors, lines, wavefronts, most = (list(column) for column in zip(*counts, strict=True))
    worst = max(wavefronts)
    sums = sum(words), sum(sectors), sum(lines), sum(wavefronts), sum(most)
    return *sums, worst, wavefronts.index(worst)


def _count_one(record: Ints, access: int) -> tuple[int, ...]:
    """Returns the words, sectors, lines and wavefronts of one deferred access, in which all 32
    lanes are active, and the most lanes on one word."""
    addresses = np.array([deferred_address(record, access, lane) for lane in range(32)], np.uint64)
    column_counts = count_in_columns(addresses, ALL_LANES, WORD_BITS, BANKS)
    return *column_counts, count_coinciding(addresses, ALL_LANES, WORD_BITS)


@jitable
def deferred_address(record: Ints, access: int, lane: int) -> int:
    """Returns the byte address that a lane accesses in deferred access number `access` of the list:
    its word, one byte of the list, from the start of the window."""
    # A 64-bit word holds the bytes of eight lanes, so an access has four words.
    row = AccessCounts(record, 0)
    word = (int(row.keys[4 * access + lane // 8]) >> (lane % 8 * 8)) & (WINDOW_WORDS - 1)
    return row.window + (word << WORD_BITS)


@jitable
def count_deferred_access(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of all deferred accesses in the list, each of 32 lanes and 4 bytes a lane, to
    the counters of shared accesses and `passes`, and empties the list; nothing if it is empty.
    Replaces the example if one of them has more wavefronts. Of the parameters of a rule it uses
    only `record`."""
    row = AccessCounts(record, 0)
    costs, count = row.table.record, row.deferred
    if count == 0:
        return
    row.deferred = 0
    words, sectors, lines, wavefronts, passes, worst, worst_access = sum_deferred_costs(
        record, count
    )
    costs.requests += count
    costs.sectors += sectors
    costs.lines += lines
    costs.transactions += wavefronts
    costs.bytes_requested += count * (32 << WORD_BITS)
    costs.bytes_moved += words << WORD_BITS
    costs.wavefronts += wavefronts
    costs.bank_conflicts += wavefronts - count
    costs.passes += passes
    if worst > costs.example_cost:
        costs.example_cost = worst
        costs.example_mask = ALL_LANES
        for lane in range(32):
            costs.example_addresses[lane] = deferred_address(record, worst_access, lane)


@jitable
def move_window(addresses: Addresses, mask: int, limit: int, record: Ints) -> None:
    """Counts and empties the list, and moves the window so that it covers an access that missed it:
    its start stays, or moves down, if all lanes fit then; else it begins at the lowest lane's line.
    `extent` becomes the window's words before `limit`, the end of the shared memory, or 0, so that
    nothing is deferred, while `new_patterns` is below TRIAL_PATTERNS - 1."""
    # The list's bytes are words from the window's start, which is about to move.
    count_deferred_access(addresses, mask, 0, record)
    low = -1
    high = 0
    for lane in range(32):
        if (mask >> lane) & 1:
            at = int(np.int64(addresses[lane]))
            low = at if low < 0 else min(low, at)
            high = max(high, at)
    low -= low % WINDOW_UNIT
    row = AccessCounts(record, 0)
    start = min(low, row.window)
    row.window = start if high - start < WINDOW_WORDS << WORD_BITS else low
    extent = min(WINDOW_WORDS, (limit - row.window) >> WORD_BITS)
    row.extent = extent if row.table.new_patterns >= TRIAL_PATTERNS - 1 else 0
