"""Makes asynchronous copies that each lane issues (`cp.async`, `st.async`, `red.async`, bulk copies
of the own block) complete late, for `explore`: the copy's instruction is executed as it stands,
with its faults and counts, but the bytes that it wrote are kept in an entry
(`late_copies.entries`), and the target has its old bytes until the entry is completed. So there are
two calls: one before the instruction, which saves the target's bytes, and one after it, which
exchanges them."""

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
    THREAD,
    TX_BYTES,
    UPDATE,
    UPDATED,
    VALUE,
    ZEROS,
    entry_at,
    lane_word,
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
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import CHANGES
from warploom.texture.texels import Memory, read_bytes

WORD = 8
"""Bytes of an mbarrier."""


@jitable
def hold_copies(
    memory: Memory, data: Ints, scratch: Ints, allocations: Allocations,
    plan: Ints, pending: Ints, mask: int, action: int, groups: int,
) -> int:  # fmt: skip
    """Prepares an entry after the last one of the list `pending`, for the copies of the lanes in
    `mask`, and saves the bytes that execution will overwrite: of targets and of mbarriers. `action`
    is LOAD, STORE or SEND, or UPDATE with an operation and a type; `groups` the kind of group. Rows
    of `data`: addresses; sizes; zeroed bytes after them (VALUE_ROW); mbarriers or -1; for UPDATE,
    operands (GLOBAL_ROW). Of `scratch` only the words from ALLOCATIONS on (state of the machine)
    are read.

    Lanes that would fault are left out, so that execution reports the fault. Returns 1 if any lane
    remains: `defer_copies` must then follow. Returns 0 if none does, or if the warp's copies
    complete at issue.
    """
    if mask == 0 or not completes_late(plan, int(scratch[BLOCK]), int(scratch[WARP])):
        return 0
    if pending[COUNT] == CAPACITY:
        complete_oldest(memory, pending)
    entry = entry_at(int(pending[COUNT]))
    pending[entry + KIND] = COPY
    if action & DIRECTION_BITS >= SEND:
        pending[entry + KIND] = VALUE if action == SEND else UPDATED
    pending[entry + MASK], pending[entry + DUE] = 0, 0
    pending[entry + THREAD], pending[entry + GROUPS] = scratch[FIRST_THREAD], groups
    saved_at = 0
    for lane in range(LANES):
        if mask >> lane & 1:
            size = int(data[LANES * SIZE_ROW + lane] + data[LANES * VALUE_ROW + lane])
            needed = size + WORD
            # A copy for which there is no space completes at issue, which is allowed, too.
            if saved_at + needed <= SAVED_BYTES and prepare_lane(
                data, scratch, allocations, pending, entry, lane, action
            ):
                pending[lane_word(entry, SAVED_AT, lane)] = saved_at
                save_bytes(
                    memory, pending, saved_at, int(pending[lane_word(entry, BARRIER, lane)]), WORD
                )
                save_bytes(
                    memory,
                    pending,
                    saved_at + WORD,
                    int(pending[lane_word(entry, TARGET, lane)]),
                    size,
                )
                pending[entry + MASK] |= 1 << lane
                saved_at += needed
    return int(pending[entry + MASK] != 0)


@jitable
def prepare_lane(
    data: Ints, scratch: Ints, allocations: Allocations,
    pending: Ints, entry: int, lane: int, action: int,
) -> bool:  # fmt: skip
    """Fills a lane's words of the entry at index `entry` (addresses, sizes, mbarrier or 0), and
    SHARED of the whole entry. Returns False, with no word changed, if an access to shared or global
    memory or to the mbarrier would fault."""
    shared, operand = int(data[LANES * SHARED_ROW + lane]), int(data[LANES * GLOBAL_ROW + lane])
    size, zeros = int(data[LANES * SIZE_ROW + lane]), int(data[LANES * VALUE_ROW + lane])
    barrier = int(data[LANES * BARRIER_ROW + lane])
    if check_shared(scratch, shared, size + zeros) != 0:
        return False
    writes = action == STORE
    updates = action & DIRECTION_BITS == UPDATE
    reads_or_writes = action != SEND and not updates and size > 0
    if reads_or_writes and check_global(scratch, allocations, operand, size, writes) != 0:
        return False
    if barrier >= 0 and check_shared(scratch, barrier, WORD) != 0:
        return False
    shared_address = host_address(scratch, shared)
    pending[entry + SHARED] = shared_base(scratch, shared)
    pending[lane_word(entry, SOURCE, lane)] = operand if action == LOAD else shared_address
    pending[lane_word(entry, TARGET, lane)] = operand if action == STORE else shared_address
    if updates:
        pending[lane_word(entry, SOURCE, lane)], pending[lane_word(entry, LOW_DATA, lane)] = (
            action,
            operand,
        )
    pending[lane_word(entry, SIZE, lane)], pending[lane_word(entry, ZEROS, lane)] = size, zeros
    pending[lane_word(entry, TX_BYTES, lane)] = size
    pending[lane_word(entry, BARRIER, lane)] = host_address(scratch, barrier) if barrier >= 0 else 0
    return True


@jitable
def save_bytes(memory: Memory, pending: Ints, saved_at: int, address: int, size: int) -> None:
    """Copies the `size` bytes at a host address to the words from position `saved_at` of SAVED on,
    one per word; nothing for address 0 (no mbarrier)."""
    if address != 0:
        for offset in range(size):
            pending[SAVED + saved_at + offset] = memory[address - ORIGIN + offset]


@jitable
def restore_bytes(memory: Memory, pending: Ints, saved_at: int, address: int, size: int) -> None:
    """Writes the `size` bytes at position `saved_at` of SAVED back to a host address; nothing for
    address 0 (no mbarrier)."""
    if address != 0:
        for offset in range(size):
            memory[address - ORIGIN + offset] = np.uint8(pending[SAVED + saved_at + offset])


@jitable
def defer_copies(memory: Memory, plan: Ints, pending: Ints) -> int:
    """Ends what the last `hold_copies` began, after ordinary execution of the instruction: keeps
    the values that `st.async` has stored, restores the overwritten bytes of targets and mbarriers,
    and counts the entry as pending, and as a change of memory in `plan`. Returns 0."""
    entry = entry_at(int(pending[COUNT]))
    for lane in range(LANES):
        if pending[entry + MASK] >> lane & 1 and pending[entry + KIND] == VALUE:
            target = int(pending[lane_word(entry, TARGET, lane)]) - ORIGIN
            size = int(pending[lane_word(entry, SIZE, lane)])
            # The stored value is in memory now; it is split as `read_bytes` reads at most 8 bytes.
            low = min(size, 8)
            pending[lane_word(entry, LOW_DATA, lane)] = read_bytes(memory, target, low)
            pending[lane_word(entry, HIGH_DATA, lane)] = read_bytes(memory, target + 8, size - low)
    for lane in range(LANES):
        if pending[entry + MASK] >> lane & 1:
            saved_at = int(pending[lane_word(entry, SAVED_AT, lane)])
            size = int(
                pending[lane_word(entry, SIZE, lane)] + pending[lane_word(entry, ZEROS, lane)]
            )
            restore_bytes(
                memory, pending, saved_at, int(pending[lane_word(entry, BARRIER, lane)]), WORD
            )
            restore_bytes(
                memory, pending, saved_at + WORD, int(pending[lane_word(entry, TARGET, lane)]), size
            )
    pending[COUNT] += 1
    plan[CHANGES] += 1
    return 0


@jitable
def end_pending_group(memory: Memory, scratch: Ints, pending: Ints, mask: int, groups: int) -> None:
    """Ends the current group of copies of the lanes in `mask` (`cp.async.commit_group` and its bulk
    form), by appending an entry GROUP_END to the list; completes the older half of a full list
    first. `groups` is the kind of group."""
    if pending[COUNT] == CAPACITY:
        complete_oldest(memory, pending)
    entry = entry_at(int(pending[COUNT]))
    pending[entry + KIND], pending[entry + MASK], pending[entry + DUE] = GROUP_END, mask, 0
    pending[entry + THREAD], pending[entry + GROUPS] = scratch[FIRST_THREAD], groups
    pending[entry + SHARED] = scratch[OWN_SHARED]
    for lane in range(LANES):
        pending[lane_word(entry, BARRIER, lane)] = 0
    pending[COUNT] += 1
