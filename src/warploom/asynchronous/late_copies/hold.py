"""Keeps copies for later: before they are done, and after."""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.late_copies.complete import complete_oldest
from warploom.asynchronous.late_copies.entries import (
    BARRIER,
    CAPACITY,
    COPY,
    COUNT,
    DIRECTION_BITS,
    DUE,
    GROUP_END,
    GROUPS,
    HIGH_DATA,
    KIND,
    LANES,
    LOAD,
    LOW_DATA,
    MASK,
    SAVED,
    SAVED_AT,
    SAVED_BYTES,
    SEND,
    SHARED,
    SIZE,
    SOURCE,
    STORE,
    TARGET,
    TELLS,
    THREAD,
    UPDATE,
    UPDATED,
    VALUE,
    ZEROS,
    entry_at,
    row_at,
)
from warploom.asynchronous.tensors.addresses import (
    check_global,
    check_shared,
    host_address,
    shared_base,
)
from warploom.asynchronous.tensors.entries import BLOCK, FIRST_THREAD, ORIGIN, OWN_SHARED, WARP
from warploom.asynchronous.tensors.requests import (
    BARRIER_ROW,
    GLOBAL_ROW,
    SHARED_ROW,
    SIZE_ROW,
    VALUE_ROW,
)
from warploom.simt.allocations import Allocations
from warploom.simt.lane_counts import Row, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import CHANGES
from warploom.texture.texels import Memory, read_bytes

WORD = 8
"""Bytes of an mbarrier."""


@jitable
def hold_copies(
    memory: Memory, data: Row, scratch: Row, allocations: Allocations,
    plan: Row, held: Row, mask: int, what: int, groups: int,
) -> int:  # fmt: skip
    """Saves what copies of some lanes are about to write over, where they complete late; `what` is
    LOAD, STORE or SEND, or UPDATE with an operation and a type. Rows of `data`: addresses, bytes,
    zeros behind them (VALUE_ROW), mbarriers, or -1; of an UPDATE, operands (GLOBAL_ROW). Leaves out
    lanes that would fault. Returns whether there are any."""
    if mask == 0 or not completes_late(plan, int(scratch[BLOCK]), int(scratch[WARP])):
        return 0
    if held[COUNT] == CAPACITY:
        complete_oldest(memory, held)
    entry = entry_at(int(held[COUNT]))
    held[entry + KIND] = COPY
    if what & DIRECTION_BITS >= SEND:
        held[entry + KIND] = VALUE if what == SEND else UPDATED
    held[entry + MASK], held[entry + DUE] = 0, 0
    held[entry + THREAD], held[entry + GROUPS] = scratch[FIRST_THREAD], groups
    saved_at = 0
    for lane in range(LANES):
        if mask >> lane & 1:
            size = int(data[LANES * SIZE_ROW + lane] + data[LANES * VALUE_ROW + lane])
            needed = size + WORD
            if saved_at + needed <= SAVED_BYTES and prepare_lane(
                data, scratch, allocations, held, entry, lane, what
            ):
                held[row_at(entry, SAVED_AT, lane)] = saved_at
                save(memory, held, saved_at, int(held[row_at(entry, BARRIER, lane)]), WORD)
                save(memory, held, saved_at + WORD, int(held[row_at(entry, TARGET, lane)]), size)
                held[entry + MASK] |= 1 << lane
                saved_at += needed
    return int(held[entry + MASK] != 0)


@jitable
def prepare_lane(
    data: Row, scratch: Row, allocations: Allocations,
    held: Row, entry: int, lane: int, what: int,
) -> bool:  # fmt: skip
    """Fills a lane's words of an entry; returns whether its copy may be done."""
    shared, other = int(data[LANES * SHARED_ROW + lane]), int(data[LANES * GLOBAL_ROW + lane])
    size, zeros = int(data[LANES * SIZE_ROW + lane]), int(data[LANES * VALUE_ROW + lane])
    barrier = int(data[LANES * BARRIER_ROW + lane])
    if check_shared(scratch, shared, size + zeros) != 0:
        return False
    writes = what == STORE
    updates = what & DIRECTION_BITS == UPDATE
    touches = what != SEND and not updates and size > 0
    if touches and check_global(scratch, allocations, other, size, writes) != 0:
        return False
    if barrier >= 0 and check_shared(scratch, barrier, WORD) != 0:
        return False
    here = host_address(scratch, shared)
    held[entry + SHARED] = shared_base(scratch, shared)
    held[row_at(entry, SOURCE, lane)] = other if what == LOAD else here
    held[row_at(entry, TARGET, lane)] = other if what == STORE else here
    if updates:
        held[row_at(entry, SOURCE, lane)], held[row_at(entry, LOW_DATA, lane)] = what, other
    held[row_at(entry, SIZE, lane)], held[row_at(entry, ZEROS, lane)] = size, zeros
    held[row_at(entry, TELLS, lane)] = size
    held[row_at(entry, BARRIER, lane)] = host_address(scratch, barrier) if barrier >= 0 else 0
    return True


@jitable
def save(memory: Memory, held: Row, saved_at: int, address: int, size: int) -> None:
    """Saves bytes from an address on; nothing from address 0."""
    if address != 0:
        for place in range(size):
            held[SAVED + saved_at + place] = memory[address - ORIGIN + place]


@jitable
def put_back(memory: Memory, held: Row, saved_at: int, address: int, size: int) -> None:
    """Writes saved bytes back."""
    if address != 0:
        for place in range(size):
            memory[address - ORIGIN + place] = np.uint8(held[SAVED + saved_at + place])


@jitable
def defer_copies(memory: Memory, plan: Row, held: Row) -> int:
    """Puts back what the copies of the last `hold_copies` have written over: they complete
    later."""
    entry = entry_at(int(held[COUNT]))
    for lane in range(LANES):
        if held[entry + MASK] >> lane & 1 and held[entry + KIND] == VALUE:
            target = int(held[row_at(entry, TARGET, lane)]) - ORIGIN
            size = int(held[row_at(entry, SIZE, lane)])
            low = min(size, 8)
            held[row_at(entry, LOW_DATA, lane)] = read_bytes(memory, target, low)
            held[row_at(entry, HIGH_DATA, lane)] = read_bytes(memory, target + 8, size - low)
    for lane in range(LANES):
        if held[entry + MASK] >> lane & 1:
            saved_at = int(held[row_at(entry, SAVED_AT, lane)])
            size = int(held[row_at(entry, SIZE, lane)] + held[row_at(entry, ZEROS, lane)])
            put_back(memory, held, saved_at, int(held[row_at(entry, BARRIER, lane)]), WORD)
            put_back(memory, held, saved_at + WORD, int(held[row_at(entry, TARGET, lane)]), size)
    held[COUNT] += 1
    plan[CHANGES] += 1
    return 0


@jitable
def end_held_group(memory: Memory, scratch: Row, held: Row, mask: int, groups: int) -> None:
    """Ends the groups of copies of some lanes of a warp."""
    if held[COUNT] == CAPACITY:
        complete_oldest(memory, held)
    entry = entry_at(int(held[COUNT]))
    held[entry + KIND], held[entry + MASK], held[entry + DUE] = GROUP_END, mask, 0
    held[entry + THREAD], held[entry + GROUPS] = scratch[FIRST_THREAD], groups
    held[entry + SHARED] = scratch[OWN_SHARED]
    for lane in range(LANES):
        held[row_at(entry, BARRIER, lane)] = 0
    held[COUNT] += 1
