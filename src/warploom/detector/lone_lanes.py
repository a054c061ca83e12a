"""Records, in the race detector, lanes of an access at distant addresses (gathers and scatters),
fast. Prefetches the shadow memory (lines and cells) of all lanes at once, then records each lane in
a few steps if barriers order all accesses to its words. Each lane's function returns 1 if it has
recorded the lane, 0 if the caller has to call `memory_words.check_words` for it, which would record
it in the same way."""

from __future__ import annotations

from typing import Any

from warploom.detector.bounds import find_allocation
from warploom.detector.cells import pack_access, read_of, write_of
from warploom.detector.layout import (
    ALL_BYTES,
    ATOMIC,
    COPIES,
    GLOBAL,
    IN_CELLS,
    INIT,
    LINE_BYTES,
    LINE_SHIFT,
    LOAD,
    SHARED,
)
from warploom.detector.quick_words import is_ordered_by_barriers, write_current_record
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    LineShadow,
    ShadowCell,
    TrackedAllocation,
)
from warploom.detector.runs import footprint_of, words_of
from warploom.detector.settled import is_settled
from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import first_lane, jitable

WORD = 4
"""Bytes of a cell."""


@jitable
def prefetch_records(state: DetectorState, event: DetectorEvent, addresses: Any, lanes: int) -> int:
    """Prefetches the lines and cells (shadow memory) of the words that lanes (not 0) access, which
    would otherwise be cache misses one after the other; in global memory only those in the
    allocation of the first lane. Returns the table row of that allocation if `allows_fast_path`, so
    that `record_lone_lane` may be tried on each lane, also of other allocations, which it rejects.
    Returns 0 if not, if there is no such allocation, for shared memory, and for other spaces, of
    which nothing is prefetched."""
    # Shared memory: from byte 0 up to `limit`, without a table row.
    low, high, base, allocation = 0, event.limit, 0, TrackedAllocation(state, 0)
    lines = state.current_owner_slot + state.slot_lines
    cells = state.current_owner_slot + state.slot_cells
    if event.space == GLOBAL:
        allocation = TrackedAllocation(state, find_allocation(state, addresses[first_lane(lanes)]))
        if allocation.at < 0:
            return 0
        low, high, base = (allocation.start, allocation.end, allocation.start & -LINE_BYTES)
        lines, cells = allocation.lines, allocation.cells
    elif event.space != SHARED:
        return 0
    for lane in range(32):
        if lanes >> lane & 1 and low <= addresses[lane] < high:
            offset = addresses[lane] - base
            prefetch(state.words, lines + (offset >> LINE_SHIFT) * LineShadow.WORDS)
            prefetch(state.words, cells + (offset >> 2) * ShadowCell.WORDS)
    return int(allocation.at * allows_fast_path(state, event, allocation)) if allocation.at else 0


@jitable
def allows_fast_path(
    state: DetectorState, event: DetectorEvent, allocation: TrackedAllocation
) -> int:
    """Returns whether an access may be tried by `record_lone_lane`: it is weak, no atomic, of
    elements of whole words, and to an allocation that is checked for races only. That is, touched
    bytes of the allocation are not tracked, nor unwritten ones (INIT), and the access is no store
    to CONSTANT or CLOSED memory."""
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    if event.op == ATOMIC or flags & ~COPIES or event.part < WORD or allocation.touched:
        return 0
    if state.tools & INIT and allocation.written:
        return 0
    return int(event.op == LOAD or allocation.constant == 0)


@jitable
def record_lone_lane(
    state: DetectorState,
    event: DetectorEvent,
    data: Any,
    address: int,
    lane: int,
    thread: int,
    allocation: TrackedAllocation,
) -> int:
    """Records the access of a lane to an allocation if its line, without an extension, is in cells,
    and these have no lists and only records that barriers order, or of this thread. Returns 1 then,
    and for a read of settled bytes, which needs no record; else 0, also for addresses outside or
    misaligned. If it returns 0, the first words may be recorded; to record them again changes
    nothing. Of the `current_` words it sets only `current_thread`: the others that it reads are
    equal for all lanes of a warp."""
    size, base = event.size, allocation.start & -LINE_BYTES
    if address < allocation.start or address + size > allocation.end or address & size - 1:
        return 0
    line = LineShadow(state, allocation.lines, address - base >> LINE_SHIFT)
    # Only lines with an extension have settled bytes; all else there is left to `memory_words`.
    if line.extension:
        offset = address - base & LINE_BYTES - 1
        is_read, footprint = int(event.op == LOAD), footprint_of(size, 0, offset, offset + size)
        return int(is_read and is_settled(state, line, footprint, words_of(footprint, 1)))
    if line.count != IN_CELLS:
        return 0
    state.current_thread = thread
    first_cell = address - base >> 2
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    access_word = pack_access(state, event.op, ALL_BYTES, flags)
    for word in range(size // WORD):
        cell = ShadowCell(state, allocation.cells, first_cell + word)
        write, read = write_of(cell), read_of(cell)
        if cell.lists or (write.interval and not is_ordered_by_barriers(state, write)):
            return 0
        if read.interval and not is_ordered_by_barriers(state, read):
            return 0
        if event.op == LOAD:
            write_current_record(state, read, access_word)
        else:
            write_current_record(state, write, access_word)
            write.value, read.interval = stored_whole_word(event, data, lane, word), 0
    return 1


@jitable
def stored_whole_word(event: DetectorEvent, data: Any, lane: int, word: int) -> int:
    """Returns 32-bit word number `word` of what a lane stores, for elements of whole words. The
    event's `data` has element 0 of each lane, then element 1, of `part` bytes each."""
    at, part = word * WORD, event.part
    if part == event.size:
        at += lane * part
    else:
        at = (at // part * 32 + lane) * part + at % part
    value = int(data[at]) | int(data[at + 1]) << 8
    return value | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
