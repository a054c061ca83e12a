"""What a warp-wide read of constant memory costs.

The constant cache gives one address to all lanes that ask for it; a request is split into as many
passes as there are different addresses (CUDA C++ Programming Guide 12.9, "Device Memory Accesses",
"Constant Memory").
"""

from __future__ import annotations

from warploom.rules.distinct import Addresses, Row, count_distinct, count_lanes, jitable
from warploom.rules.fields import BYTES_MOVED, BYTES_REQUESTED, PASSES, REQUESTS, TRANSACTIONS

WORD_BITS = 2


@jitable
def count_constant(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Add what a read of constant memory costs; lanes within one 4-byte word share a pass."""
    shift = WORD_BITS
    while (1 << shift) < size:
        shift += 1
    passes = count_distinct(addresses, mask, shift)
    row[REQUESTS] += 1
    row[TRANSACTIONS] += passes
    row[BYTES_REQUESTED] += count_lanes(mask) * size
    row[BYTES_MOVED] += passes << shift
    row[PASSES] += passes
