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

All caches of a device are one array of int64: a `CacheHierarchy`, then a `CacheEntry` for each
line.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import Addresses, Ints, first_lane, jitable, without_segment
from warploom.simt.records import WordRecord


class CacheLevel(WordRecord):
    """The caches of one level: one for each SM, or L2."""

    first_entry: int  # the index of the first word of its entries
    sets: int  # 0 without such a cache
    ways: int  # the lines of a set
    words_per_sm: int  # the words of the entries of one SM; of L2, which all SMs share, of all


class CacheHierarchy(WordRecord):
    """The begin of the array, which the entries of all levels follow."""

    l1: CacheLevel
    texture: CacheLevel
    constant: CacheLevel
    l2: CacheLevel
    clock: int  # the number of look-ups so far
    sms: int
    # The address that counts as 0: counts do not depend on where the host allocated the memory.
    origin: int


class CacheEntry(WordRecord):
    """A line of a cache."""

    line: int  # 1 plus the line's number (0: empty)
    valid: int  # the mask of valid sectors
    last_use: int  # the `clock` of the last use


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
    further, else the sector of the first byte, relative to `origin`. `offset` is added to the
    addresses. Returns 0, as compiled code expects a result."""
    hierarchy = CacheHierarchy(caches, 0)
    sm = block % hierarchy.sms
    # Elsewhere an aligned access lies in one sector; in local memory its words are 128 bytes apart.
    words = max(1, size // 4) if path & BY_WORDS else 1
    origin = 0 if path & BY_WORDS else hierarchy.origin
    for word in range(words):
        left = mask
        while left != 0:
            leader = first_lane(left)
            address = int(np.int64(addresses[leader])) - origin + offset + 128 * word
            sector = 1 << ((address >> 5) & 3)
            look_up_sector(hierarchy, sm, address >> 7, sector, path, record)
            # Lanes of the same sector are one look-up, of which the leader's is the position.
            left = without_segment(addresses, left, 5, leader)
    return 0


@jitable
def look_up_sector(
    caches: CacheHierarchy, sm: int, line: int, sector: int, path: int, record: Ints
) -> None:
    """Looks up one sector in the first cache of its path (L1, texture or constant cache, or none)
    and, after a miss or for a write, in L2. Counts hits and misses of the first cache in the
    record's `l1_hits` and `l1_misses`, of L2 in `l2_hits` and `l2_misses`. If the path drops lines
    from L1, first invalidates the sector there. Caches of size 0 are skipped. `line` is the address
    >> 7, `sector` the sector's bit in its line."""
    costs = CostRecord(record, 0)
    if path & DROPS_L1:
        drop(caches.l1, sm, line, sector)
    first_level = caches.l2
    if path & THROUGH_L1:
        first_level = caches.l1
    elif path & THROUGH_TEXTURE:
        first_level = caches.texture
    elif path & THROUGH_CONSTANT:
        first_level = caches.constant
    hit = 0
    if first_level.at != caches.l2.at and first_level.sets > 0:
        hit = access_cache(first_level, sm, line, sector)
        costs.l1_hits += hit
        costs.l1_misses += 1 - hit
    if caches.l2.sets > 0 and (hit == 0 or path & WRITES):
        hit = access_cache(caches.l2, 0, line, sector)
        costs.l2_hits += hit
        costs.l2_misses += 1 - hit


@jitable
def access_cache(level: CacheLevel, sm: int, line: int, sector: int) -> int:
    """Looks up a sector in the cache of a level (its `sets` are not 0) of an SM (0 for L2),
    advances the clock, and marks the line as used now. On a miss, fetches the sector; if its line
    is missing, that replaces the least recently used line of the set, with no other sector valid.
    Returns 1 for a hit, 0 for a miss. `line` is the address >> 7, `sector` the sector's bit in its
    line."""
    caches = CacheHierarchy(level, 0)
    # One clock for all caches: only the order of uses within a set is compared.
    caches.clock += 1
    oldest = first_entry(level, sm, line)
    start = oldest.at
    for way in range(level.ways):
        entry = CacheEntry(level, start, way)
        if entry.line == line + 1:
            hit = 1 if entry.valid & sector else 0
            entry.valid |= sector
            entry.last_use = caches.clock
            return hit
        # An empty line has never been used (0), so that it is taken before any other.
        if entry.last_use < oldest.last_use:
            oldest = entry
    oldest.line = line + 1
    oldest.valid = sector
    oldest.last_use = caches.clock
    return 0


@jitable
def drop(l1: CacheLevel, sm: int, line: int, sector: int) -> None:
    """Invalidates a sector of a line in the L1 of an SM, if it is there; nothing without L1. `line`
    is the address >> 7, `sector` the sector's bit in its line."""
    if l1.sets > 0:
        start = first_entry(l1, sm, line).at
        for way in range(l1.ways):
            entry = CacheEntry(l1, start, way)
            if entry.line == line + 1:
                entry.valid &= ~sector


@jitable
def first_entry(level: CacheLevel, sm: int, line: int) -> CacheEntry:
    """Returns the first entry of the set that a line (address >> 7) maps to, the line modulo the
    sets, in the cache of a level of SM `sm`; `sm` is 0 for L2, which all SMs share. The cache must
    exist (`sets` not 0)."""
    sm_entries = level.first_entry + sm * level.words_per_sm
    return CacheEntry(level, sm_entries, line % level.sets * level.ways)
