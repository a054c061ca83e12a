"""Finds the allocation that an access belongs to, for the race detector, and reports accesses out
of bounds, misaligned ones and stores to read-only memory."""

from __future__ import annotations

from warploom.detector.layout import (
    CONSTANT,
    GLOBAL,
    K_MISALIGNED,
    K_OUT_OF_BOUNDS,
    K_READ_ONLY,
    K_STRAYED,
    LOAD,
    MEM,
    SHARED,
)
from warploom.detector.pool import report
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    TrackedAllocation,
)
from warploom.simt.lane_counts import jitable


@jitable
def check_bounds(state: DetectorState, event: DetectorEvent) -> int:
    """Returns the table row of the current access's allocation; 1 for shared memory, 0 for other
    spaces, which are not recorded. Returns -1 for an access that may not be made: it is out of
    bounds, misaligned, a store to read-only memory, or a store to CLOSED memory by an instruction
    that is not exempt (`is_exempt`). Reports such an access if MEM is on, a store to CLOSED memory
    always. (Memory is CLOSED if the proofs of the exempt instructions assume that no other store
    goes there.)"""
    at, size = state.current_address, event.size
    kind, allocation = -1, TrackedAllocation(state, 0)
    if event.space == GLOBAL:
        allocation = TrackedAllocation(state, find_allocation(state, at))
        if allocation.at < 0 or at + size > allocation.end:
            kind = K_OUT_OF_BOUNDS
        elif event.op != LOAD and allocation.constant == CONSTANT:
            kind = K_READ_ONLY
        elif event.op != LOAD and allocation.constant and is_exempt(state, event) == 0:
            kind = K_STRAYED
    else:
        allocation = TrackedAllocation(state, event.space == SHARED)
        if at < 0 or at + size > event.limit:
            kind = K_OUT_OF_BOUNDS
    if kind < 0 and at & size - 1:
        kind = K_MISALIGNED
    if kind < 0:
        return allocation.at
    if state.tools & MEM or kind == K_STRAYED:
        # -1: no other instruction, no other thread.
        report(state, kind, -1, -1, at, size, event.op)
    return -1


@jitable
def is_exempt(state: DetectorState, event: DetectorEvent) -> int:
    """Returns whether an event's instruction is proven free of races (`exempt`), so that it may
    store to CLOSED memory."""
    return int(InstructionSite(state, state.sites_at, event.instruction).exempt)


@jitable
def find_allocation(state: DetectorState, address: int) -> int:
    """Returns the table row (its index in the state) of the allocation that contains the byte at an
    address of global memory, -1 for none. Caches the last one found."""
    # Most accesses are to the allocation of the one before: no search.
    allocation = TrackedAllocation(state, state.last_allocation)
    if allocation.at and allocation.start <= address < allocation.end:
        return int(allocation.at)
    # Binary search for the first allocation that begins after the address.
    low, high = 0, state.allocations
    while low < high:
        middle = (low + high) // 2
        if TrackedAllocation(state, state.allocations_at, middle).start <= address:
            low = middle + 1
        else:
            high = middle
    allocation = TrackedAllocation(state, state.allocations_at, low - 1)
    if low == 0 or address >= allocation.end:
        return -1
    state.last_allocation = allocation.at
    return int(allocation.at)


@jitable
def allocation_of_range(state: DetectorState, event: DetectorEvent, start: int, end: int) -> int:
    """Returns the table row of the allocation that contains the bytes from `start` up to `end`
    (exclusive); 1 for shared memory, where `start` is an offset. Returns -1 if the bytes are not in
    one allocation, if the event is a store or an atomic and the allocation is CONSTANT or CLOSED,
    or if `start` is no multiple of the event's access size. Reports nothing, unlike `check_bounds`:
    the caller then checks the access lane by lane."""
    if start & event.size - 1:
        return -1
    if event.space == SHARED:
        return 1 if start >= 0 and end <= event.limit else -1
    allocation = TrackedAllocation(state, find_allocation(state, start))
    if allocation.at < 0 or end > allocation.end or (event.op != LOAD and allocation.constant):
        return -1
    return int(allocation.at)
