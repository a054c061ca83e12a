"""Makes asynchronous copies that each lane issues (`cp.async`, `st.async`, `red.async`, bulk copies
of the own block) complete late, for `explore`. The copy's instruction is executed as it stands,
with its faults and counts; then the bytes that it wrote are moved to an entry
(`late_copies.entries`), and the target gets its old bytes back until the entry is completed. So
there are two calls: one before the instruction, which saves the target's bytes, and one after it,
which exchanges them."""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.late_copies.complete import complete_oldest
from warploom.asynchronous.late_copies.entries import (
    CAPACITY,
    COPY,
    DIRECTION_BITS,
    GROUP_END,
    LOAD,
    SEND,
    STORE,
    UPDATE,
    UPDATED,
    VALUE,
    entry_of,
)
from warploom.asynchronous.records import (
    LANES,
    SAVED_BYTES,
    PendingCopies,
    PendingList,
    WarpIssue,
)
from warploom.asynchronous.tensors.addresses import (
    check_global,
    check_shared,
    host_address,
    shared_base,
)
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.simt.allocations import Allocations
from warploom.simt.lane_counts import Ints, jitable
from warploom.simt.product_groups import completes_late
from warploom.simt.schedule_layout import Plan
from warploom.texture.texels import Memory, read_bytes

WORD = 8
"""Bytes of an mbarrier."""


@jitable
def hold_copies(
    memory: Memory, issue_words: Ints, allocations: Allocations, schedule: Ints,
    pending_words: Ints, action: int, groups: int,
) -> int:  # fmt: skip
    """Prepares an entry after the last one of the list `pending` (of a full list, the older half is
    completed first), for the copies of the lanes that issue, and saves the bytes that execution
    will overwrite: of targets and of mbarriers. `action` is LOAD, STORE or SEND, or UPDATE with an
    operation and a type; `groups` the kind of group. The rows of `operands` in `issue`, one element
    a lane, are addresses; sizes in bytes; zeroed bytes after them (`value`); mbarriers or -1; for
    UPDATE, operands (`other`). The state of the machine in `issue` is read; its fault words may be
    overwritten.

    Lanes that would fault are left out, so that execution reports the fault, as are those for whose
    bytes `saved` has no space: they complete at issue. Returns 1 if any lane remains:
    `defer_copies` must then follow. Returns 0 if none does, or if all of the warp's copies complete
    at issue.
    """
    issue, pending = WarpIssue(issue_words, 0), PendingList(pending_words, 0)
    if issue.mask == 0 or not completes_late(Plan(schedule, 0), issue.block, issue.warp):
        return 0
    if pending.count == CAPACITY:
        complete_oldest(memory, pending)
    entry = entry_of(pending, pending.count)
    entry.kind = COPY
    if action & DIRECTION_BITS >= SEND:
        entry.kind = VALUE if action == SEND else UPDATED
    entry.mask, entry.due = 0, 0
    entry.thread, entry.groups = issue.first_thread, groups
    saved_at = 0
    for lane in range(LANES):
        if issue.mask >> lane & 1:
            size = int(issue.operands.size[lane] + issue.operands.value[lane])
            needed = size + WORD
            # A copy for which there is no space completes at issue, which is allowed, too.
            if saved_at + needed <= SAVED_BYTES and prepare_lane(
                issue, allocations, entry, lane, action
            ):
                entry.saved_at[lane] = saved_at
                save_bytes(memory, pending, saved_at, int(entry.barrier[lane]), WORD)
                save_bytes(memory, pending, saved_at + WORD, int(entry.target[lane]), size)
                entry.mask |= 1 << lane
                saved_at += needed
    return int(entry.mask != 0)


@jitable
def prepare_lane(
    issue: WarpIssue, allocations: Allocations, entry: PendingCopies, lane: int, action: int
) -> bool:
    """Fills a lane's words of the entry from its operands in `issue`, and `shared` of the whole
    entry. The words are the addresses of source and target, sizes, and the host address of the
    mbarrier or 0; for UPDATE `source` is `action`, and `low_data` the operand.

    Returns False, with the entry unchanged, if execution of the lane would fault: at its range of
    shared memory, at that of global memory (of a LOAD or STORE of at least one byte), or at the
    mbarrier. The check leaves that fault in the words for it in `issue`, where nobody reads it."""
    operands = issue.operands
    shared, operand = int(operands.shared[lane]), int(operands.opposite[lane])
    size, zeros = int(operands.size[lane]), int(operands.value[lane])
    barrier = int(operands.barrier[lane])
    if check_shared(issue, shared, size + zeros) != 0:
        return False
    writes = action == STORE
    updates = action & DIRECTION_BITS == UPDATE
    reads_or_writes = action != SEND and not updates and size > 0
    if reads_or_writes and check_global(issue, allocations, operand, size, writes) != 0:
        return False
    if barrier >= 0 and check_shared(issue, barrier, WORD) != 0:
        return False
    shared_address = host_address(issue, shared)
    entry.shared = shared_base(issue, shared)
    entry.source[lane] = operand if action == LOAD else shared_address
    entry.target[lane] = operand if action == STORE else shared_address
    if updates:
        entry.source[lane], entry.low_data[lane] = action, operand
    entry.size[lane], entry.zeros[lane] = size, zeros
    entry.tx_bytes[lane] = size
    entry.barrier[lane] = host_address(issue, barrier) if barrier >= 0 else 0
    return True


@jitable
def save_bytes(
    memory: Memory, pending: PendingList, saved_at: int, address: int, size: int
) -> None:
    """Copies the `size` bytes at a host address to the words from position `saved_at` of `saved`
    on, one per word; nothing for address 0 (no mbarrier)."""
    if address != 0:
        for offset in range(size):
            pending.saved[saved_at + offset] = memory[address - ORIGIN + offset]


@jitable
def restore_bytes(
    memory: Memory, pending: PendingList, saved_at: int, address: int, size: int
) -> None:
    """Writes the `size` bytes at position `saved_at` of `saved` back to a host address; nothing for
    address 0 (no mbarrier)."""
    if address != 0:
        for offset in range(size):
            memory[address - ORIGIN + offset] = np.uint8(pending.saved[saved_at + offset])


@jitable
def defer_copies(memory: Memory, schedule: Ints, pending_words: Ints) -> int:
    """Ends the deferral that the last `hold_copies` began, after ordinary execution of the
    instruction: saves the values that `st.async` has stored, restores the overwritten bytes of
    targets and mbarriers, and counts the entry as pending, and as a change of memory in `plan`.
    Returns 0."""
    pending = PendingList(pending_words, 0)
    entry = entry_of(pending, pending.count)
    for lane in range(LANES):
        if entry.mask >> lane & 1 and entry.kind == VALUE:
            target = int(entry.target[lane]) - ORIGIN
            size = int(entry.size[lane])
            # The stored value is in memory now; it is split as `read_bytes` reads at most 8 bytes.
            low = min(size, 8)
            entry.low_data[lane] = read_bytes(memory, target, low)
            entry.high_data[lane] = read_bytes(memory, target + 8, size - low)
    for lane in range(LANES):
        if entry.mask >> lane & 1:
            saved_at = int(entry.saved_at[lane])
            size = int(entry.size[lane] + entry.zeros[lane])
            restore_bytes(memory, pending, saved_at, int(entry.barrier[lane]), WORD)
            restore_bytes(memory, pending, saved_at + WORD, int(entry.target[lane]), size)
    pending.count += 1
    Plan(schedule, 0).changes += 1
    return 0


@jitable
def end_pending_group(
    memory: Memory, issue: WarpIssue, pending: PendingList, mask: int, groups: int
) -> None:
    """Ends the current group of copies of the lanes in `mask` (`cp.async.commit_group` and its bulk
    form), by appending an entry GROUP_END to the list; completes the older half of a full list
    first. `groups` is the kind of group."""
    if pending.count == CAPACITY:
        complete_oldest(memory, pending)
    entry = entry_of(pending, pending.count)
    entry.kind, entry.mask, entry.due = GROUP_END, mask, 0
    entry.thread, entry.groups = issue.first_thread, groups
    entry.shared = issue.own_shared
    for lane in range(LANES):
        entry.barrier[lane] = 0
    pending.count += 1
