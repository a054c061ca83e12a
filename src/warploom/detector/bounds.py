"""Finds the allocation that an access belongs to, for the race detector, and reports accesses out
of bounds, misaligned ones and stores to read-only memory."""

from __future__ import annotations

from typing import Any

from warploom.detector.layout import (
    A_CONSTANT,
    A_END,
    A_START,
    ALLOCATION_WORDS,
    ALLOCATIONS,
    ALLOCATIONS_AT,
    CONSTANT,
    E_INSTRUCTION,
    E_LIMIT,
    E_OP,
    E_SIZE,
    E_SPACE,
    GLOBAL,
    K_MISALIGNED,
    K_OUT_OF_BOUNDS,
    K_READ_ONLY,
    K_STRAYED,
    LAST_ALLOCATION,
    LOAD,
    ME_ADDRESS,
    MEM,
    SHARED,
    SITE_EXEMPT,
    SITE_WORDS,
    SITES_AT,
    TOOLS,
)
from warploom.detector.pool import report
from warploom.simt.lane_counts import jitable


@jitable
def check_bounds(state: Any, event: Any) -> int:
    """Returns the table row of the current access's allocation; 1 for shared memory, 0 for other
    spaces, which are not recorded; -1 for an access that may not be made: out of bounds,
    misaligned, a store to read-only memory, or one to CLOSED memory (no store is proven to go
    there) by an instruction that is not exempt (`is_exempt`). That is reported if MEM is on, a
    store to CLOSED memory always."""
    at, size = state[ME_ADDRESS], event[E_SIZE]
    kind, allocation = -1, 0
    if event[E_SPACE] == GLOBAL:
        allocation = find_allocation(state, at)
        if allocation < 0 or at + size > state[allocation + A_END]:
            kind = K_OUT_OF_BOUNDS
        elif event[E_OP] != LOAD and state[allocation + A_CONSTANT] == CONSTANT:
            kind = K_READ_ONLY
        elif (
            event[E_OP] != LOAD and state[allocation + A_CONSTANT] and is_exempt(state, event) == 0
        ):
            kind = K_STRAYED
    else:
        allocation = int(event[E_SPACE] == SHARED)
        if at < 0 or at + size > event[E_LIMIT]:
            kind = K_OUT_OF_BOUNDS
    if kind < 0 and at & size - 1:
        kind = K_MISALIGNED
    if kind < 0:
        return allocation
    if state[TOOLS] & MEM or kind == K_STRAYED:
        # -1: no other instruction, no other thread.
        report(state, kind, -1, -1, at, size, event[E_OP])
    return -1


@jitable
def is_exempt(state: Any, event: Any) -> int:
    """Returns whether an event's instruction is proven free of races (SITE_EXEMPT): its accesses
    are checked for faults only, and it may store to CLOSED memory."""
    return int(state[state[SITES_AT] + event[E_INSTRUCTION] * SITE_WORDS + SITE_EXEMPT])


@jitable
def find_allocation(state: Any, address: int) -> int:
    """Returns the table row (its index in the state) of the allocation that contains the byte at an
    address of global memory, -1 for none. Caches the last one found."""
    # Most accesses are to the allocation of the one before: no search.
    allocation = state[LAST_ALLOCATION]
    if allocation and state[allocation + A_START] <= address < state[allocation + A_END]:
        return int(allocation)
    # Binary search for the first allocation that begins after the address.
    low, high = 0, state[ALLOCATIONS]
    while low < high:
        middle = (low + high) // 2
        if state[state[ALLOCATIONS_AT] + middle * ALLOCATION_WORDS + A_START] <= address:
            low = middle + 1
        else:
            high = middle
    allocation = state[ALLOCATIONS_AT] + (low - 1) * ALLOCATION_WORDS
    if low == 0 or address >= state[allocation + A_END]:
        return -1
    state[LAST_ALLOCATION] = allocation
    return int(allocation)


@jitable
def allocation_of_range(state: Any, event: Any, start: int, end: int) -> int:
    """Returns the table row of the allocation that contains the bytes from `start` up to `end`, 1
    for shared memory; -1 if they are not in one, may not be written by a store, or `start` is
    misaligned. Unlike `check_bounds` reports nothing: the caller goes on lane by lane."""
    if start & event[E_SIZE] - 1:
        return -1
    if event[E_SPACE] == SHARED:
        return 1 if start >= 0 and end <= event[E_LIMIT] else -1
    allocation = find_allocation(state, start)
    if (
        allocation < 0
        or end > state[allocation + A_END]
        or (event[E_OP] != LOAD and state[allocation + A_CONSTANT])
    ):
        return -1
    return int(allocation)
