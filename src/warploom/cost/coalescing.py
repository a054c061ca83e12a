"""Counts the requests and sectors of a warp-wide access to global or local memory, from compute
capability 2.0 on.

From 5.0 on, a request is served in 32-byte sectors, four to a 128-byte line, and each sector that
any lane touches is one transaction (CUDA C++ Programming Guide 12.9, "Compute Capability 5.x",
"Global Memory"; Best Practices Guide, "Coalesced Access to Global Memory").

    32 floats at 0, 4, 8, ...     ->   4 sectors, 1 line
    32 floats at 0, 128, 256, ... ->   32 sectors, 32 lines

On 2.x and 3.x, accesses through L1 move whole 128-byte lines, all others 32-byte segments;
accesses of 8 bytes per lane are served by half-warps and those of 16 by quarter-warps, each
separately (CUDA C Programming Guide 4.2, F.4.2). Before 2.0, see `cost.segments`.

Local memory is interleaved so that the same 4-byte word of all lanes fills one 128-byte line (CUDA
C++ Programming Guide, "Local Memory"). Its rules receive the offset in that layout of the first
word of each lane's access; the further words follow at strides of 128 bytes.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import CostRecord
from warploom.cost.overlap import count_segments
from warploom.simt.lane_counts import (
    Addresses,
    Ints,
    count_distinct,
    count_lanes,
    count_rising_segments,
    first_lane,
    is_rising,
    jitable,
    without_segment,
)

SECTOR_BITS = 5
LINE_BITS = 7
SECTOR_BYTES = 1 << SECTOR_BITS
LINE_BYTES = 1 << LINE_BITS
SECTORS_PER_LINE = LINE_BYTES // SECTOR_BYTES


@jitable
def global_by_sectors(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to global memory from compute capability 5.0 on: those of
    `count_touched`, and one 32-byte transaction, as many bytes moved, for each distinct sector.

    An aligned access of up to 32 bytes lies in one sector, so the sector of each first byte is
    enough.
    """
    costs = CostRecord(record, 0)
    before = costs.sectors
    count_touched(addresses, mask, size, record)
    move_sectors(costs.sectors - before, record)


@jitable
def global_by_segments(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to global memory on 2.x and 3.x past L1: those of
    `count_touched`, and a 32-byte transaction, as many bytes moved, for each sector that a group of
    lanes (warp, half-warp or quarter-warp by `size`) touches."""
    count_touched(addresses, mask, size, record)
    move_sectors(count_by_groups(addresses, mask, size, SECTOR_BITS), record)


@jitable
def global_by_lines(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to global memory on 2.x and 3.x through L1: those of
    `count_touched`, and a 128-byte transaction, as many bytes moved, for each line that a group of
    lanes (warp, half-warp or quarter-warp by `size`) touches."""
    count_touched(addresses, mask, size, record)
    move_lines(count_by_groups(addresses, mask, size, LINE_BITS), record)


@jitable
def local_by_sectors(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to local memory from 5.0 on: those of `count_touched_local`, and
    one 32-byte transaction, as many bytes moved, for each sector that the lanes' words touch."""
    costs = CostRecord(record, 0)
    before = costs.sectors
    count_touched_local(addresses, mask, size, record)
    move_sectors(costs.sectors - before, record)


@jitable
def local_by_lines(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to local memory on 2.x and 3.x, which L1 always caches: those of
    `count_touched_local`, and one 128-byte transaction, as many bytes moved, for each line that the
    lanes' words touch."""
    costs = CostRecord(record, 0)
    before = costs.lines
    count_touched_local(addresses, mask, size, record)
    move_lines(costs.lines - before, record)


@jitable
def count_touched(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds one request to `requests`, the distinct sectors and lines that the lanes touch to
    `sectors` and `lines`, and the bytes that they request to `bytes_requested`; transactions and
    moved bytes are left to the rule."""
    costs = CostRecord(record, 0)
    costs.requests += 1
    costs.bytes_requested += count_lanes(mask) * size
    # The most frequent pattern first, at the cost of one pass.
    if is_rising(addresses, mask):
        costs.sectors += count_rising_segments(addresses, SECTOR_BITS)
        costs.lines += count_rising_segments(addresses, LINE_BITS)
        return
    # 0 sectors: lanes too distant for 32-bit arithmetic (`overlap`); then compares 64-bit
    # addresses.
    sectors, lines = count_segments(addresses, mask, SECTOR_BITS)
    if sectors > 0:
        costs.sectors += sectors
        costs.lines += lines
    else:
        costs.sectors += count_distinct(addresses, mask, SECTOR_BITS)
        costs.lines += count_distinct(addresses, mask, LINE_BITS)


@jitable
def count_touched_local(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds one request to local memory to `requests`, `sectors`, `lines` and `bytes_requested`: its
    lanes touch `size` / 4 words each (at least one), at strides of 128 bytes; transactions and
    moved bytes are left to the rule."""
    costs = CostRecord(record, 0)
    words = max(1, size // 4)
    sectors = count_distinct(addresses, mask, SECTOR_BITS)
    lines = count_distinct(addresses, mask, LINE_BITS)
    # Lanes at one index touch the same lines for each word, so the counts multiply. Otherwise the
    # further words of one lane may fall in lines that another lane touches.
    if lines == 1 or words == 1:
        sectors *= words
        lines *= words
    else:
        sectors = count_runs(addresses, mask, SECTOR_BITS, SECTORS_PER_LINE, words)
        lines = count_runs(addresses, mask, LINE_BITS, 1, words)
    costs.requests += 1
    costs.sectors += sectors
    costs.lines += lines
    costs.bytes_requested += count_lanes(mask) * size


@jitable
def count_by_groups(addresses: Addresses, mask: int, size: int, shift: int) -> int:
    """Returns the number of segments of 2^shift bytes that are touched, summed over groups of
    lanes.

    A group has the lanes whose words fill 128 bytes: a warp for up to 4 bytes, a half-warp for 8, a
    quarter-warp for 16.
    """
    # A segment that lanes of two groups touch counts twice: each group is served by itself.
    lanes = min(32, LINE_BYTES // size)
    count = 0
    for group_start in range(0, 32, lanes):
        group = mask & (((1 << lanes) - 1) << group_start)
        if group != 0:
            count += count_distinct(addresses, group, shift)
    return count


@jitable
def count_runs(addresses: Addresses, mask: int, shift: int, step: int, length: int) -> int:
    """Returns the number of distinct segments of 2^shift bytes that the lanes touch, if each lane
    touches a run of `length` segments at a stride of `step` segments.

    A run adds all its segments, except those that overlap the next run above it on the same residue
    modulo `step`: that run adds them.
    """
    bits = np.uint64(shift)
    count = 0
    remaining = mask
    while remaining != 0:
        leader = first_lane(remaining)
        start = addresses[leader] >> bits
        # All segments of the run, less those that begin where a higher run begins: summed over
        # runs, each distinct segment is counted by the highest run that has it.
        added = length
        for lane in range(32):
            if (mask >> lane) & 1 and addresses[lane] >> bits > start:
                # Runs on different residues have no segment in common, however near they are.
                distance = int(np.int64((addresses[lane] >> bits) - start))
                if distance % step == 0:
                    added = min(added, distance // step)
        count += added
        remaining = without_segment(addresses, remaining, shift, leader)
    return count


@jitable
def move_sectors(count: int, record: Ints) -> None:
    """Adds `count` transactions of 32 bytes to `transactions`, `transactions_32` and
    `bytes_moved`."""
    costs = CostRecord(record, 0)
    costs.transactions += count
    costs.transactions_32 += count
    costs.bytes_moved += SECTOR_BYTES * count


@jitable
def move_lines(count: int, record: Ints) -> None:
    """Adds `count` transactions of 128 bytes to `transactions`, `transactions_128` and
    `bytes_moved`."""
    costs = CostRecord(record, 0)
    costs.transactions += count
    costs.transactions_128 += count
    costs.bytes_moved += LINE_BYTES * count
