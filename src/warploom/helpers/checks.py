"""Functions by which compiled code asks about memory, written in Python that Numba compiles.

Each function takes plain pointers: `environment` is the worker's (`Slot`), `addresses` 32 unsigned
addresses, bit l of `mask` lane l. A check answers 0, or records the fault of the lowest failing
lane and answers 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.abi.environment import Slot
from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.allocations import CONSTANT, END, START, find_allocation
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
    """Returns whether every lane's access lies in one live allocation and is aligned.

    `cache` holds the bounds of the allocation that the last lane looked up.
    """
    bytes_wanted = np.uint64(size)
    for lane in range(32):
        if (mask >> lane) & 1:
            address = addresses[lane]
            kind = 0
            if address < cache[0] or address > cache[1] or cache[1] - address < bytes_wanted:
                row = find_allocation(allocations, address, environment[_ALLOCATIONS])
                end = allocations[row + END] if row >= 0 else np.uint64(0)
                if address >= end or end - address < bytes_wanted:
                    kind = OUT_OF_BOUNDS
                elif address % bytes_wanted != np.uint64(0):
                    kind = MISALIGNED
                elif write and allocations[row + CONSTANT] != 0:
                    kind = READ_ONLY
                else:
                    cache[0] = allocations[row + START]
                    cache[1] = end
            elif address % bytes_wanted != np.uint64(0):
                kind = MISALIGNED
            if kind != 0:
                record_fault(environment, kind, lane, int(np.int64(address)), size)
                return 1
    return 0


def find_bounds(address: int, write: int, environment: Any, allocations: Any, cache: Any) -> int:
    """Puts the bounds of the live allocation around an address into `cache`, unless it has them, or
    there is none, or one that is not to be written."""
    place = np.uint64(address)
    if place >= cache[0] and place < cache[1]:
        return 0
    row = find_allocation(allocations, place, environment[_ALLOCATIONS])
    if row < 0 or place >= allocations[row + END]:
        return 0
    if not (write and allocations[row + CONSTANT] != 0):
        cache[0] = allocations[row + START]
        cache[1] = allocations[row + END]
    return 0


def check_span(addresses: Any, mask: int, size: int, limit: int, environment: Any) -> int:
    """Returns whether every lane's access lies below `limit` and is aligned."""
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
    places: Any, mask: int, size: int, own: int, live: int, environment: Any,
    shared_bytes: int, stride: int,
) -> int:  # fmt: skip
    """Returns whether every lane's address of shared memory leads into a block of the cluster that
    is there (`simt.clusters.cluster_offset`); puts places behind the beginning of the cluster's
    instead."""
    for lane in range(32):
        if (mask >> lane) & 1:
            address = places[lane]
            found = cluster_offset(address, size, own, live, shared_bytes, stride)
            if found == NO_SUCH_BLOCK:
                rank = (address >> BLOCK_BITS) - 1
                record_fault(environment, NO_BLOCK, lane, rank, size)
                return 1
            if found < 0:
                within = address & ((1 << BLOCK_BITS) - 1)
                record_fault(environment, OUT_OF_BOUNDS, lane, within, size)
                return 1
            places[lane] = found
    return 0


@jitable
def record_fault(environment: Any, kind: int, lane: int, address: int, size: int) -> None:
    environment[_FAULT_KIND] = kind
    environment[_FAULT_LANE] = lane
    environment[_FAULT_ADDRESS] = address
    environment[_FAULT_SIZE] = size
