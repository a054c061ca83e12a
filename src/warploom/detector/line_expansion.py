"""Moves the runs of a line of the race detector into its cells, which record its accesses from then
on: reads the line, and changes its cells and its `count`.

Parameters are those of `detector.lines`."""

from __future__ import annotations

from typing import Any

from warploom.detector.cells import record_weak_write
from warploom.detector.layout import (
    BLOCK_AT,
    BYTES_AT,
    FALLS,
    IN_CELLS,
    LINE_BYTES,
    LOAD,
    LOW,
    OP_AT,
    OP_BITS,
    SHARED,
    SITE_BITS,
    THREAD_BITS,
)
from warploom.detector.pool import free_lists, push_record
from warploom.detector.quick_words import stored_word
from warploom.detector.records import DetectorEvent, DetectorState, LaneRun, LineShadow, ShadowCell
from warploom.detector.runs import begin_of, end_of, size_of, stride_of
from warploom.detector.settled import run_at
from warploom.simt.lane_counts import jitable
from warploom.simt.record_copies import clear_record

RUN_BITS = SITE_BITS | 3 << OP_AT
"""The bits of a run's access word that a record of a cell has, too: instruction and op."""


@jitable
def expand_line(
    state: DetectorState,
    event: DetectorEvent,
    line: LineShadow,
    cells: int,
    line_address: int,
    memory: Any,
    addresses: Any,
    data: Any,
) -> None:
    """Moves a line's runs into its cells, which record its accesses from now on (IN_CELLS); nothing
    if they do already. In shared memory clears the cells first, if there are runs. `cells` is the
    index of the line's first cell, `line_address` the address of its first byte. What the current
    event stores at the addresses of its lanes is not in memory yet, but in `data`."""
    run_count = line.count
    if run_count == IN_CELLS:
        return
    line.count = IN_CELLS
    # Cells of shared memory may have records of an earlier interval or block, which `reset_line`
    # has left.
    if run_count and state.current_space == SHARED:
        for word in range(LINE_BYTES // 4):
            clear_cell(state, ShadowCell(state, cells, word))
    for number in range(run_count):
        expand_run(
            state, event, run_at(state, line, number), cells, line_address, memory, addresses, data
        )


@jitable
def clear_cell(state: DetectorState, cell: ShadowCell) -> None:
    """Empties a cell, and frees the nodes of its lists."""
    free_lists(state, cell.lists)
    clear_record(cell)


@jitable
def expand_run(
    state: DetectorState,
    event: DetectorEvent,
    run: LaneRun,
    cells: int,
    line_address: int,
    memory: Any,
    addresses: Any,
    data: Any,
) -> None:
    """Writes a run into the cells of its words, lane by lane, as weak reads or writes; lanes that
    are missing in the run are skipped. The value that a lane has written is read from memory, or
    from `data` if the current event stores it."""
    access_word, thread_word = run.access, run.thread
    at, size = begin_of(access_word), size_of(access_word)
    # A run of one lane has stride 0, which would not advance.
    stride = max(stride_of(access_word), size)
    step = -1 if access_word & FALLS else 1
    bytes_per_cell = min(size, 4)
    while at < end_of(access_word):
        if run.mask >> (at >> 2) & 1 == 0:
            at, thread_word = at + stride, thread_word + step
            continue
        for byte in range(at, at + size, bytes_per_cell):
            cell = ShadowCell(state, cells, byte // 4)
            bytes_ = (1 << bytes_per_cell) - 1 << (byte & 3)
            cell_access = access_word & RUN_BITS | bytes_ << BYTES_AT
            # Nothing is checked: the runs of a line are ordered or do not conflict, or it would
            # have gone over to its cells before.
            if access_word >> OP_AT & OP_BITS == LOAD:
                add_weak_read(state, cell, run.interval, thread_word, cell_access)
            else:
                value = read_word(memory, state.current_base + line_address + (byte & -4))
                lane = thread_word & 31
                if is_of_event(event, run, thread_word) and addresses[lane] == line_address + at:
                    value = stored_word(event, data, lane, (byte & -4) - at)
                record_weak_write(
                    state, cell, bytes_, run.interval, thread_word, cell_access, value
                )
        at += stride
        thread_word += step


@jitable
def is_of_event(event: DetectorEvent, run: LaneRun, thread_word: int) -> int:
    """Returns whether a run is of the current event's block and instruction, and the thread of
    `thread_word` is one of the event's lanes: what it stores is not in memory yet."""
    in_block = run.interval >> BLOCK_AT == event.block + 1
    in_warp = thread_word >> 5 & THREAD_BITS >> 5 == event.warp
    of_instruction = run.access & SITE_BITS == event.instruction
    return int(in_block and in_warp and of_instruction and event.lanes >> (thread_word & 31) & 1)


@jitable
def read_word(memory: Any, address: int) -> int:
    """Returns the 32-bit little-endian word at an address of the host."""
    value = 0
    for byte in range(4):
        value |= int(memory[address + byte]) << 8 * byte
    return value


@jitable
def add_weak_read(
    state: DetectorState, cell: ShadowCell, interval_word: int, thread_word: int, access_word: int
) -> None:
    """Adds a weak read, given by the words of its record, to a cell: as its read record if that is
    free, else to its list of accesses of any kind; earlier reads stay."""
    if cell.read_interval == 0:
        cell.read_interval, cell.read_thread = interval_word, thread_word
        cell.read_access = access_word
        return
    lists = cell.lists
    # The low half heads the list of accesses of any kind; the high half, of strong ones, stays. A
    # read has no value: 0.
    low = push_record(state, lists & LOW, interval_word, thread_word, access_word, 0)
    cell.lists = lists >> 32 << 32 | low
