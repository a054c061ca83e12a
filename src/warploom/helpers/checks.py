"""Checks the addresses of an access for compiled code: bounds, alignment, read-only memory.

Helpers, compiled by Numba. `environment` is the worker's array (`abi.environment.Slot`),
`addresses` 32 unsigned addresses, bit l of `mask` lane l. A check returns 0, or records the fault
of the lowest failing lane in the environment and returns 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.abi.environment import Slot
from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.allocations import find_allocation
from warploom.simt.clusters import NO_SUCH_BLOCK, cluster_offset
from warploom.simt.lane_counts import jitable

# Numba reads these as constants; enumerations it would have to import.
_ALLOCATIONS = int(Slot.ALLOCATIONS)
_FAULT_KIND, _FAULT_LANE = int(Slot.FAULT_KIND), int(Slot.FAULT_LANE)
_FAULT_ADDRESS, _FAULT_SIZE = int(Slot.FAULT_ADDRESS), int(Slot.FAULT_SIZE)

OUT_OF_BOUNDS, MISALIGNED, READ_ONLY, TRAP = 1, 2, 3, 4
NO_BLOCK = 27
"""Kinds of fault, as `machine.faults.fault_errors.FaultKind` numbers them."""


def check_global(
    addresses: Any,
    mask: int,
    size: int,
    write: int,
    environment: Any,
    allocations: Any,
    cache: Any,
) -> int:
    """Checks that each active lane's access of `size` bytes is inside of one live allocation,
    aligned, and, if `write` is set, not to constant memory. Returns 0, or 1 with the fault of the
    lowest failing lane recorded in `environment`: its first in the order out of bounds, misaligned,
    read-only.

    `cache` is the inline cache of the instruction: the bounds (start, end) of the allocation that
    it looked up last. No other instruction uses it, as a store must not find the constant memory of
    a load. An access inside of the bounds needs only its alignment checked; any other searches the
    table of allocations and, without a fault, stores the bounds found. `size` is a power of 2.
    """
    bytes_wanted = np.uint64(size)
    for lane in range(32):
        if (mask >> lane) & 1:
            address = addresses[lane]
            kind = 0
            if address < cache[0] or address > cache[1] or cache[1] - address < bytes_wanted:
                row = find_allocation(allocations, address, environment[_ALLOCATIONS])
                end = np.uint64(row.end) if row.at >= 0 else np.uint64(0)
                if address >= end or end - address < bytes_wanted:
                    kind = OUT_OF_BOUNDS
                elif address % bytes_wanted != np.uint64(0):
                    kind = MISALIGNED
                elif write and row.constant != 0:
                    kind = READ_ONLY
                else:
                    cache[0] = row.start
                    cache[1] = end
            elif address % bytes_wanted != np.uint64(0):
                kind = MISALIGNED
            if kind != 0:
                record_fault(environment, kind, lane, int(np.int64(address)), size)
                return 1
    return 0


def find_bounds(address: int, write: int, environment: Any, allocations: Any, cache: Any) -> int:
    """Looks up the live allocation around an address, and stores its bounds in `cache`, where range
    caches read them. Returns 0.

    `cache` is left as it is if it has the bounds already, if there is no such allocation, or if
    `write` is set and the allocation is constant.
    """
    unsigned = np.uint64(address)
    if unsigned >= cache[0] and unsigned < cache[1]:
        return 0
    row = find_allocation(allocations, unsigned, environment[_ALLOCATIONS])
    if row.at < 0 or unsigned >= row.end:
        return 0
    if not (write and row.constant != 0):
        cache[0] = row.start
        cache[1] = row.end
    return 0


def check_span(addresses: Any, mask: int, size: int, limit: int, environment: Any) -> int:
    """Checks that each active lane's access of `size` bytes ends at or below `limit`, the size of
    its space, and is aligned. Returns 0, or 1 with the fault of the lowest failing lane recorded in
    `environment`: out of bounds rather than misaligned if it is both."""
    for lane in range(32):
        if (mask >> lane) & 1:
            address = addresses[lane]
            kind = 0
            if address > np.uint64(limit) or np.uint64(limit) - address < np.uint64(size):
                kind = OUT_OF_BOUNDS
            elif address % np.uint64(size) != np.uint64(0):
                kind = MISALIGNED
            if kind != 0:
                record_fault(environment, kind, lane, int(np.int64(address)), size)
                return 1
    return 0


def check_cluster(
    addresses: Any, mask: int, size: int, own: int, live: int, environment: Any,
    shared_bytes: int, stride: int,
) -> int:  # fmt: skip
    """Checks that each active lane's access to shared memory is in a live block of the cluster and
    inside of its memory, and replaces the address in `addresses` by its offset in the cluster's
    shared memory (`simt.clusters.cluster_offset`). Alignment is not checked. Returns 0, or 1, with
    the addresses of the lanes before already replaced and the fault of the lowest failing lane
    recorded: NO_BLOCK with the rank as its address, or OUT_OF_BOUNDS with the offset in the block.

    `own` is the rank of the executing block, `live` has a bit for each live rank, `shared_bytes`
    the size of a block's shared memory and `stride` the distance of two blocks' memory.
    """
    for lane in range(32):
        if (mask >> lane) & 1:
            address = addresses[lane]
            offset = cluster_offset(address, size, own, live, shared_bytes, stride)
            if offset == NO_SUCH_BLOCK:
                # The record names the rank, which the high bits hold plus 1, instead of an address.
                rank = (address >> BLOCK_BITS) - 1
                record_fault(environment, NO_BLOCK, lane, rank, size)
                return 1
            if offset < 0:
                within = address & ((1 << BLOCK_BITS) - 1)
                record_fault(environment, OUT_OF_BOUNDS, lane, within, size)
                return 1
            addresses[lane] = offset
    return 0


@jitable
def record_fault(environment: Any, kind: int, lane: int, address: int, size: int) -> None:
    """Writes a lane's fault into the environment: its kind (`FaultKind`), the lane, and address
    and size of the access; the caller has to return 1."""
    environment[_FAULT_KIND] = kind
    environment[_FAULT_LANE] = lane
    environment[_FAULT_ADDRESS] = address
    environment[_FAULT_SIZE] = size
