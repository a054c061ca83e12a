"""Counts the wavefronts and bank conflicts of a warp-wide access to shared memory, from compute
capability 2.0 on.

Lanes on one word are served together; different words of one bank need a wavefront each. The width
of a bank, and how many lanes are served together, differ (CUDA C++ Programming Guide 12.9, "Shared
Memory" of each compute capability; CUDA C Programming Guide 4.2, F.4.3 and F.5.3):

- 5.0 and later: 32 banks of 4 bytes. Accesses of 8 bytes are served by half-warps, of 16 bytes by
  quarter-warps; by more lanes if pairs of lanes load from one address (`cost.paired_banks`).
- 3.x: 32 banks of 8 bytes, so twice as many lanes are served together. In the mode of 4 bytes, a
  bank serves words i and i + 32 of an aligned row of 64 words at once.
- 2.x: as 5.0, but a quarter-warp of 16 bytes needs one wavefront more than its words do.

    5.0, 4-byte words at 0, 8, 16, ..., 248: two words of each even bank   ->   2 wavefronts

As accesses are aligned, wide accesses conflict in a bank exactly if their first words do.
Before 2.0, see `cost.half_warp_banks`. `ldmatrix` and `stmatrix` cost what an access of 16 bytes
does in the lanes whose addresses they use: rows of 16 bytes, 8 per matrix (PTX ISA, ldmatrix).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from warploom.cost.coalescing import LINE_BITS, SECTOR_BITS
from warploom.cost.fields import CostRecord
from warploom.cost.overlap import count_in_columns
from warploom.simt.lane_counts import (
    Addresses,
    Ints,
    compiled_as,
    count_distinct,
    count_lanes,
    count_rising_segments,
    first_lane,
    first_lanes,
    is_rising,
    jitable,
    segments_of,
)

BANKS = 32
WORD_BITS = 2


@jitable
def shared_32_banks(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of a store or atomic in shared memory from compute capability 5.0 on to the
    counters (`add_request`). Its wavefronts are the most distinct words of `size` bytes (at least
    4) in any bank, summed over groups of lanes: of 32 lanes for accesses of up to 4 bytes, of 16
    for 8 bytes, of 8 for 16 bytes.

    Bank conflicts are the wavefronts beyond one for each group of lanes that has an active lane.
    """
    if size > 4 or not add_words(addresses, mask, size, record):
        add_wavefronts(addresses, mask, size, WORD_BITS, 0, record)


@jitable
def shared_32_banks_quarters(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to shared memory on 2.x: those of `shared_32_banks`, and with 16
    bytes per lane one wavefront more, a conflict, for each quarter-warp with an active lane."""
    if size > 4 or not add_words(addresses, mask, size, record):
        add_wavefronts(addresses, mask, size, WORD_BITS, 1 if size == 16 else 0, record)


@jitable
def shared_wide_banks(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to shared memory on 3.x, in the bank mode of 8 bytes. Its
    wavefronts are the most distinct words in any of 32 banks of 8 bytes, summed over groups of
    lanes: of 32 lanes for accesses of up to 8 bytes, of 16 lanes for 16 bytes."""
    add_wavefronts(addresses, mask, size, WORD_BITS + 1, 0, record)


@jitable
def shared_wide_banks_of_words(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to shared memory on 3.x, in the bank mode of 4 bytes. Its
    wavefronts are the most distinct rows of 64 words in any of 32 banks, as words i and i + 32 of a
    row share a bank and are served together. They are summed over groups of lanes: of 32 lanes for
    accesses of up to 8 bytes, of 16 lanes for 16 bytes. Only the first word of each lane counts."""
    lanes = min(32, BANKS * 8 // size)
    wavefronts = 0
    groups = 0
    for group_start in range(0, 32, lanes):
        group = mask & (((1 << lanes) - 1) << group_start)
        if group != 0:
            groups += 1
            wavefronts += count_row_ways(addresses, group)
    add_request(addresses, mask, size, wavefronts, groups, record)


@jitable
def add_words(addresses: Addresses, mask: int, size: int, record: Ints) -> bool:
    """Adds the costs of a request of up to 4 bytes per lane over 32 banks of 4 bytes to an access
    record: requests, wavefronts, transactions, bank conflicts, bytes requested and moved (4 for
    each distinct word), sectors and lines. Rising words of 32 active lanes within 128 bytes (all
    banks) cannot conflict. Others are counted by `count_in_columns`, where a column is a bank and a
    group of 32 words a line. Returns False, and adds nothing, if the lanes are too distant for it.
    """
    costs = CostRecord(record, 0)
    if is_rising(addresses, mask) and addresses[31] - addresses[0] < np.uint64(BANKS << WORD_BITS):
        wavefronts = 1
        words = count_rising_segments(addresses, WORD_BITS)
        costs.sectors += count_rising_segments(addresses, SECTOR_BITS)
        costs.lines += count_rising_segments(addresses, LINE_BITS)
    else:
        words, sectors, lines, wavefronts = count_in_columns(addresses, mask, WORD_BITS, BANKS)
        if words == 0:
            return False
        costs.sectors += sectors
        costs.lines += lines
    costs.requests += 1
    costs.transactions += wavefronts
    costs.bytes_requested += count_lanes(mask) * size
    costs.bytes_moved += words << WORD_BITS
    costs.wavefronts += wavefronts
    costs.bank_conflicts += wavefronts - 1
    return True


@jitable
def add_wavefronts(
    addresses: Addresses, mask: int, size: int, bank_bits: int, more: int, record: Ints
) -> None:
    """Adds the costs of a request over 32 banks of 2^bank_bits bytes; each group of lanes needs
    `more` extra wavefronts.

    A group has as many lanes as fill all banks. An access wider than a bank is counted as one word
    over correspondingly fewer, wider banks."""
    shift = bank_bits
    while (1 << shift) < size:
        shift += 1
    # A word of 2^shift bytes spans several banks, so as many fewer words are served at once.
    banks = BANKS >> (shift - bank_bits)
    wavefronts, groups = count_in_groups(addresses, mask, shift, banks, banks)
    add_request(addresses, mask, size, wavefronts + groups * more, groups, record)


@jitable
def count_in_groups(
    addresses: Addresses, mask: int, shift: int, banks: int, lanes: int
) -> tuple[int, int]:
    """Returns the wavefronts of a request that is served in groups of `lanes` lanes over `banks`
    banks of 2^shift bytes, and the number of groups with an active lane."""
    wavefronts = 0
    groups = 0
    for group_start in range(0, 32, lanes):
        group = mask & (((1 << lanes) - 1) << group_start)
        if group != 0:
            groups += 1
            wavefronts += count_wavefronts(addresses, group, shift, banks)
    return wavefronts, groups


@jitable
def add_request(
    addresses: Addresses, mask: int, size: int, wavefronts: int, groups: int, record: Ints
) -> None:
    """Adds one request to the counters `requests`, `sectors`, `lines`, `bytes_requested` and
    `bytes_moved` (distinct words of 4 bytes, or of `size` if larger), `wavefronts` to `wavefronts`
    and `transactions`, and to `bank_conflicts` those beyond one for each of the `groups` of lanes
    that are served together."""
    costs = CostRecord(record, 0)
    shift = WORD_BITS
    while (1 << shift) < size:
        shift += 1
    costs.requests += 1
    costs.sectors += count_distinct(addresses, mask, SECTOR_BITS)
    costs.lines += count_distinct(addresses, mask, LINE_BITS)
    costs.transactions += wavefronts
    costs.bytes_requested += count_lanes(mask) * size
    costs.bytes_moved += count_distinct(addresses, mask, shift) << shift
    costs.wavefronts += wavefronts
    costs.bank_conflicts += wavefronts - groups


@jitable
def count_wavefronts(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """Returns the wavefronts of a group of lanes (`mask`, not 0): the largest number of distinct
    words of 2^shift bytes in any one bank.

    Rising words within a span of all banks cannot conflict, so one pass over the lanes suffices.
    """
    bits = np.uint64(shift)
    first_word = addresses[first_lane(mask)] >> bits
    end = first_word + np.uint64(banks)
    previous = first_word
    for lane in range(32):
        if (mask >> lane) & 1:
            # Words that rise, by less than the number of banks in all, are either equal, and served
            # together, or in different banks. Anything else is counted in full.
            word = addresses[lane] >> bits
            if word < previous or word >= end:
                return count_ways(addresses, mask, shift, banks)
            previous = word
    return 1


@jitable
def count_ways_branchless(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """Returns the result of `count_ways` in branchless loops, which Numba compiles instead of it:
    only the first lane on each word counts; for each of them, how many others share its bank."""
    bits = np.uint64(shift)
    bank_mask = np.uint64(banks - 1)
    firsts = first_lanes(addresses, mask, shift)
    most = 0
    for lane in range(32):
        word = addresses[lane] >> bits
        ways = 0
        for compared in range(32):
            same_bank = (addresses[compared] >> bits ^ word) & bank_mask == np.uint64(0)
            ways += ((firsts >> compared) & 1) & same_bank
        # -1 is a mask of all bits, -0 of none: lanes that repeat a word do not count.
        most = max(most, ways & -((firsts >> lane) & 1))
    return int(most)


def count_ways(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """Returns the most distinct words of 2^shift bytes in any one of `banks` banks, for lanes in
    any order: n for an n-way bank conflict, 0 without active lanes."""
    # A set: lanes on one word are served together and do not conflict.
    words = set(segments_of(addresses, mask, shift))
    return max(Counter(word % banks for word in words).values(), default=0)


def _count_row_ways_branchless(addresses: Addresses, mask: int) -> int:
    """Returns the largest number of distinct rows of 64 words (256 bytes) in any of the 32 banks
    that lanes of `mask` access, as `count_row_ways` does; Numba compiles this in its stead.
    `addresses` are 32 byte addresses. Its loops have no branches, so that LLVM vectorizes them."""
    bank_mask = np.uint64((BANKS - 1) << WORD_BITS)
    row_bits = np.uint64(8)  # rows of 64 words
    firsts = 0
    for lane in range(32):
        repeated = 0
        for earlier in range(lane):
            difference = addresses[earlier] ^ addresses[lane]
            same = (difference & bank_mask == np.uint64(0)) & (
                difference >> row_bits == np.uint64(0)
            )
            repeated |= ((mask >> earlier) & 1) & same
        firsts |= ((mask >> lane) & 1 & ~repeated) << lane
    most = 0
    for lane in range(32):
        ways = 0
        for compared in range(32):
            same_bank = (addresses[compared] ^ addresses[lane]) & bank_mask == np.uint64(0)
            ways += ((firsts >> compared) & 1) & same_bank
        # -1 is a mask of all bits, -0 of none: lanes that repeat a word do not count.
        most = max(most, ways & -((firsts >> lane) & 1))
    return int(most)


@compiled_as(_count_row_ways_branchless)
def count_row_ways(addresses: Addresses, mask: int) -> int:
    """Returns the largest number of distinct rows of 64 words that lanes access in any one of the
    32 banks. Lanes with the same row and bank are served together."""
    words = segments_of(addresses, mask, WORD_BITS)
    row_banks = {(word >> 6, word % BANKS) for word in words}
    return max(Counter(bank for _, bank in row_banks).values(), default=0)
