"""Completes late copies."""

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
    TELLS,
    THREAD,
    TYPE_AT,
    UPDATED,
    VALUE,
    ZEROS,
    entry_at,
    row_at,
)
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.numbers import combined_integers
from warploom.simt.lane_counts import Row, jitable
from warploom.texture.texels import Memory, read_bytes, write_bytes


@jitable
def complete_lane(memory: Memory, held: Row, entry: int, lane: int) -> None:
    """Completes the copy of one lane: moves its bytes, then tells the mbarrier that it names."""
    target, size = int(held[row_at(entry, TARGET, lane)]) - ORIGIN, held[row_at(entry, SIZE, lane)]
    if held[entry + KIND] == COPY:
        source = int(held[row_at(entry, SOURCE, lane)]) - ORIGIN
        for place in range(size):
            memory[target + place] = memory[source + place]
        for place in range(size, size + held[row_at(entry, ZEROS, lane)]):
            memory[target + place] = np.uint8(0)
    elif held[entry + KIND] == VALUE:
        low = min(size, 8)
        write_bytes(memory, target, low, int(held[row_at(entry, LOW_DATA, lane)]))
        write_bytes(memory, target + 8, size - low, int(held[row_at(entry, HIGH_DATA, lane)]))
    elif held[entry + KIND] == UPDATED:
        what, given = int(held[row_at(entry, SOURCE, lane)]), held[row_at(entry, LOW_DATA, lane)]
        old, operation = read_bytes(memory, target, size), what >> OPERATION_AT & 15
        new = combined_integers(operation, old, int(given), what >> TYPE_AT)
        write_bytes(memory, target, size, new)
    barrier = int(held[row_at(entry, BARRIER, lane)])
    if barrier != 0:
        word = read_bytes(memory, barrier - ORIGIN, 8)
        if mbarrier.is_valid(word):
            word = mbarrier.complete(word, int(held[row_at(entry, TELLS, lane)]))
            write_bytes(memory, barrier - ORIGIN, 8, word)


@jitable
def is_past(memory: Memory, barrier: int, phase: int) -> bool:
    """Returns whether a phase of an mbarrier is complete; False where there is none (0)."""
    return barrier != 0 and mbarrier.phase(read_bytes(memory, barrier - ORIGIN, 8)) != phase


@jitable
def complete_due(memory: Memory, held: Row, barrier: int, phase: int) -> int:
    """Completes what is due, and takes it out of the list; returns how many copies. What is due
    once an mbarrier, if it is not 0, is past a phase stays in the list."""
    kept, done = 0, 0
    for number in range(held[COUNT]):
        entry = entry_at(number)
        due = held[entry + DUE]
        if due:
            held[entry + DUE] = 0
            held[entry + MASK] &= ~due
            for lane in range(LANES):
                if due >> lane & 1 and held[entry + KIND] != GROUP_END:
                    if is_past(memory, barrier, phase):
                        held[entry + MASK] |= 1 << lane
                    else:
                        complete_lane(memory, held, entry, lane)
                        done += 1
        if held[entry + MASK]:
            if kept != number:
                for word in range(ENTRY_WORDS):
                    held[entry_at(kept) + word] = held[entry + word]
            kept += 1
    held[COUNT] = kept
    return done


@jitable
def complete_oldest(memory: Memory, held: Row) -> None:
    """Completes the older half of a full list."""
    for number in range(CAPACITY // 2):
        held[entry_at(number) + DUE] = held[entry_at(number) + MASK]
    complete_due(memory, held, 0, 0)


@jitable
def complete_at_barrier(memory: Memory, held: Row, barrier: int) -> int:
    """Completes the copies that tell an mbarrier, oldest first, until its phase is complete;
    returns how many."""
    found = 0
    for number in range(held[COUNT]):
        entry = entry_at(number)
        for lane in range(LANES):
            if held[entry + MASK] >> lane & 1 and held[row_at(entry, BARRIER, lane)] == barrier:
                held[entry + DUE] |= 1 << lane
                found = 1
    phase = mbarrier.phase(read_bytes(memory, barrier - ORIGIN, 8))
    return complete_due(memory, held, barrier, phase) if found else 0


@jitable
def complete_groups_held(
    memory: Memory, held: Row, thread: int, mask: int, groups: int, left: int
) -> int:
    """Completes the groups of lanes of a warp but the newest `left` ones of each; -1: also copies
    that are in no group yet. Returns how many copies."""
    for lane in range(LANES):
        held[ENDS + lane] = 0
    for number in range(held[COUNT] - 1, -1, -1):
        entry = entry_at(number)
        if held[entry + THREAD] == thread and held[entry + GROUPS] == groups:
            for lane in range(LANES):
                if held[entry + MASK] & mask & 1 << lane:
                    held[ENDS + lane] += int(held[entry + KIND] == GROUP_END)
                    if held[ENDS + lane] > left:
                        held[entry + DUE] |= 1 << lane
    return int(complete_due(memory, held, 0, 0))


@jitable
def retire_held(memory: Memory, held: Row, start: int, end: int) -> None:
    """Completes the bulk stores out of a stretch of shared memory that another block gets, and
    forgets the copies into it."""
    for number in range(held[COUNT]):
        entry = entry_at(number)
        if start <= held[entry + SHARED] < end:
            if held[entry + GROUPS] == BULK_GROUP:
                held[entry + DUE] = held[entry + MASK]
            else:
                held[entry + MASK] = 0
    complete_due(memory, held, 0, 0)
