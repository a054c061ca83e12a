"""Copies that are not complete: kept in the order in which they were issued, and completed when a
thread waits for them.

A queue is an array of words, as long as one worker's launch: the number of entries, then entries
(`asynchronous.tensors.entries`). Only schedules under which copies complete late
(`simt.product_groups`) have any. A copy completes when a thread waits in vain for the mbarrier that
it tells, when its thread waits for its group, when its block ends, when the launch ends, and when
the queue is full.
"""

from __future__ import annotations

from warploom.asynchronous import mbarrier
from warploom.asynchronous.tensor_memory.copies import copy_matrix, shift_rows
from warploom.asynchronous.tensor_memory.layout import ARRIVAL, PRODUCT, ROW_SHIFT, TENSOR_COPY
from warploom.asynchronous.tensor_memory.products import multiply
from warploom.asynchronous.tensors.boxes import move_box
from warploom.asynchronous.tensors.cancel import write_response
from warploom.asynchronous.tensors.entries import (
    ALL_BYTES,
    BARRIER,
    BOX_COPY,
    BULK_GROUP,
    BYTES,
    ENTRY_WORDS,
    GROUP_END,
    GROUPS,
    KIND,
    OFFSETS,
    ORIGIN,
    REDUCTION,
    REQUEST,
    RESPONSE,
    SHARED,
    SIZE,
    SOURCE,
    TARGET,
    THREAD,
    TX_BYTES,
)
from warploom.asynchronous.tensors.maps import type_bytes
from warploom.asynchronous.tensors.numbers import reduce_number
from warploom.asynchronous.tensors.requests import OPERATION, TYPE, field
from warploom.simt.lane_counts import Row, jitable
from warploom.texture.texels import Memory, read_bytes, write_bytes

COUNT, STORES, FIRST = 0, 1, 2
"""Words of a queue: how many entries it has, and how many stores to tensor memory the list behind
it (`asynchronous.issue.late_stores`); the first entry."""

CAPACITY = 2048
"""Entries of a queue; when it is full, the oldest completes."""

QUEUE_WORDS = FIRST + CAPACITY * ENTRY_WORDS

LANES = 32


@jitable
def entry_at(number: int) -> int:
    """Returns where an entry stands in a queue."""
    return FIRST + number * ENTRY_WORDS


@jitable
def complete_request(memory: Memory, entry: Row, scratch: Row) -> None:
    """Complete a copy: move its bytes, then tell the mbarrier that it names. `scratch` is where a
    product works."""
    kind, size = int(entry[KIND]), int(entry[SIZE])
    source, target = int(entry[SOURCE]) - ORIGIN, int(entry[TARGET]) - ORIGIN
    if kind == BOX_COPY:
        move_box(memory, entry)
    elif kind == BYTES and entry[OFFSETS] == ALL_BYTES:
        for place in range(size):
            memory[target + place] = memory[source + place]
    elif kind == BYTES:
        for place in range(size):
            if (int(entry[OFFSETS]) >> (place & 15)) & 1:
                memory[target + place] = memory[source + place]
    elif kind == REDUCTION:
        request = int(entry[REQUEST])
        type = field(request, TYPE)
        for place in range(0, size, type_bytes(type)):
            operation = field(request, OPERATION)
            reduce_number(memory, target + place, source + place, operation, type)
    elif kind == RESPONSE:
        write_response(memory, entry)
    elif kind == PRODUCT:
        multiply(memory, entry, scratch)
    elif kind == TENSOR_COPY:
        copy_matrix(memory, entry)
    elif kind == ROW_SHIFT:
        shift_rows(memory, entry)
    if entry[BARRIER] != 0:
        place = int(entry[BARRIER]) - ORIGIN
        word = read_bytes(memory, place, 8)
        if mbarrier.is_valid(word):
            if kind == ARRIVAL:
                word = mbarrier.arrive(word)
            else:
                word = mbarrier.complete_tx(word, int(entry[TX_BYTES]))
            write_bytes(memory, place, 8, word)


@jitable
def complete_entry(memory: Memory, queue: Row, work: Row, number: int) -> None:
    """Complete the entry of a number; it stays where it is."""
    at = entry_at(number)
    for word in range(ENTRY_WORDS):
        work[word] = queue[at + word]
    complete_request(memory, work, work)


@jitable
def move_entry(queue: Row, number: int, kept: int) -> int:
    """Move an entry to the place of number `kept`; returns the next place."""
    if number != kept:
        for word in range(ENTRY_WORDS):
            queue[entry_at(kept) + word] = queue[entry_at(number) + word]
    return kept + 1


@jitable
def free_queue_slot(memory: Memory, queue: Row, work: Row) -> None:
    """Complete the oldest entry of a full queue; `work` is room for an entry."""
    count = int(queue[COUNT])
    if count == CAPACITY:
        complete_entry(memory, queue, work, 0)
        kept = 0
        for number in range(1, count):
            kept = move_entry(queue, number, kept)
        queue[COUNT] = kept


@jitable
def append(queue: Row, entry: Row) -> None:
    """Keep a copy for later; there is room for it."""
    count = int(queue[COUNT])
    for word in range(ENTRY_WORDS):
        queue[entry_at(count) + word] = entry[word]
    queue[COUNT] = count + 1


@jitable
def is_due(queue: Row, number: int, barrier: int) -> bool:
    """Returns whether an entry tells an mbarrier, or is in front of a commit of its thread that
    does."""
    at = entry_at(number)
    if queue[at + BARRIER] == barrier:
        return True
    if queue[at + KIND] < PRODUCT:
        return False
    for later in range(number + 1, int(queue[COUNT])):
        other = entry_at(later)
        commits = queue[other + KIND] == ARRIVAL and queue[other + BARRIER] == barrier
        if commits and queue[other + THREAD] == queue[at + THREAD]:
            return True
    return False


@jitable
def complete_mbarrier_copies(memory: Memory, queue: Row, work: Row, barrier: int) -> int:
    """Complete the copies that tell an mbarrier, oldest first, until its phase is complete; returns
    how many."""
    kept, done, place = 0, 0, barrier - ORIGIN
    phase = mbarrier.phase(read_bytes(memory, place, 8))
    for number in range(int(queue[COUNT])):
        waits = mbarrier.phase(read_bytes(memory, place, 8)) == phase
        if waits and is_due(queue, number, barrier):
            complete_entry(memory, queue, work, number)
            done += 1
        else:
            kept = move_entry(queue, number, kept)
    queue[COUNT] = kept
    return done


@jitable
def end_group(memory: Memory, queue: Row, work: Row, thread: int) -> None:
    """End the group of copies of a thread: they wait together from now on."""
    free_queue_slot(memory, queue, work)
    for word in range(ENTRY_WORDS):
        work[word] = 0
    work[KIND], work[THREAD], work[GROUPS] = GROUP_END, thread, BULK_GROUP
    append(queue, work)


@jitable
def complete_groups(memory: Memory, queue: Row, work: Row, thread: int, left: int) -> int:
    """Complete the groups of a thread but the newest `left` ones; returns how many copies."""
    count, ends, last = int(queue[COUNT]), 0, -1
    for number in range(count - 1, -1, -1):
        at = entry_at(number)
        if queue[at + THREAD] == thread and queue[at + GROUPS] == BULK_GROUP:
            ends += 1 if queue[at + KIND] == GROUP_END else 0
            if ends > left and last < 0:
                last = number
    kept, done = 0, 0
    for number in range(count):
        at = entry_at(number)
        own = queue[at + THREAD] == thread and queue[at + GROUPS] == BULK_GROUP
        if own and number <= last:
            complete_entry(memory, queue, work, number)
            done += 1
        else:
            kept = move_entry(queue, number, kept)
    queue[COUNT] = kept
    return done


@jitable
def retire(memory: Memory, queue: Row, work: Row, start: int, end: int) -> None:
    """Complete the copies out of a stretch of shared memory that another block gets, and forget
    those into it."""
    kept = 0
    for number in range(int(queue[COUNT])):
        at = entry_at(number)
        if start <= queue[at + SHARED] < end:
            if queue[at + GROUPS] == BULK_GROUP:
                complete_entry(memory, queue, work, number)
        else:
            kept = move_entry(queue, number, kept)
    queue[COUNT] = kept
