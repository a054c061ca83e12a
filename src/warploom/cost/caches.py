"""Caches, counted: hits and misses of a warp's access, sector by sector.

Each cache is set-associative with lines of 128 bytes in 4 sectors of 32; a miss brings one sector.
The line replaced is the one least recently used. A request looks up its sectors in the order of the
lowest lane that wants each; requests come in the order in which the machine executes them, block
b's on SM b modulo the number of SMs. Loads that find nothing in the first cache go on to L2; stores
and atomics go to L2 always, and what L1 holds of a sector they change is dropped or kept as
`path_of` says. Sizes are the device's own; ways, and that a line is 128 bytes, are estimates for
caches other than L1 and L2.

All caches of a device are one array of int64: for each level four words (where it begins, sets,
ways, words of one SM's), the clock, the number of SMs, the address that counts as 0, so that a run
does not depend on where the host's memory lies; then three words for each line: its number
plus 1, a mask of sectors, when it was used last.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import L1_HITS, L1_MISSES, L2_HITS, L2_MISSES
from warploom.simt.lane_counts import Addresses, Row, first_lane, jitable, without_stretch

L1, TEXTURE, CONSTANT, L2 = range(4)
LEVELS = 4
CLOCK = 4 * LEVELS
SMS = CLOCK + 1
ORIGIN = SMS + 1
HEADER_WORDS = ORIGIN + 1
ENTRY_WORDS = 3

LOCAL_BASE = 1 << 56
"""Where local memory stands among the lines: that of each block's warps one after the other."""

THROUGH_L1, THROUGH_TEXTURE, THROUGH_CONSTANT = 1, 2, 4
DROPS_L1, WRITES, BY_WORDS = 8, 16, 32
"""What a path (a sum of these) does: the first cache that it goes through, whether it drops sectors
from L1, goes to L2 in any case, and steps through the words of local memory."""


@jitable
def count_cached(
    addresses: Addresses,
    mask: int,
    size: int,
    row: Row,
    caches: Row,
    path: int,
    block: int,
    offset: int,
) -> int:
    """Look up an access of a block and count hits and misses; `offset` is added to addresses."""
    sm = block % caches[SMS]
    words = max(1, size // 4) if path & BY_WORDS else 1
    origin = 0 if path & BY_WORDS else caches[ORIGIN]
    for word in range(words):
        left = mask
        while left != 0:
            leader = first_lane(left)
            address = int(np.int64(addresses[leader])) - origin + offset + 128 * word
            look_up_sector(caches, sm, address >> 7, 1 << ((address >> 5) & 3), path, row)
            left = without_stretch(addresses, left, 5, leader)
    return 0


@jitable
def look_up_sector(caches: Row, sm: int, line: int, sector: int, path: int, row: Row) -> None:
    """Look one sector up on its path, down to L2 where it must."""
    if path & DROPS_L1:
        drop(caches, sm, line, sector)
    first = -1
    if path & THROUGH_L1:
        first = L1
    elif path & THROUGH_TEXTURE:
        first = TEXTURE
    elif path & THROUGH_CONSTANT:
        first = CONSTANT
    hit = 0
    if first >= 0 and caches[4 * first + 1] > 0:
        hit = touch(caches, first, sm, line, sector)
        row[L1_HITS] += hit
        row[L1_MISSES] += 1 - hit
    if caches[4 * L2 + 1] > 0 and (hit == 0 or path & WRITES):
        hit = touch(caches, L2, 0, line, sector)
        row[L2_HITS] += hit
        row[L2_MISSES] += 1 - hit


@jitable
def touch(caches: Row, level: int, sm: int, line: int, sector: int) -> int:
    """Use a sector of a cache, and bring it in where it was not: 1 for a hit, 0 for a miss."""
    ways = caches[4 * level + 2]
    start = first_entry(caches, level, sm, line)
    caches[CLOCK] += 1
    oldest = start
    for way in range(ways):
        entry = start + ENTRY_WORDS * way
        if caches[entry] == line + 1:
            found = 1 if caches[entry + 1] & sector else 0
            caches[entry + 1] |= sector
            caches[entry + 2] = caches[CLOCK]
            return found
        if caches[entry + 2] < caches[oldest + 2]:
            oldest = entry
    caches[oldest] = line + 1
    caches[oldest + 1] = sector
    caches[oldest + 2] = caches[CLOCK]
    return 0


@jitable
def drop(caches: Row, sm: int, line: int, sector: int) -> None:
    """Take a sector out of an SM's L1."""
    if caches[4 * L1 + 1] > 0:
        start = first_entry(caches, L1, sm, line)
        for way in range(caches[4 * L1 + 2]):
            entry = start + ENTRY_WORDS * way
            if caches[entry] == line + 1:
                caches[entry + 1] &= ~sector


@jitable
def first_entry(caches: Row, level: int, sm: int, line: int) -> int:
    """Returns where the set of a line begins."""
    each = caches[4 * level + 2] * ENTRY_WORDS
    in_set = (line % caches[4 * level + 1]) * each
    return int(caches[4 * level] + sm * caches[4 * level + 3] + in_set)
