"""Counts the requests and sectors of a warp-wide access to global or local memory, from compute
capability 2.0 on.

From 5.0 on, a request is served in 32-byte sectors, four to a 128-byte line, and each sector that
any lane touches is one transaction (CUDA C++ Programming Guide 12.9, "Compute Capability 5.x",
"Global Memory"; Best Practices Guide, "Coalesced Access to Global Memory").

On 2.x and 3.x, what goes through L1 moves whole 128-byte lines, anything else 32-byte segments;
lanes of 8 bytes are served by half-warps and those of 16 by quarter-warps, each on its own (CUDA C
Programming Guide 4.2, F.4.2). Before 2.0, see `cost.segments`.

Local memory is laid out so that the same 4-byte word of all lanes fills one 128-byte line (CUDA C++
Programming Guide, "Local Memory"). Its rules get offsets in that layout, of the first word of each
lane's access; its further words follow 128 bytes apart.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import (
    BYTES_MOVED,
    BYTES_REQUESTED,
    LINES,
    REQUESTS,
    SECTORS,
    TRANSACTIONS,
    TRANSACTIONS_32,
    TRANSACTIONS_128,
)
from warploom.cost.overlap import count_stretches
from warploom.simt.lane_counts import (
    Addresses,
    Row,
    all_rise,
    count_distinct,
    count_lanes,
    count_steps,
    first_lane,
    jitable,
    without_stretch,
)

SECTOR_BITS = 5
LINE_BITS = 7
SECTOR_BYTES = 1 << SECTOR_BITS
LINE_BYTES = 1 << LINE_BITS
SECTORS_PER_LINE = LINE_BYTES // SECTOR_BYTES


@jitable
def global_by_sectors(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Global memory from compute capability 5.0 on.

    An aligned access of up to 32 bytes lies in one sector, so first bytes alone tell the sectors.
    """
    before = row[SECTORS]
    count_touched(addresses, mask, size, row)
    move_sectors(row[SECTORS] - before, row)


@jitable
def global_by_segments(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Global memory on 2.x and 3.x without L1: 32-byte segments."""
    count_touched(addresses, mask, size, row)
    move_sectors(count_by_groups(addresses, mask, size, SECTOR_BITS), row)


@jitable
def global_by_lines(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Global memory on 2.x and 3.x through L1: 128-byte lines."""
    count_touched(addresses, mask, size, row)
    move_lines(count_by_groups(addresses, mask, size, LINE_BITS), row)


@jitable
def local_by_sectors(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Local memory where 32-byte sectors are moved."""
    before = row[SECTORS]
    count_touched_local(addresses, mask, size, row)
    move_sectors(row[SECTORS] - before, row)


@jitable
def local_by_lines(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Local memory on 2.x and 3.x, where L1 always caches it: 128-byte lines."""
    before = row[LINES]
    count_touched_local(addresses, mask, size, row)
    move_lines(row[LINES] - before, row)


@jitable
def count_touched(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Add a request with the sectors and lines that it touches and the bytes that it asks for."""
    row[REQUESTS] += 1
    row[BYTES_REQUESTED] += count_lanes(mask) * size
    if all_rise(addresses, mask):
        row[SECTORS] += count_steps(addresses, SECTOR_BITS)
        row[LINES] += count_steps(addresses, LINE_BITS)
        return
    sectors, lines = count_stretches(addresses, mask, SECTOR_BITS)
    if sectors > 0:
        row[SECTORS] += sectors
        row[LINES] += lines
    else:
        row[SECTORS] += count_distinct(addresses, mask, SECTOR_BITS)
        row[LINES] += count_distinct(addresses, mask, LINE_BITS)


@jitable
def count_touched_local(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Count the same in the layout of local memory."""
    words = max(1, size // 4)
    sectors = count_distinct(addresses, mask, SECTOR_BITS)
    lines = count_distinct(addresses, mask, LINE_BITS)
    if lines == 1 or words == 1:
        sectors *= words
        lines *= words
    else:
        sectors = count_runs(addresses, mask, SECTOR_BITS, SECTORS_PER_LINE, words)
        lines = count_runs(addresses, mask, LINE_BITS, 1, words)
    row[REQUESTS] += 1
    row[SECTORS] += sectors
    row[LINES] += lines
    row[BYTES_REQUESTED] += count_lanes(mask) * size


@jitable
def count_by_groups(addresses: Addresses, mask: int, size: int, shift: int) -> int:
    """Stretches of 2^shift bytes that are touched, group by group of lanes.

    A group is what 128 bytes of words are: a warp up to 4 bytes, a half-warp of 8, a quarter of 16.
    """
    lanes = min(32, LINE_BYTES // size)
    count = 0
    for first in range(0, 32, lanes):
        group = mask & (((1 << lanes) - 1) << first)
        if group != 0:
            count += count_distinct(addresses, group, shift)
    return count


@jitable
def count_runs(addresses: Addresses, mask: int, shift: int, step: int, length: int) -> int:
    """Returns how many stretches of 2^shift bytes the lanes touch: each of them `length`, `step`
    apart.

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
def move_sectors(count: int, row: Row) -> None:
    """Add so many transactions of 32 bytes."""
    row[TRANSACTIONS] += count
    row[TRANSACTIONS_32] += count
    row[BYTES_MOVED] += SECTOR_BYTES * count


@jitable
def move_lines(count: int, row: Row) -> None:
    """Add so many transactions of 128 bytes."""
    row[TRANSACTIONS] += count
    row[TRANSACTIONS_128] += count
    row[BYTES_MOVED] += LINE_BYTES * count
