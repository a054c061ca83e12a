"""Counts the cost of a warp-wide load from constant memory: its passes.

The constant cache broadcasts one address to all lanes that load from it; a request is split into as
many passes as there are distinct addresses (CUDA C++ Programming Guide 12.9, "Device Memory
Accesses", "Constant Memory"). On compute capability 1.x each half-warp is a request of its own
(CUDA C Programming Guide 4.2, 5.3.2.4).
"""

from __future__ import annotations

from warploom.cost.coalescing import LINE_BITS, SECTOR_BITS
from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import Addresses, Ints, count_distinct, count_lanes, jitable

WORD_BITS = 2


@jitable
def constant_by_warp(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of a load from constant memory on compute capability 2.0 and later
    (`add_passes`): one pass for each distinct 4-byte word, or wider element, of the warp."""
    shift = word_shift(size)
    add_passes(addresses, mask, size, count_distinct(addresses, mask, shift), record)


@jitable
def constant_by_halves(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of a load from constant memory on compute capability 1.x (`add_passes`): one
    pass for each distinct 4-byte word, or wider element, of each half-warp."""
    shift = word_shift(size)
    low, high = mask & 0xFFFF, mask & 0xFFFF0000
    passes = count_distinct(addresses, low, shift) + count_distinct(addresses, high, shift)
    add_passes(addresses, mask, size, passes, record)


@jitable
def word_shift(size: int) -> int:
    """Returns the base-2 logarithm of the bytes that one pass delivers: 4, or `size` if it is
    larger."""
    shift = WORD_BITS
    while (1 << shift) < size:
        shift += 1
    return shift


@jitable
def add_passes(addresses: Addresses, mask: int, size: int, passes: int, record: Ints) -> None:
    """Adds one request of `size` bytes per lane to the counters `requests`, `sectors`, `lines`,
    `bytes_requested`, `transactions` and `passes` (one of each a pass) and `bytes_moved`. A pass
    serves all lanes of one address: it moves one 4-byte word, or a wider element."""
    costs = CostRecord(record, 0)
    costs.requests += 1
    costs.sectors += count_distinct(addresses, mask, SECTOR_BITS)
    costs.lines += count_distinct(addresses, mask, LINE_BITS)
    costs.transactions += passes
    costs.bytes_requested += count_lanes(mask) * size
    costs.bytes_moved += passes << word_shift(size)
    costs.passes += passes
