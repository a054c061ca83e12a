"""Completes pending copies (`asynchronous.late_copies`): moves their bytes, signals their
mbarriers, and removes them from the list (`entries`). Both machines call these functions when a
thread waits for the copies, or their block ends."""

from __future__ import annotations

import numpy as np

from warploom.asynchronous import mbarrier
from warploom.asynchronous.late_copies.entries import (
    BARRIER,
    BULK_GROUP,
    CAPACITY,
    COPY,
    COUNT,
    DUE,
    ENDS,
    ENTRY_WORDS,
    GROUP_END,
    GROUPS,
    HIGH_DATA,
    KIND,
    LANES,
    LOW_DATA,
    MASK,
    OPERATION_AT,
    SHARED,
    SIZE,
    SOURCE,
    TARGET,
    THREAD,
    TX_BYTES,
    TYPE_AT,
    UPDATED,
    VALUE,
    ZEROS,
    entry_at,
    lane_word,
)
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.numbers import combine_integers
from warploom.simt.lane_counts import Ints, jitable
from warploom.texture.texels import Memory, read_bytes, write_bytes


@jitable
def complete_lane(memory: Memory, pending: Ints, entry: int, lane: int) -> None:
    """Completes the copy of one lane, by the KIND of its entry: copies bytes and zeros those after
    them, stores a value of up to 16 bytes, or reduces an integer into memory. Then signals TX_BYTES
    to its mbarrier, unless the address is 0 or the mbarrier is not initialised. The lane's bit in
    MASK is left to the caller."""
    target, size = (
        int(pending[lane_word(entry, TARGET, lane)]) - ORIGIN,
        pending[lane_word(entry, SIZE, lane)],
    )
    if pending[entry + KIND] == COPY:
        source = int(pending[lane_word(entry, SOURCE, lane)]) - ORIGIN
        for offset in range(size):
            memory[target + offset] = memory[source + offset]
        for offset in range(size, size + pending[lane_word(entry, ZEROS, lane)]):
            memory[target + offset] = np.uint8(0)
    elif pending[entry + KIND] == VALUE:
        low = min(size, 8)
        write_bytes(memory, target, low, int(pending[lane_word(entry, LOW_DATA, lane)]))
        write_bytes(memory, target + 8, size - low, int(pending[lane_word(entry, HIGH_DATA, lane)]))
    elif pending[entry + KIND] == UPDATED:
        action, operand = (
            int(pending[lane_word(entry, SOURCE, lane)]),
            pending[lane_word(entry, LOW_DATA, lane)],
        )
        old, operation = read_bytes(memory, target, size), action >> OPERATION_AT & 15
        new = combine_integers(operation, old, int(operand), action >> TYPE_AT)
        write_bytes(memory, target, size, new)
    barrier = int(pending[lane_word(entry, BARRIER, lane)])
    if barrier != 0:
        word = read_bytes(memory, barrier - ORIGIN, 8)
        if mbarrier.is_valid(word):
            word = mbarrier.complete_tx(word, int(pending[lane_word(entry, TX_BYTES, lane)]))
            write_bytes(memory, barrier - ORIGIN, 8, word)


@jitable
def is_phase_complete(memory: Memory, barrier: int, phase: int) -> bool:
    """Returns whether the mbarrier at host address `barrier` is in another phase than `phase`
    (modulo 4, as `mbarrier.phase` counts); False if `barrier` is 0."""
    return barrier != 0 and mbarrier.phase(read_bytes(memory, barrier - ORIGIN, 8)) != phase


@jitable
def complete_due(memory: Memory, pending: Ints, barrier: int, phase: int) -> int:
    """Completes the copies that are marked in DUE of each entry, oldest first, clears their bits in
    DUE and MASK, and removes entries without pending lanes from the list. Once the mbarrier at host
    address `barrier` (0: none) has left `phase`, the remaining ones stay pending. Returns how many
    copies (of one lane each) were completed; ends of groups are removed uncounted."""
    retained, completed = 0, 0
    for number in range(pending[COUNT]):
        entry = entry_at(number)
        due = pending[entry + DUE]
        if due:
            pending[entry + DUE] = 0
            pending[entry + MASK] &= ~due
            for lane in range(LANES):
                if due >> lane & 1 and pending[entry + KIND] != GROUP_END:
                    if is_phase_complete(memory, barrier, phase):
                        pending[entry + MASK] |= 1 << lane
                    else:
                        complete_lane(memory, pending, entry, lane)
                        completed += 1
        if pending[entry + MASK]:
            if retained != number:
                for word in range(ENTRY_WORDS):
                    pending[entry_at(retained) + word] = pending[entry + word]
            retained += 1
    pending[COUNT] = retained
    return completed


@jitable
def complete_oldest(memory: Memory, pending: Ints) -> None:
    """Completes the older half of the entries in all their lanes. Called when the list has CAPACITY
    entries, to make space."""
    for number in range(CAPACITY // 2):
        pending[entry_at(number) + DUE] = pending[entry_at(number) + MASK]
    # No mbarrier (0): all that are due complete, whatever the phase.
    complete_due(memory, pending, 0, 0)


@jitable
def complete_pending_of_mbarrier(memory: Memory, pending: Ints, barrier: int) -> int:
    """Completes the pending copies that signal the mbarrier at host address `barrier`, oldest
    first, until its phase is complete; returns how many."""
    any_due = 0
    for number in range(pending[COUNT]):
        entry = entry_at(number)
        for lane in range(LANES):
            if (
                pending[entry + MASK] >> lane & 1
                and pending[lane_word(entry, BARRIER, lane)] == barrier
            ):
                pending[entry + DUE] |= 1 << lane
                any_due = 1
    phase = mbarrier.phase(read_bytes(memory, barrier - ORIGIN, 8))
    return complete_due(memory, pending, barrier, phase) if any_due else 0


@jitable
def complete_pending_groups(
    memory: Memory, pending: Ints, thread: int, mask: int, groups: int, left: int
) -> int:
    """Completes the groups of each lane in `mask` except its newest `left` and copies in no group
    yet; -1 completes these as well. `thread` is the number of the warp's first thread, `groups` the
    kind of group. Returns how many copies."""
    for lane in range(LANES):
        pending[ENDS + lane] = 0
    # From the newest entry back: once more than `left` ends have passed, all older ones are due.
    for number in range(pending[COUNT] - 1, -1, -1):
        entry = entry_at(number)
        if pending[entry + THREAD] == thread and pending[entry + GROUPS] == groups:
            for lane in range(LANES):
                if pending[entry + MASK] & mask & 1 << lane:
                    pending[ENDS + lane] += int(pending[entry + KIND] == GROUP_END)
                    if pending[ENDS + lane] > left:
                        pending[entry + DUE] |= 1 << lane
    # No mbarrier (0): all that are due complete, whatever the phase.
    return int(complete_due(memory, pending, 0, 0))


@jitable
def retire_pending(memory: Memory, pending: Ints, start: int, end: int) -> None:
    """Removes the entries of a block that has ended, whose shared memory is at host addresses from
    `start` up to `end`: completes those in bulk groups (stores to global memory), drops all others.
    """
    for number in range(pending[COUNT]):
        entry = entry_at(number)
        if start <= pending[entry + SHARED] < end:
            if pending[entry + GROUPS] == BULK_GROUP:
                pending[entry + DUE] = pending[entry + MASK]
            else:
                pending[entry + MASK] = 0
    # No mbarrier (0): all that are due complete, whatever the phase.
    complete_due(memory, pending, 0, 0)
