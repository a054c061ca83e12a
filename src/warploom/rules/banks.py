"""What a warp-wide access to shared memory costs.

From compute capability 5.0 on, shared memory has 32 banks of 4 bytes. Lanes on one word are served
together; different words of one bank take a wavefront each. Accesses of 8 bytes go by half-warps,
of 16 by quarter-warps (CUDA C++ Programming Guide 12.9, "Compute Capability 5.x", "Shared Memory").

As accesses are aligned, lanes of 8 bytes meet in a bank exactly where they meet in a pair of banks:
a group of lanes as wide as the 128 bytes of all banks, over as many banks as it has lanes.
"""

from __future__ import annotations

import numpy as np

from warploom.rules.distinct import (
    Addresses,
    Row,
    count_distinct,
    count_lanes,
    first_lane,
    jitable,
)
from warploom.rules.fields import (
    BANK_CONFLICTS,
    BYTES_MOVED,
    BYTES_REQUESTED,
    REQUESTS,
    TRANSACTIONS,
    WAVEFRONTS,
)

BANKS = 32
WORD_BITS = 2


@jitable
def count_shared(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Add what an access to shared memory costs.

    Wavefronts beyond one for each group of lanes that takes part are bank conflicts.
    """
    shift = WORD_BITS
    while (1 << shift) < size:
        shift += 1
    width = BANKS >> (shift - WORD_BITS)
    wavefronts = 0
    groups = 0
    for first in range(0, 32, width):
        group = mask & (((1 << width) - 1) << first)
        if group != 0:
            groups += 1
            wavefronts += count_wavefronts(addresses, group, shift, width)
    row[REQUESTS] += 1
    row[TRANSACTIONS] += wavefronts
    row[BYTES_REQUESTED] += count_lanes(mask) * size
    row[BYTES_MOVED] += count_distinct(addresses, mask, shift) << shift
    row[WAVEFRONTS] += wavefronts
    row[BANK_CONFLICTS] += wavefronts - groups


@jitable
def count_wavefronts(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """The most different words of 2^shift bytes that lanes want of any one of the banks.

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
def count_ways(addresses: Addresses, mask: int, shift: int, banks: int) -> int:
    """The same for any words: follows each bank from word to word."""
    bits = np.uint64(shift)
    bank_mask = np.uint64(banks - 1)
    most = 0
    while mask != 0:
        ways = 0
        leader = first_lane(mask)
        while leader >= 0:
            ways += 1
            word = addresses[leader] >> bits
            leader = -1
            for lane in range(32):
                if (mask >> lane) & 1:
                    other = addresses[lane] >> bits
                    if other == word:
                        mask ^= 1 << lane
                    elif (other ^ word) & bank_mask == np.uint64(0):
                        leader = lane
        most = max(most, ways)
    return most
