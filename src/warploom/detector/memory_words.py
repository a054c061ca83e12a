"""Checks the bytes of an access against the race detector's shadow memory: by runs of lanes in
lines (128 bytes), else lane by lane in cells (4 bytes); and against the bits of written bytes (tool
`init`)."""

from __future__ import annotations

from typing import Any

from warploom.detector.cells import check_and_record, pack_access
from warploom.detector.knowledge import set_current_lane
from warploom.detector.layout import (
    ASYNC,
    COPIES,
    IN_CELLS,
    INIT,
    K_UNWRITTEN,
    LINE_BYTES,
    LINE_SHIFT,
    LOAD,
    RACE,
    SCOPE_AT,
    SHARED,
    STORE,
    STRONG,
)
from warploom.detector.line_expansion import expand_line
from warploom.detector.lines import current_tag, record_run, tag_line
from warploom.detector.pool import report
from warploom.detector.quick_words import stored_word, try_record_words
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    LineShadow,
    ShadowCell,
    TrackedAllocation,
)
from warploom.detector.releases import end_chain
from warploom.detector.runs import footprint_of, words_of
from warploom.detector.settled import clear_settled, is_settled, settle
from warploom.detector.shared_memory_owners import shared_key
from warploom.detector.touched import record_touched_run
from warploom.simt.lane_counts import first_lane, jitable

FAST_FLAGS = COPIES | STRONG | 3 << SCOPE_AT
"""Flags of accesses that `try_record_words` may record."""


@jitable
def record_in_lines(
    state: DetectorState,
    event: DetectorEvent,
    memory: Any,
    addresses: Any,
    data: Any,
    lanes: int,
    end: int,
    allocation: TrackedAllocation,
) -> None:
    """Records a weak access of a run, lanes whose addresses are evenly spaced, from the current
    address up to `end`, past the last lane's bytes, line by line; lane by lane in lines that cannot
    decide. First records touched bytes, and checks unwritten ones with the tool INIT; records no
    access without the tool RACE. `data` has what a store writes. The current thread's lane accesses
    the current address, the lanes after it the bytes that follow; the lanes before it, if the
    stride is negative. The mask `lanes` begins with the bit of the current lane; lanes may be
    missing. `allocation` is the table row of the accessed allocation; for shared memory its `at` is
    1."""
    size, stride, at = event.size, abs(state.current_stride), state.current_address
    thread, step = state.current_thread, 1 if state.current_stride > 0 else -1
    record_touched_run(state, event, end, allocation, lanes)
    if state.tools & INIT:
        check_run_written(state, event, end, allocation, lanes)
    if state.tools & RACE == 0:
        return
    lines, base = state.current_owner_slot + state.slot_lines, 0
    if event.space != SHARED:
        lines, base = allocation.lines, allocation.start & -LINE_BYTES
    # Sizes are powers of two: a shift instead of a division, for the usual stride.
    shift = int(size > 1) + int(size > 2) + int(size > 4) + int(size > 8)
    while at < end:
        number = at - base >> LINE_SHIFT
        line, line_address = LineShadow(state, lines, number), base + (number << LINE_SHIFT)
        # To the last byte at which a lane of this line can begin; aligned elements do not cross
        # lines.
        offset = min(end - size, line_address + LINE_BYTES - 1) - at
        # `while` ends: at least the lane at `at` begins in its line.
        count = (offset >> shift if stride == size else offset // stride) + 1
        last = at + (count - 1) * stride + size
        present = lanes & (1 << count) - 1
        footprint = footprint_of(size, step * stride, at - line_address, last - line_address)
        words = words_of(footprint, present)
        if present:
            tag_line(state, line, current_tag(state), event.space)
        if present and record_in_line(state, line, thread, event.op, footprint, words) == 0:
            for index in range(count):
                lane_thread = thread + step * index
                if present >> index & 1:
                    set_current_lane(state, lane_thread)
                    state.current_address = at + index * stride
                    check_words(
                        state, event, memory, addresses, data, lane_thread & 31, allocation, 1
                    )
        thread += step * count
        at += count * stride
        lanes >>= count


@jitable
def record_in_line(
    state: DetectorState, line: LineShadow, thread: int, op: int, footprint: int, words: int
) -> int:
    """Records a weak access of lanes from `thread` on in one line, by its footprint and words
    (`runs`); returns 1, or 0 if the line's cells have to decide. A read of settled bytes is not
    recorded; a write makes its bytes unsettled."""
    if op != LOAD:
        clear_settled(state, line, footprint, words)
    elif is_settled(state, line, footprint, words):
        return 1
    return int(record_run(state, line, thread, op, footprint, words))


@jitable
def check_run_written(
    state: DetectorState, event: DetectorEvent, end: int, allocation: TrackedAllocation, lanes: int
) -> None:
    """Reports bytes that a run of lanes, from the current address up to `end` (exclusive), reads
    although they are not written, and marks those that it writes (`check_written`): at once if it
    is contiguous and complete, else lane by lane. `lanes` masks the lanes that are there. The
    current thread and access are as before afterwards."""
    size, start = event.size, state.current_address
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    stride, step = abs(state.current_stride), 1 if state.current_stride > 0 else -1
    # A mask plus one shares no bit with it if it has no gaps.
    contiguous = state.current_stride == size and lanes & lanes + 1 == 0
    piece = end - start if contiguous else size
    thread, at = state.current_thread, start
    while at < end:
        state.current_address, state.current_size = at, piece
        if lanes & 1:
            check_written(state, event, flags, allocation)
        lanes >>= 1
        at += max(stride, piece)
        state.current_thread += step
    state.current_thread, state.current_address, state.current_size = thread, start, size


@jitable
def effective_flags(state: DetectorState, event: DetectorEvent) -> int:
    """Returns the flags of an event's instruction, without STRONG for the reads of a reduction by
    an agent: it is strong when it writes, not when it reads its addends."""
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    return int(flags & ~STRONG if flags & ASYNC and event.op == LOAD else flags)


@jitable
def check_words(
    state: DetectorState,
    event: DetectorEvent,
    memory: Any,
    addresses: Any,
    data: Any,
    lane: int,
    allocation: TrackedAllocation,
    writes: int,
) -> None:
    """Checks the access of the current thread (`lane` of its warp), which lies in one line, against
    the earlier ones, and records it. A weak read of settled bytes is not recorded. Other accesses
    are recorded by `try_record_words`, the fast path, or if that returns 0 in the cells, into which
    the line's runs are moved first. Bytes of stores and atomics cease to be settled. `allocation`
    is its table row, which shared memory does not use; `writes` is 0 for a compare-and-swap that
    fails, which counts as a load; `data` has what the lanes store."""
    at, shared = state.current_address, int(event.space == SHARED)
    flags = effective_flags(state, event)
    lines = state.current_owner_slot + state.slot_lines
    cells = state.current_owner_slot + state.slot_cells
    base = 0
    if not shared:
        lines, cells, base = (allocation.lines, allocation.cells, allocation.start & -LINE_BYTES)
    number = at - base >> LINE_SHIFT
    line, offset = LineShadow(state, lines, number), at - base & LINE_BYTES - 1
    cell = ShadowCell(state, cells, at - base >> 2)
    # The footprint of one lane: stride 0, mask of lanes 1.
    lane_footprint = footprint_of(event.size, 0, offset, offset + event.size)
    if event.op != LOAD:
        clear_settled(state, line, lane_footprint, words_of(lane_footprint, 1))
    elif flags & ~COPIES == 0 and is_settled(
        state, line, lane_footprint, words_of(lane_footprint, 1)
    ):
        return
    if flags & ~FAST_FLAGS == 0 and try_record_words(state, event, data, lane, line, cell.at):
        return
    tag_line(state, line, current_tag(state), event.space)
    if line.count != IN_CELLS:
        first_cell = cells + number * (LINE_BYTES // 4) * ShadowCell.WORDS
        expand_line(
            state, event, line, first_cell, base + (number << LINE_SHIFT), memory, addresses, data
        )
    check_cells(state, event, data, lane, line, cell.at, writes)


@jitable
def check_cells(
    state: DetectorState,
    event: DetectorEvent,
    data: Any,
    lane: int,
    line: LineShadow,
    cells: int,
    writes: int,
) -> None:
    """Checks each aligned four bytes of one lane's access against the earlier accesses in their
    cells, from index `cells` on, reports races, and records the access, as a load if `writes` is 0.
    After a weak load, marks bytes of `line` as settled where the retained readers permit
    (`settle`). With `exact` a weak store, if its cell had lists, ends the location's chain of
    releases. `data` has the stored bytes, to compare equal stores."""
    at, end = state.current_address, state.current_address + event.size
    op, flags = event.op if writes else LOAD, effective_flags(state, event)
    word = at & ~3
    while word < end:
        bytes_, value = 15, 0
        if word < at or word + 4 > end:
            # The bytes of this word from `at` on and up to `end`.
            bytes_ = (15 << max(at - word, 0) & 15) & (15 >> max(word + 4 - end, 0))
        if op == STORE:
            value = stored_word(event, data, lane, word - at)
        cell = ShadowCell(state, cells, word - (at & ~3) >> 2)
        strong = check_and_record(state, cell, pack_access(state, op, bytes_, flags), value)
        if op == LOAD and flags & ~COPIES == 0:
            settle(state, line, cell, word & LINE_BYTES - 1, bytes_)
        elif strong and op == STORE and state.exact and flags & STRONG == 0:
            end_chain(state, shared_key(state, at) if event.space == SHARED else at)
        word += 4


@jitable
def check_written(
    state: DetectorState, event: DetectorEvent, flags: int, allocation: TrackedAllocation
) -> None:
    """Reports (K_UNWRITTEN) the first lane whose load or atomic reads bytes that have not been
    written, unless the instruction only copies them (COPIES in `flags`); sets the bits of the bytes
    that a store or an atomic writes. Nothing for an allocation without bits (`written` 0), which is
    written as a whole. The current access may be of several lanes (`current_size` bytes)."""
    shared = event.space == SHARED
    bits = state.current_owner_slot + state.slot_written
    base = 0
    if not shared:
        bits, base = allocation.written, allocation.start
        if bits == 0:
            return
    byte = state.current_address - base
    # Also sets the bits of what a store or an atomic writes.
    missing = first_unwritten(state, bits, byte, byte + state.current_size, event.op)
    if missing >= 0 and event.op != STORE and flags & COPIES == 0:
        # `lanes`: those before the lane of the first unwritten byte, whose thread is reported, with
        # no other instruction and thread (-1).
        lanes, size = (base + missing - state.current_address) // event.size, event.size
        thread = state.current_thread
        state.current_thread = thread + lanes
        report(state, K_UNWRITTEN, -1, -1, state.current_address + lanes * size, size, event.op)
        state.current_thread = thread


@jitable
def first_unwritten(state: DetectorState, bits: int, byte: int, end: int, op: int) -> int:
    """Returns the first byte number from `byte` up to `end` (exclusive) whose bit, in the bitmap at
    index `bits` of the state (32 bits a word), is 0; -1 if there is none. Sets all their bits
    unless `op` is LOAD."""
    missing = -1
    while byte < end:
        count = min(32 - (byte & 31), end - byte)
        mask = ((1 << count) - 1) << (byte & 31)
        word = bits + (byte >> 5)
        unwritten = mask & ~state.words[word]
        if unwritten and missing < 0:
            missing = (byte & ~31) + first_lane(unwritten)
        if op != LOAD:
            state.words[word] |= mask
        byte += count
    return missing
