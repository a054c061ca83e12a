"""Completes pending copies (`asynchronous.late_copies`): moves their bytes, signals their
mbarriers, and removes them from the list (`entries`). Both machines call these functions when a
thread waits for the copies, or their block ends."""

from __future__ import annotations

import numpy as np

from warploom.asynchronous import mbarrier
from warploom.asynchronous.late_copies.entries import (
    BULK_GROUP,
    CAPACITY,
    COPY,
    GROUP_END,
    OPERATION_AT,
    TYPE_AT,
    UPDATED,
    VALUE,
    entry_of,
)
from warploom.asynchronous.records import LANES, PendingCopies, PendingList
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.numbers import combine_integers
from warploom.simt.lane_counts import jitable
from warploom.simt.record_copies import copy_record
from warploom.texture.texels import Memory, read_bytes, write_bytes


@jitable
def complete_lane(memory: Memory, entry: PendingCopies, lane: int) -> None:
    """Completes the copy of one lane, by the kind of its entry: copies bytes and zeros those after
    them, stores a value of up to 16 bytes, or reduces an integer into memory. Then signals
    `tx_bytes` to its mbarrier, unless the address is 0 or the mbarrier is not initialized. The
    lane's bit in `mask` is left to the caller."""
    target, size = int(entry.target[lane]) - ORIGIN, entry.size[lane]
    if entry.kind == COPY:
        source = int(entry.source[lane]) - ORIGIN
        for offset in range(size):
            memory[target + offset] = memory[source + offset]
        for offset in range(size, size + entry.zeros[lane]):
            memory[target + offset] = np.uint8(0)
    elif entry.kind == VALUE:
        low = min(size, 8)
        write_bytes(memory, target, low, int(entry.low_data[lane]))
        write_bytes(memory, target + 8, size - low, int(entry.high_data[lane]))
    elif entry.kind == UPDATED:
        action, operand = int(entry.source[lane]), entry.low_data[lane]
        old, operation = read_bytes(memory, target, size), action >> OPERATION_AT & 15
        new = combine_integers(operation, old, int(operand), action >> TYPE_AT)
        write_bytes(memory, target, size, new)
    barrier = int(entry.barrier[lane])
    if barrier != 0:
        word = read_bytes(memory, barrier - ORIGIN, 8)
        if mbarrier.is_valid(word):
            word = mbarrier.complete_tx(word, int(entry.tx_bytes[lane]))
            write_bytes(memory, barrier - ORIGIN, 8, word)


@jitable
def is_phase_complete(memory: Memory, barrier: int, phase: int) -> bool:
    """Returns whether the mbarrier at host address `barrier` is in another phase than `phase`
    (modulo 4, as `mbarrier.phase` counts); False if `barrier` is 0."""
    return barrier != 0 and mbarrier.phase(read_bytes(memory, barrier - ORIGIN, 8)) != phase


@jitable
def complete_due(memory: Memory, pending: PendingList, barrier: int, phase: int) -> int:
    """Completes the copies that are marked in `due` of each entry, oldest first, clears their bits
    in `due` and `mask`, and removes entries without pending lanes from the list. Once the mbarrier
    at host address `barrier` (0: none) has left `phase`, the remaining ones stay pending. Returns
    how many copies (of one lane each) were completed; ends of groups are removed uncounted."""
    retained, completed = 0, 0
    for number in range(pending.count):
        entry = entry_of(pending, number)
        due = entry.due
        if due:
            entry.due = 0
            entry.mask &= ~due
            for lane in range(LANES):
                if due >> lane & 1 and entry.kind != GROUP_END:
                    if is_phase_complete(memory, barrier, phase):
                        entry.mask |= 1 << lane
                    else:
                        complete_lane(memory, entry, lane)
                        completed += 1
        if entry.mask:
            if retained != number:
                copy_record(entry_of(pending, retained), entry)
            retained += 1
    pending.count = retained
    return completed


@jitable
def complete_oldest(memory: Memory, pending: PendingList) -> None:
    """Completes the older half of the entries in all their lanes. Called when the list has CAPACITY
    entries, to make space."""
    for number in range(CAPACITY // 2):
        entry = entry_of(pending, number)
        entry.due = entry.mask
    # No mbarrier (0): all that are due complete, whatever the phase.
    complete_due(memory, pending, 0, 0)


@jitable
def complete_pending_of_mbarrier(memory: Memory, pending: PendingList, barrier: int) -> int:
    """Completes the pending copies that signal the mbarrier at host address `barrier`, oldest
    first, until its phase is complete; returns how many."""
    any_due = 0
    for number in range(pending.count):
        entry = entry_of(pending, number)
        for lane in range(LANES):
            if entry.mask >> lane & 1 and entry.barrier[lane] == barrier:
                entry.due |= 1 << lane
                any_due = 1
    phase = mbarrier.phase(read_bytes(memory, barrier - ORIGIN, 8))
    return complete_due(memory, pending, barrier, phase) if any_due else 0


@jitable
def complete_pending_groups(
    memory: Memory, pending: PendingList, thread: int, mask: int, groups: int, left: int
) -> int:
    """Completes the groups of each lane in `mask` except its newest `left` and copies in no group
    yet; -1 completes these as well. `thread` is the number of the warp's first thread, `groups` the
    kind of group. Returns how many copies."""
    for lane in range(LANES):
        pending.ends[lane] = 0
    # From the newest entry back: once more than `left` ends have passed, all older ones are due.
    for number in range(pending.count - 1, -1, -1):
        entry = entry_of(pending, number)
        if entry.thread == thread and entry.groups == groups:
            for lane in range(LANES):
                if entry.mask & mask & 1 << lane:
                    pending.ends[lane] += int(entry.kind == GROUP_END)
                    if pending.ends[lane] > left:
                        entry.due |= 1 << lane
    # No mbarrier (0): all that are due complete, whatever the phase.
    return int(complete_due(memory, pending, 0, 0))


@jitable
def retire_pending(memory: Memory, pending: PendingList, start: int, end: int) -> None:
    """Removes the entries of a block that has ended, whose shared memory is at host addresses from
    `start` up to `end`: completes those in bulk groups (stores to global memory), drops all others.
    """
    for number in range(pending.count):
        entry = entry_of(pending, number)
        if start <= entry.shared < end:
            if entry.groups == BULK_GROUP:
                entry.due = entry.mask
            else:
                entry.mask = 0
    # No mbarrier (0): all that are due complete, whatever the phase.
    complete_due(memory, pending, 0, 0)
