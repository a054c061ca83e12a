"""Simulates the contents of a device's caches while a kernel runs: counts the sector hits and
misses of each warp-wide access.

Each cache is set-associative with LRU replacement and lines of 128 bytes in 4 sectors of 32; a miss
fetches one sector. A request looks up its sectors in the order of the lowest lane that accesses
each. Requests are simulated in the order in which the machine executes them; block b runs on SM b
modulo the number of SMs. Loads that miss in the first cache look up L2. Stores and atomics always
go to L2; a sector that they change is dropped from L1, or stays, as the path specifies
(`device_rules.AccessRules.path`). Sizes are the device's own; the associativity, and the line size
of 128 bytes, are estimates for caches other than L1 and L2. There is no latency and no bandwidth
here: see `warploom.timing`.

    load of 32 floats at 0, twice   ->   first: 4 misses in L1 and L2, then: 4 hits in L1

All caches of a device are one array of int64: for each level four words (index of its first line,
sets, ways, words per SM); the clock; the number of SMs; the address that counts as 0, so that
counts do not depend on where the host allocated the memory; then three words for each line.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import Addresses, Ints, first_lane, jitable, without_segment

L1, TEXTURE, CONSTANT, L2, LEVELS = range(5)

FIRST_ENTRY, SETS, WAYS, WORDS_PER_SM, LEVEL_WORDS = range(5)
"""Words of level l, from LEVEL_WORDS * l on: the index of its first entry; its sets, 0 without such
a cache; the ways (lines) of a set; the words of all entries of one SM (of L2, which all SMs share,
the words of all)."""

CLOCK, SMS, ORIGIN, HEADER_WORDS = range(LEVEL_WORDS * LEVELS, LEVEL_WORDS * LEVELS + 4)
"""Words after those of the levels: the number of look-ups so far, of SMs, and the address that
counts as 0. The entries follow."""

LINE, VALID, LAST_USE, ENTRY_WORDS = range(4)
"""Words of an entry: 1 plus the line's number (0: empty), the mask of valid sectors, the CLOCK of
the last use."""

LOCAL_BASE = 1 << 56
"""The address of local memory in the caches; the warps' local memories follow each other there."""

THROUGH_L1, THROUGH_TEXTURE, THROUGH_CONSTANT = 1, 2, 4
DROPS_L1, WRITES, BY_WORDS = 8, 16, 32
"""Flags of a path through the caches: its first cache (THROUGH_..., none: L2); DROPS_L1: sectors
are invalidated in L1; WRITES: L2 is looked up in any case; BY_WORDS: each 4-byte word of an access
is looked up in the interleaved layout of local memory."""


@jitable
def count_cached(
    addresses: Addresses,
    mask: int,
    size: int,
    record: Ints,
    caches: Ints,
    path: int,
    block: int,
    offset: int,
) -> int:
    """Looks up each distinct sector of an access in the simulated caches, in the order of the
    lowest lane that touches each, and adds hits and misses to `record`. `block` is the grid index
    of the block, which decides the SM; `path` the flags of the path: with BY_WORDS (local memory)
    each 4-byte word of `size` bytes is looked up in all lanes before the next, which is 128 bytes
    further, else the sector of the first byte, relative to ORIGIN. `offset` is added to the
    addresses. Returns 0, as compiled code expects a result."""
    sm = block % caches[SMS]
    # Elsewhere an aligned access lies in one sector; in local memory its words are 128 bytes apart.
    words = max(1, size // 4) if path & BY_WORDS else 1
    origin = 0 if path & BY_WORDS else caches[ORIGIN]
    for word in range(words):
        left = mask
        while left != 0:
            leader = first_lane(left)
            address = int(np.int64(addresses[leader])) - origin + offset + 128 * word
            look_up_sector(caches, sm, address >> 7, 1 << ((address >> 5) & 3), path, record)
            left = without_segment(addresses, left, 5, leader)
    return 0


@jitable
def look_up_sector(caches: Ints, sm: int, line: int, sector: int, path: int, record: Ints) -> None:
    """Looks up one sector in the first cache of its path (L1, texture or constant cache, or none)
    and, after a miss or for a write, in L2; counts hits and misses of the former in the record's
    `l1_hits` and `l1_misses`, of L2 in `l2_hits` and `l2_misses`. First invalidates it in L1 if the
    path drops it. Caches of size 0 are skipped. `line` is the address >> 7, `sector` the sector's
    bit in its line."""
    costs = CostRecord(record, 0)
    if path & DROPS_L1:
        drop(caches, sm, line, sector)
    first = L2
    if path & THROUGH_L1:
        first = L1
    elif path & THROUGH_TEXTURE:
        first = TEXTURE
    elif path & THROUGH_CONSTANT:
        first = CONSTANT
    hit = 0
    if first != L2 and caches[LEVEL_WORDS * first + SETS] > 0:
        hit = access_cache(caches, first, sm, line, sector)
        costs.l1_hits += hit
        costs.l1_misses += 1 - hit
    if caches[LEVEL_WORDS * L2 + SETS] > 0 and (hit == 0 or path & WRITES):
        hit = access_cache(caches, L2, 0, line, sector)
        costs.l2_hits += hit
        costs.l2_misses += 1 - hit


@jitable
def access_cache(caches: Ints, level: int, sm: int, line: int, sector: int) -> int:
    """Looks up a sector in the cache of a level (L1, TEXTURE, CONSTANT or L2; its SETS are not 0)
    of an SM (0 for L2), advances CLOCK, and marks the line as used now. On a miss, fetches the
    sector; if its line is missing, that replaces the least recently used line of the set, with no
    other sector valid. Returns 1 for a hit, 0 for a miss. `line` is the address >> 7, `sector` the
    sector's bit in its line."""
    ways = caches[LEVEL_WORDS * level + WAYS]
    start = first_entry(caches, level, sm, line)
    caches[CLOCK] += 1
    oldest = start
    for way in range(ways):
        entry = start + ENTRY_WORDS * way
        if caches[entry + LINE] == line + 1:
            hit = 1 if caches[entry + VALID] & sector else 0
            caches[entry + VALID] |= sector
            caches[entry + LAST_USE] = caches[CLOCK]
            return hit
        if caches[entry + LAST_USE] < caches[oldest + LAST_USE]:
            oldest = entry
    caches[oldest + LINE] = line + 1
    caches[oldest + VALID] = sector
    caches[oldest + LAST_USE] = caches[CLOCK]
    return 0


@jitable
def drop(caches: Ints, sm: int, line: int, sector: int) -> None:
    """Invalidates a sector of a line in the L1 of an SM, if it is there; nothing without L1. `line`
    is the address >> 7, `sector` the sector's bit in its line."""
    if caches[LEVEL_WORDS * L1 + SETS] > 0:
        start = first_entry(caches, L1, sm, line)
        for way in range(caches[LEVEL_WORDS * L1 + WAYS]):
            entry = start + ENTRY_WORDS * way
            if caches[entry + LINE] == line + 1:
                caches[entry + VALID] &= ~sector


@jitable
def first_entry(caches: Ints, level: int, sm: int, line: int) -> int:
    """Returns the index in `caches` of the first word of the set that a line (address >> 7) maps
    to, the line modulo the sets, in the cache `level` (L1 to L2) of SM `sm`; `sm` is 0 for L2,
    which all SMs share. The cache must exist (SETS not 0)."""
    at = LEVEL_WORDS * level
    set_offset = line % caches[at + SETS] * caches[at + WAYS] * ENTRY_WORDS
    return int(caches[at + FIRST_ENTRY] + sm * caches[at + WORDS_PER_SM] + set_offset)
