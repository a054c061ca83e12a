"""Records, in the race detector, lanes of an access at distant addresses (gathers and scatters),
fast: prefetches their lines and cells all at once, then records each lane in a few steps if
barriers order all accesses to its words. Other lanes are left to `memory_words.check_words`, which
would record them in the same way."""

from __future__ import annotations

from typing import Any

from warploom.detector.bounds import find_allocation
from warploom.detector.cells import ALL_BYTES, pack_access
from warploom.detector.layout import (
    A_CELLS,
    A_CONSTANT,
    A_END,
    A_LINES,
    A_START,
    A_TOUCHED,
    A_WRITTEN,
    ATOMIC,
    CELL_WORDS,
    COPIES,
    E_INSTRUCTION,
    E_LIMIT,
    E_OP,
    E_PART,
    E_SIZE,
    E_SPACE,
    GLOBAL,
    H_COUNT,
    H_EXTENSION,
    IN_CELLS,
    INIT,
    LINE_BYTES,
    LINE_SHIFT,
    LINE_WORDS,
    LISTS,
    LOAD,
    ME_OWNER_SLOT,
    ME_THREAD,
    R_INTERVAL,
    SHARED,
    SITE_WORDS,
    SITES_AT,
    SLOT_CELLS,
    SLOT_LINES,
    TOOLS,
    W_INTERVAL,
    W_VALUE,
)
from warploom.detector.quick_words import is_ordered_by_barriers, write_current_record
from warploom.detector.runs import footprint_of, words_of
from warploom.detector.settled import is_settled
from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import first_lane, jitable

WORD = 4
"""Bytes of a cell."""


@jitable
def prefetch_records(state: Any, event: Any, addresses: Any, lanes: int) -> int:
    """Prefetches the lines and cells (shadow memory) of the words that lanes access, which would
    otherwise be cache misses one after the other; in global memory only those in the allocation of
    the first lane. Returns the table row of that allocation if `allows_fast_path`, so that
    `record_lone_lane` may be tried on each lane, also of other allocations, which it rejects.
    Returns 0 if not, if there is no such allocation, and for shared memory."""
    # Shared memory: from byte 0 up to E_LIMIT, without a table row.
    low, high, base, allocation = 0, event[E_LIMIT], 0, 0
    lines, cells = (
        state[ME_OWNER_SLOT] + state[SLOT_LINES],
        state[ME_OWNER_SLOT] + state[SLOT_CELLS],
    )
    if event[E_SPACE] == GLOBAL:
        allocation = find_allocation(state, addresses[first_lane(lanes)])
        if allocation < 0:
            return 0
        low, high, base = (
            state[allocation + A_START],
            state[allocation + A_END],
            state[allocation + A_START] & -LINE_BYTES,
        )
        lines, cells = state[allocation + A_LINES], state[allocation + A_CELLS]
    elif event[E_SPACE] != SHARED:
        return 0
    for lane in range(32):
        if lanes >> lane & 1 and low <= addresses[lane] < high:
            offset = addresses[lane] - base
            prefetch(state, lines + (offset >> LINE_SHIFT) * LINE_WORDS)
            prefetch(state, cells + (offset >> 2) * CELL_WORDS)
    return int(allocation * allows_fast_path(state, event, allocation)) if allocation else 0


@jitable
def allows_fast_path(state: Any, event: Any, allocation: int) -> int:
    """Returns whether an access may be tried by `record_lone_lane`: it is weak, of whole words, and
    to an allocation that is checked for races only. That is, touched and unwritten bytes of this
    are not tracked, and it is not a write to constant or CLOSED memory."""
    flags = state[state[SITES_AT] + event[E_INSTRUCTION] * SITE_WORDS]
    if (
        event[E_OP] == ATOMIC
        or flags & ~COPIES
        or event[E_PART] < WORD
        or state[allocation + A_TOUCHED]
    ):
        return 0
    if state[TOOLS] & INIT and state[allocation + A_WRITTEN]:
        return 0
    return int(event[E_OP] == LOAD or state[allocation + A_CONSTANT] == 0)


@jitable
def record_lone_lane(
    state: Any, event: Any, data: Any, address: int, lane: int, thread: int, allocation: int
) -> int:
    """Records the access of a lane to an allocation, if it reads settled bytes (reads need no
    check), or words in cells that only this thread accesses or whose accesses barriers order.
    Returns whether it did; 0 also for addresses outside or misaligned. If it returns 0, the first
    words may be recorded; to record them again changes nothing."""
    size, base = event[E_SIZE], state[allocation + A_START] & -LINE_BYTES
    if (
        address < state[allocation + A_START]
        or address + size > state[allocation + A_END]
        or address & size - 1
    ):
        return 0
    line = state[allocation + A_LINES] + (address - base >> LINE_SHIFT) * LINE_WORDS
    # Only lines with an extension have settled bytes; all else there is left to `memory_words`.
    if state[line + H_EXTENSION]:
        offset = address - base & LINE_BYTES - 1
        is_read, footprint = int(event[E_OP] == LOAD), footprint_of(size, 0, offset, offset + size)
        return int(is_read and is_settled(state, line, footprint, words_of(footprint, 1)))
    if state[line + H_COUNT] != IN_CELLS:
        return 0
    state[ME_THREAD] = thread
    cell = state[allocation + A_CELLS] + (address - base >> 2) * CELL_WORDS
    flags = state[state[SITES_AT] + event[E_INSTRUCTION] * SITE_WORDS]
    access_word = pack_access(state, event[E_OP], ALL_BYTES, flags)
    for word in range(size // WORD):
        if state[cell + LISTS] or (
            state[cell + W_INTERVAL] and not is_ordered_by_barriers(state, cell + W_INTERVAL)
        ):
            return 0
        if state[cell + R_INTERVAL] and not is_ordered_by_barriers(state, cell + R_INTERVAL):
            return 0
        if event[E_OP] == LOAD:
            write_current_record(state, cell + R_INTERVAL, access_word)
        else:
            write_current_record(state, cell + W_INTERVAL, access_word)
            state[cell + W_VALUE] = stored_whole_word(event, data, lane, word)
            state[cell + R_INTERVAL] = 0
        cell += CELL_WORDS
    return 1


@jitable
def stored_whole_word(event: Any, data: Any, lane: int, word: int) -> int:
    """Returns the 32-bit word number `word` of what a lane stores, from the event's `data`, as
    `quick_words.stored_word` does, for elements of whole words."""
    at, part = word * WORD, event[E_PART]
    if part == event[E_SIZE]:
        at += lane * part
    else:
        at = (at // part * 32 + lane) * part + at % part
    value = int(data[at]) | int(data[at + 1]) << 8
    return value | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
