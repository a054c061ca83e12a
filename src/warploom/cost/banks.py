"""Counts what a warp-wide access to shared memory costs, from compute capability 2.0 on.

Lanes on one word are served together; different words of one bank take a wavefront each. What a
bank is, and how many lanes go together, differs (CUDA C++ Programming Guide 12.9, "Shared Memory"
of each compute capability; CUDA C Programming Guide 4.2, F.4.3 and F.5.3):

- 5.0 and later: 32 banks of 4 bytes. Lanes of 8 bytes go by half-warps, of 16 by quarter-warps;
  more of them where lanes of a load want the same (`cost.paired_banks`).
- 3.x: 32 banks of 8 bytes, so twice as many lanes go together. In the mode of 4 bytes, a bank
  serves words i and i + 32 of an aligned row of 64 words at once.
- 2.x: as 5.0, but a quarter-warp of 16 bytes takes one wavefront more than its words do.

As accesses are aligned, wider lanes meet in a bank exactly where their first words do.
Before 2.0, see `cost.half_warp_banks`. `ldmatrix` and `stmatrix` cost what an access of 16 bytes
does by the lanes whose addresses they use: rows of 16 bytes, 8 to a matrix (PTX ISA, ldmatrix).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from warploom.cost.coalescing import LINE_BITS, SECTOR_BITS
from warploom.cost.fields import (
    BANK_CONFLICTS,
    BYTES_MOVED,
    BYTES_REQUESTED,
    LINES,
    REQUESTS,
    SECTORS,
    TRANSACTIONS,
    WAVEFRONTS,
)
from warploom.cost.overlap import count_in_columns
from warploom.simt.lane_counts import (
    Addresses,
    Row,
    all_rise,
    compiled_as,
    count_distinct,
    count_lanes,
    count_steps,
    first_lane,
    first_lanes,
    jitable,
    stretches_of,
)

BANKS = 32
WORD_BITS = 2


@jitable
def shared_32_banks(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Adds a store or atomic on shared memory from compute capability 5.0 on.

    Wavefronts beyond one for each group of lanes that takes part are bank conflicts.
    """
    if size > 4 or not add_words(addresses, mask, size, row):
        add_wavefronts(addresses, mask, size, WORD_BITS, 0, row)


@jitable
def shared_32_banks_quarters(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Shared memory on 2.x: a quarter-warp of 16 bytes has a conflict of two ways at least."""
    if size > 4 or not add_words(addresses, mask, size, row):
        add_wavefronts(addresses, mask, size, WORD_BITS, 1 if size == 16 else 0, row)


@jitable
def shared_wide_banks(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Shared memory on 3.x, in the mode of 8 bytes."""
    add_wavefronts(addresses, mask, size, WORD_BITS + 1, 0, row)


@jitable
def shared_wide_banks_of_words(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Shared memory on 3.x, in the mode of 4 bytes.

    Word i of a row of 64 is renamed to the 8-byte place that it shares with word i + 32, or i - 32.
    """
    lanes = min(32, BANKS * 8 // size)
    wavefronts = 0
    groups = 0
    for first in range(0, 32, lanes):
        group = mask & (((1 << lanes) - 1) << first)
        if group != 0:
            groups += 1
            wavefronts += count_ways_of_rows(addresses, group)
    add_request(addresses, mask, size, wavefronts, groups, row)


@jitable
def add_words(addresses: Addresses, mask: int, size: int, row: Row) -> bool:
    """Adds a request of 4-byte words over 32 banks of 4 bytes, if `count_in_columns` can tell.

    Words in rising order within one stretch of all banks cannot meet. For others, 32 words are a
    line of 128 bytes, and a column is a bank.
    """
    if all_rise(addresses, mask) and addresses[31] - addresses[0] < np.uint64(BANKS << WORD_BITS):
        wavefronts = 1
        words = count_steps(addresses, WORD_BITS)
        row[SECTORS] += count_steps(addresses, SECTOR_BITS)
        row[LINES] += count_steps(addresses, LINE_BITS)
    else:
        words, sectors, lines, wavefronts = count_in_columns(addresses, mask, WORD_BITS, BANKS)
        if words == 0:
            return False
        row[SECTORS] += sectors
        row[LINES] += lines
    row[REQUESTS] += 1
    row[TRANSACTIONS] += wavefronts
    row[BYTES_REQUESTED] += count_lanes(mask) * size
    row[BYTES_MOVED] += words << WORD_BITS
    row[WAVEFRONTS] += wavefronts
    row[BANK_CONFLICTS] += wavefronts - 1
    return True


@jitable
def add_wavefronts(
    addresses: Addresses, mask: int, size: int, bank_bits: int, more: int, row: Row
) -> None:
    """Add a request over banks of 2^bank_bits bytes; each group takes `more` wavefronts extra.

    A group of lanes is as wide as all banks; lanes wider than a bank meet over fewer of them.
    """
    shift = bank_bits
    while (1 << shift) < size:
        shift += 1
    banks = BANKS >> (shift - bank_bits)
    wavefronts, groups = count_in_groups(addresses, mask, shift, banks, banks)
    add_request(addresses, mask, size, wavefronts + groups * more, groups, row)


@jitable
def count_in_groups(
    addresses: Addresses, mask: int, shift: int, banks: int, lanes: int
) -> tuple[int, int]:
    """Return the wavefronts of a request whose lanes go in groups of so many, over banks of
    2^shift bytes, and how many groups have a lane that is on."""
    wavefronts = 0
    groups = 0
    for first in range(0, 32, lanes):
        group = mask & (((1 << lanes) - 1) << first)
        if group != 0:
            groups += 1
            wavefronts += count_wavefronts(addresses, group, shift, banks)
    return wavefronts, groups


@jitable
def add_request(
    addresses: Addresses, mask: int, size: int, wavefronts: int, groups: int, row: Row
) -> None:
    """Add one request that takes so many wavefronts, of which it needs one for each group."""
    shift = WORD_BITS
    while (1 << shift) < size:
        shift += 1
    row[REQUESTS] += 1
    row[SECTORS] += count_distinct(addresses, mask, SECTOR_BITS)
    row[LINES] += count_distinct(addresses, mask, LINE_BITS)
    row[TRANSACTIONS] += wavefronts
    row[BYTES_REQUESTED] += count_lanes(mask) * size
    row[BYTES_MOVED] += count_distinct(addresses, mask, shift) << shift
    row[WAVEFRONTS] += wavefronts
    row[BANK_CONFLICTS] += wavefronts - groups


@jitable
def count_wavefronts(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """Return the most different words of 2^shift bytes that lanes want of any one of the banks.

    Words in rising order within one stretch of all banks cannot meet: one pass settles those.
    """
    bits = np.uint64(shift)
    first = addresses[first_lane(mask)] >> bits
    end = first + np.uint64(banks)
    previous = first
    for lane in range(32):
        if (mask >> lane) & 1:
            word = addresses[lane] >> bits
            if word < previous or word >= end:
                return count_ways(addresses, mask, shift, banks)
            previous = word
    return 1


@jitable
def ways_in_loops(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """Returns the same as `count_ways`, in loops without branches."""
    bits = np.uint64(shift)
    bank_mask = np.uint64(banks - 1)
    firsts = first_lanes(addresses, mask, shift)
    most = 0
    for lane in range(32):
        word = addresses[lane] >> bits
        ways = 0
        for other in range(32):
            meets = (addresses[other] >> bits ^ word) & bank_mask == np.uint64(0)
            ways += ((firsts >> other) & 1) & meets
        most = max(most, ways & -((firsts >> lane) & 1))
    return int(most)


def count_ways(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """Returns the same as `count_wavefronts`, for words in any order."""
    words = set(stretches_of(addresses, mask, shift))
    return max(Counter(word % banks for word in words).values(), default=0)


def _ways_of_rows_in_loops(addresses: Addresses, mask: int) -> int:
    bank_mask = np.uint64((BANKS - 1) << WORD_BITS)
    row_bits = np.uint64(8)
    firsts = 0
    for lane in range(32):
        known = 0
        for earlier in range(lane):
            difference = addresses[earlier] ^ addresses[lane]
            same = (difference & bank_mask == np.uint64(0)) & (
                difference >> row_bits == np.uint64(0)
            )
            known |= ((mask >> earlier) & 1) & same
        firsts |= ((mask >> lane) & 1 & ~known) << lane
    most = 0
    for lane in range(32):
        ways = 0
        for other in range(32):
            meets = (addresses[other] ^ addresses[lane]) & bank_mask == np.uint64(0)
            ways += ((firsts >> other) & 1) & meets
        most = max(most, ways & -((firsts >> lane) & 1))
    return int(most)


@compiled_as(_ways_of_rows_in_loops)
def count_ways_of_rows(addresses: Addresses, mask: int) -> int:
    """Return the most different rows of 64 words that lanes want of any one of the 32 banks.

    A lane counts for all that want the same place: the same row and bank.
    """
    words = stretches_of(addresses, mask, WORD_BITS)
    places = {(word >> 6, word % BANKS) for word in words}
    return max(Counter(bank for _, bank in places).values(), default=0)
