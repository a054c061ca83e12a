"""Checks and records one lane's access to cells of the race detector on a fast path, for words that
one thread at a time accesses, or that are only read. Functions read the detector's state and the
current event, and change the cells. They return 1 if the access is recorded, each cell as
`cells.check_and_record`, the general code, would leave it; 0 if that code has to check and record
it."""

from __future__ import annotations

from typing import Any

from warploom.detector.cells import (
    ALL_BYTES,
    is_strong_at_gpu_scope,
    max_distance,
    pack_access,
    read_of,
    thread_distance,
    write_of,
)
from warploom.detector.layout import (
    AGENT,
    BLOCK_AT,
    BYTES_AT,
    FLAGS_AT,
    IN_CELLS,
    LOAD,
    LOW,
    OP_AT,
    OP_BITS,
    SHARED,
    STRONG,
    THREAD_BITS,
    TIME_AT,
)
from warploom.detector.records import (
    AccessNode,
    DetectorEvent,
    DetectorState,
    InstructionSite,
    LineShadow,
    ShadowCell,
    ShadowRecord,
)
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import jitable


@jitable
def try_record_words(
    state: DetectorState, event: DetectorEvent, data: Any, lane: int, line: LineShadow, cells: int
) -> int:
    """Records the current thread's access, which is weak or relaxed (`memory_words.FAST_FLAGS`), in
    the cells from index `cells` on, which belong to `line`. A wide one
    (`cells.is_strong_at_gpu_scope`) is not recorded: two retained ones must make it redundant.
    Returns 1 if the access is recorded or redundant; 0 if `memory_words.check_cells` has to check
    and record it, where the first words may be recorded already. That is so if the access is
    relaxed but not wide; if the line is not in cells or, in shared memory, is of an earlier
    interval or block; if a cell has records that barriers do not order; or if no two retained
    records make a wide access redundant."""
    shared = int(state.current_space == SHARED)
    if line.count != IN_CELLS:
        return 0
    # Cells of an earlier interval or block of shared memory are stale: `lines.tag_line` has to
    # reset them first.
    if shared and line.tag != state.current_owner + 1 << BLOCK_AT | state.current_interval:
        return 0
    size, offset, bytes_ = event.size, state.current_address & 3, ALL_BYTES
    if size < 4:
        bytes_ = (1 << size) - 1 << offset
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    access_word = pack_access(state, event.op, bytes_, flags)
    wide = is_strong_at_gpu_scope(access_word)
    # The lists have all strong accesses that are recorded: `check_cells` relies on that.
    if flags & STRONG and not wide:
        return 0
    for word in range((size + 3) // 4):
        cell = ShadowCell(state, cells, word)
        # Words before this one are recorded already; to record them again changes nothing.
        if not is_cell_ordered(state, cell, access_word):
            return 0
        if wide:
            strong = AccessNode(state, cell.lists >> 32)
            if not retained_pair_covers_strong(state, strong, access_word):
                return 0
        elif event.op == LOAD:
            if not record_read(state, cell, access_word):
                return 0
        else:
            stored = stored_word(event, data, lane, 4 * word - offset)
            record_write(state, cell, access_word, stored)
    return 1


@jitable
def stored_word(event: DetectorEvent, data: Any, lane: int, start: int) -> int:
    """Returns four of the bytes that a lane stores, from its byte `start` on, which may be
    negative; bytes that the lane does not store are 0. `data` holds the elements of all lanes one
    after the other: first element 0 of each lane, then element 1."""
    part, size, value = event.part, event.size, 0
    begin, end = max(start, 0), min(start + 4, size)
    at = (begin // part * 32 + lane) * part + begin % part
    # The usual case, one element, without divisions.
    if part == size:
        at = lane * size + begin
    for byte in range(begin, end):
        value |= int(data[at]) << 8 * (byte - start)
        at += 1
        if (byte + 1) % part == 0:
            at += 31 * part
    return value


@jitable
def is_cell_ordered(state: DetectorState, cell: ShadowCell, access_word: int) -> int:
    """Returns whether barriers order the accesses in a cell before the current access: the cell's
    write and, if the current access is a write or a wide access (`is_strong_at_gpu_scope`), its
    read. For a weak write, these must also have no bytes but those that it writes. Returns 0 if the
    cell has lists, which would have to be searched; a wide access ignores the list of wide ones."""
    lists = cell.lists
    if cell.write_interval and not is_ordered_by_barriers(state, write_of(cell)):
        return 0
    if is_strong_at_gpu_scope(access_word):
        return int(
            lists & LOW == 0
            and (cell.read_interval == 0 or is_ordered_by_barriers(state, read_of(cell)))
        )
    if access_word >> OP_AT & OP_BITS == LOAD:
        # Reads do not conflict with the cell's read; lists may have writes.
        return int(lists == 0)
    if lists:
        return 0
    other_bytes = ~(access_word >> BYTES_AT & ALL_BYTES)
    if cell.write_interval and cell.write_access >> BYTES_AT & ALL_BYTES & other_bytes:
        return 0
    if cell.read_interval:
        return int(
            is_ordered_by_barriers(state, read_of(cell))
            and cell.read_access >> BYTES_AT & other_bytes == 0
        )
    return 1


@jitable
def is_ordered_by_barriers(state: DetectorState, record: ShadowRecord) -> int:
    """Returns whether a record is of the current thread, or barriers of its block or warp order it
    before the current access: the part of `knowledge.is_ordered` that needs no vector clocks. 0 for
    agents, and for other blocks unless they were earlier owners of shared memory."""
    interval_word, thread_word = record.interval, record.thread
    # Blocks are stored plus one, so that 0, as in cleared memory, is no block.
    if interval_word >> BLOCK_AT != state.current_block + 1:
        return int(state.current_space == SHARED and not is_peer(state, interval_word >> BLOCK_AT))
    thread = thread_word & THREAD_BITS
    if thread & AGENT:
        return 0
    if interval_word & LOW < state.current_interval or thread == state.current_thread:
        return 1
    return int(
        thread >> 5 == state.current_thread >> 5 and thread_word >> TIME_AT < state.current_synced
    )


@jitable
def record_read(state: DetectorState, cell: ShadowCell, access_word: int) -> int:
    """Records a weak read as the cell's read record, if the cell has none, or if that is only of
    bytes that the access reads and barriers order it before the access; returns whether it is
    recorded."""
    read = read_of(cell)
    other_bytes = ~(access_word >> BYTES_AT & ALL_BYTES)
    if read.interval == 0 or (
        read.access >> BYTES_AT & ALL_BYTES & other_bytes == 0
        and is_ordered_by_barriers(state, read)
    ):
        write_current_record(state, read, access_word)
        return 1
    return 0


@jitable
def record_write(state: DetectorState, cell: ShadowCell, access_word: int, value: int) -> None:
    """Records a weak write of the word `value` as a cell's write record, instead of the earlier
    write and of the cell's read, which must be ordered before it and within its bytes."""
    write_current_record(state, write_of(cell), access_word)
    cell.write_value = value
    cell.read_interval = 0


@jitable
def write_current_record(state: DetectorState, record: ShadowRecord, access_word: int) -> None:
    """Writes the three words of a record of the current access, without a value."""
    record.interval = state.current_block + 1 << BLOCK_AT | state.current_interval
    record.thread = state.current_time << TIME_AT | state.current_thread
    record.access = access_word


@jitable
def retained_pair_covers_strong(state: DetectorState, node: AccessNode, access_word: int) -> int:
    """Returns whether the first two records of a list (first node `node`, 0: empty) match the
    current access (`matches_record`) and are of threads at the largest distance
    (`cells.max_distance`), which makes the access redundant (`cells.record_strong_access`). Never
    with `exact`."""
    if state.exact or node.at == 0 or node.next == 0:
        return 0
    next_node = AccessNode(state, node.next)
    if not (
        matches_record(state, node, access_word) and matches_record(state, next_node, access_word)
    ):
        return 0
    distance = thread_distance(node.interval, node.thread, next_node.interval, next_node.thread)
    return int(distance >= max_distance(state))


@jitable
def matches_record(state: DetectorState, node: AccessNode, access_word: int) -> int:
    """Returns whether the record at list node `node` has the op and flags of the current access
    and, in shared memory, its block and interval."""
    old = node.access
    if old >> FLAGS_AT != access_word >> FLAGS_AT or (old ^ access_word) >> OP_AT & OP_BITS:
        return 0
    now = state.current_block + 1 << BLOCK_AT | state.current_interval
    return int(state.current_space != SHARED or node.interval == now)
