"""Counts the transactions of an access to global or local memory on compute capability 1.x,
half-warp by half-warp.

Source: CUDA C Programming Guide 4.2, F.3.2. Local memory follows the rule of global memory, one
4-byte word of each lane after the other.

    half-warp of floats at 128 + 4 * lane   ->   one transaction of 64 bytes
    the same at 132 + 4 * lane              ->   1.0: 16 of 32 bytes; 1.2: one of 128 bytes
"""

from __future__ import annotations

import numpy as np

from warploom.cost.coalescing import count_touched, count_touched_local
from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import Addresses, Ints, count_lanes, first_lane, jitable

HALF = 16
HALF_MASK = (1 << HALF) - 1

WORD_STRIDE = 4 * 32
"""Bytes from one word of a lane to its next in local memory, which is interleaved: a word of each
of 32 lanes."""


@jitable
def global_in_order(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to global memory on compute capability 1.0 and 1.1: one request
    with its sectors, lines and bytes (`count_touched`), and the transactions of `move_in_order`.
    These are one or two for a half-warp whose lane k accesses word k of an aligned segment, else
    one of 32 bytes for each active lane."""
    count_touched(addresses, mask, size, record)
    move_in_order(addresses, mask, size, 0, record)


@jitable
def global_by_halves(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to global memory on compute capability 1.2 and 1.3: one request
    with its sectors, lines and bytes (`count_touched`), and the transactions of `move_by_halves`:
    one for each segment that the lanes of a half-warp touch, shrunk to the used part."""
    count_touched(addresses, mask, size, record)
    move_by_halves(addresses, mask, size, 0, record)


@jitable
def local_in_order(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to local memory on compute capability 1.0 and 1.1: one request
    with the sectors, lines and bytes of all its words (`count_touched_local`). Its transactions are
    those of global memory (`move_in_order`), one 4-byte word of each lane after the other.
    """
    count_touched_local(addresses, mask, size, record)
    for word in range(max(1, size // 4)):
        move_in_order(addresses, mask, min(size, 4), WORD_STRIDE * word, record)


@jitable
def local_by_halves(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the costs of an access to local memory on compute capability 1.2 and 1.3: one request
    with the sectors, lines and bytes of all its words (`count_touched_local`). Its transactions are
    those of global memory (`move_by_halves`), one 4-byte word of each lane after the other.
    """
    count_touched_local(addresses, mask, size, record)
    for word in range(max(1, size // 4)):
        move_by_halves(addresses, mask, min(size, 4), WORD_STRIDE * word, record)


@jitable
def move_in_order(addresses: Addresses, mask: int, size: int, offset: int, record: Ints) -> None:
    """Adds the transactions of an access at `addresses + offset` by the rule of compute capability
    1.0 and 1.1.

    A half-warp in order moves its words in one transaction of 64 (4-byte words) or 128 bytes (8),
    or two of 128 (16). Otherwise, and for words of 1 or 2 bytes, it needs one transaction of 32
    bytes for each active lane, also for lanes in one segment.
    """
    for half_start in range(0, 32, HALF):
        half = mask & (HALF_MASK << half_start)
        if half != 0:
            if size >= 4 and is_in_order(addresses, half, half_start, size, offset):
                add_transactions(min(HALF * size, 128), max(1, HALF * size // 128), record)
            else:
                add_transactions(32, count_lanes(half), record)


@jitable
def is_in_order(addresses: Addresses, half: int, half_start: int, size: int, offset: int) -> bool:
    """Returns whether lane k of a half-warp, which begins at lane `half_start`, accesses word k (of
    `size` bytes, at its address plus `offset`) of one aligned segment, for all active lanes. The
    segment of 16 words is aligned to its size, at most to 128 bytes."""
    leader = first_lane(half)
    # Signed, as the words of inactive lanes before the leader may begin below address 0.
    # Where lane 0 of the half would access, by the leader's address: whether that lane is active
    # does not matter, the segment has to begin there.
    start = np.int64(addresses[leader]) + offset - (leader - half_start) * size
    if start % min(HALF * size, 128) != 0:
        return False
    for lane in range(half_start, half_start + HALF):
        if (half >> lane) & 1:
            expected = start + (lane - half_start) * size
            if np.int64(addresses[lane]) + offset != expected:
                return False
    return True


@jitable
def move_by_halves(addresses: Addresses, mask: int, size: int, offset: int, record: Ints) -> None:
    """Adds the transactions of an access at `addresses + offset` by the rule of compute capability
    1.2 and 1.3.

    Until all lanes are served: selects the segment of the lowest remaining lane (32 bytes for words
    of 1 byte, 64 for 2, 128 for more), serves every lane in it, and halves it, down to 32 bytes,
    while one half contains all used bytes.
    """
    segment = min(32 * size, 128)
    for half_start in range(0, 32, HALF):
        remaining = mask & (HALF_MASK << half_start)
        while remaining != 0:
            leader = first_lane(remaining)
            leader_address = addresses[leader] + np.uint64(offset)
            start = leader_address - leader_address % np.uint64(segment)
            lowest = np.uint64(segment)
            end = np.uint64(0)
            for lane in range(half_start, half_start + HALF):
                address = addresses[lane] + np.uint64(offset)
                if (
                    (remaining >> lane) & 1
                    and address >= start
                    and address < start + np.uint64(segment)
                ):
                    remaining ^= 1 << lane
                    lowest = min(lowest, address - start)
                    end = max(end, address - start + np.uint64(size))
            add_transactions(
                shrunk_bytes(segment, int(np.int64(lowest)), int(np.int64(end))), 1, record
            )


@jitable
def shrunk_bytes(segment: int, lowest: int, end: int) -> int:
    """Returns the bytes that are moved of a segment of `segment` bytes whose bytes from `lowest` up
    to `end` (exclusive) are used: the segment is halved, down to 32, while one half has all of
    them."""
    while segment > 32:
        half = segment // 2
        # All in the upper half, which then counts from 0; in the lower half nothing changes.
        if lowest >= half:
            lowest -= half
            end -= half
        elif end > half:
            return segment
        segment = half
    return segment


@jitable
def add_transactions(size: int, count: int, record: Ints) -> None:
    """Adds `count` transactions of `size` bytes (32, 64 or 128) to `transactions`, to
    `transactions_32`, `_64` or `_128`, and to `bytes_moved`."""
    costs = CostRecord(record, 0)
    costs.transactions += count
    costs.bytes_moved += size * count
    if size == 32:
        costs.transactions_32 += count
    elif size == 64:
        costs.transactions_64 += count
    else:
        costs.transactions_128 += count
