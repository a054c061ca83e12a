"""What a warp-wide access to global or local memory costs.

From compute capability 5.0 on, a request is served in 32-byte sectors, four to a 128-byte line, and
each sector that any lane touches is one transaction (CUDA C++ Programming Guide 12.9, "Compute
Capability 5.x", "Global Memory"; Best Practices Guide, "Coalesced Access to Global Memory").
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
    without_stretch,
)
from warploom.rules.fields import (
    BYTES_MOVED,
    BYTES_REQUESTED,
    LINES,
    REQUESTS,
    SECTORS,
    TRANSACTIONS,
)

SECTOR_BITS = 5
LINE_BITS = 7
SECTOR_BYTES = 1 << SECTOR_BITS
SECTORS_PER_LINE = 1 << (LINE_BITS - SECTOR_BITS)


@jitable
def count_global(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Add what an access to global memory costs.

    An aligned access of up to 32 bytes lies in one sector, so first bytes alone tell the sectors.
    """
    sectors = count_distinct(addresses, mask, SECTOR_BITS)
    lines = count_distinct(addresses, mask, LINE_BITS)
    add_costs(sectors, lines, count_lanes(mask) * size, row)


@jitable
def count_local(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Add what an access to local memory costs.

    Local memory is laid out so that the same 4-byte word of all lanes fills one 128-byte line (CUDA
    C++ Programming Guide, "Local Memory"). Addresses are offsets in that layout, of the first word
    of each lane's access; its further words follow 128 bytes apart.
    """
    words = max(1, size // 4)
    sectors = count_distinct(addresses, mask, SECTOR_BITS)
    lines = count_distinct(addresses, mask, LINE_BITS)
    if lines == 1 or words == 1:
        sectors *= words
        lines *= words
    else:
        sectors = count_runs(addresses, mask, SECTOR_BITS, SECTORS_PER_LINE, words)
        lines = count_runs(addresses, mask, LINE_BITS, 1, words)
    add_costs(sectors, lines, count_lanes(mask) * size, row)


@jitable
def count_runs(addresses: Addresses, mask: int, shift: int, step: int, length: int) -> int:
    """How many stretches of 2^shift bytes the lanes touch: each of them `length`, `step` apart.

    A run adds all its stretches, but those that the next run above it (on the same residue of
    `step`) will add.
    """
    bits = np.uint64(shift)
    count = 0
    remaining = mask
    while remaining != 0:
        leader = first_lane(remaining)
        start = addresses[leader] >> bits
        added = length
        for lane in range(32):
            if (mask >> lane) & 1 and addresses[lane] >> bits > start:
                distance = int(np.int64((addresses[lane] >> bits) - start))
                if distance % step == 0:
                    added = min(added, distance // step)
        count += added
        remaining = without_stretch(addresses, remaining, shift, leader)
    return count


@jitable
def add_costs(sectors: int, lines: int, bytes_requested: int, row: Row) -> None:
    """Add one request of so many sectors, lines and bytes."""
    row[REQUESTS] += 1
    row[SECTORS] += sectors
    row[LINES] += lines
    row[TRANSACTIONS] += sectors
    row[BYTES_REQUESTED] += bytes_requested
    row[BYTES_MOVED] += SECTOR_BYTES * sectors
