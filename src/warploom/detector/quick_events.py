"""Processes the race detector's most frequent events on a fast path before `detect.detect_event`:
weak accesses of lanes that access contiguous bytes, if the lines show that they are ordered.
Returns 0 where the general code has to decide; the outcome is the same.

    ld.global.f32 [a + 4 * tid], tid 0 to 31, a % 128 == 0:
      E_CHECKED 0xFFFFFFFF, E_HEADS 1, firsts [a]: one lane run, one line, one record
    a row of 8 lanes each in 4 matrix rows: E_HEADS 0x01010101: four lane runs
"""

from __future__ import annotations

from typing import Any

from warploom.detector.barriers import leave_barrier
from warploom.detector.bounds import allocation_of_range
from warploom.detector.knowledge import interval_of, set_current_thread
from warploom.detector.layout import (
    A_LINES,
    A_START,
    A_TOUCHED,
    A_WRITTEN,
    B_BLOCK,
    BLOCK_AT,
    COPIES,
    E_BLOCK,
    E_CHECKED,
    E_HEADS,
    E_INSTRUCTION,
    E_LANES,
    E_OP,
    E_SIZE,
    E_SPACE,
    E_WARP,
    EXACT,
    FAST_PATH,
    GLOBAL,
    INIT,
    LINE_BYTES,
    LINE_SHIFT,
    LINE_WORDS,
    LOAD,
    ME_BLOCK,
    ME_INSTRUCTION,
    ME_OWNER,
    ME_SLOT,
    ME_SPACE,
    OP_AT,
    SITE_WORDS,
    SITES_AT,
    SLOT_LINES,
    SLOT_WARPS,
    SLOT_WORDS,
    SLOT_WRITTEN,
    SLOTS_AT,
    TIME_AT,
    TOOLS,
    V_TIME,
    V_WAITING,
    WARP_WORDS,
)
from warploom.detector.lines import record_ordered_run, tag_line
from warploom.detector.memory_words import first_unwritten, record_in_line
from warploom.detector.runs import footprint_of_contiguous, words_of_contiguous
from warploom.detector.settled import are_settled_for_all
from warploom.simt.lane_counts import count_lanes, first_lane, jitable, last_lane
from warploom.simt.schedule_layout import SLOT

ALL_SETTLED = 2
"""Returned if all bytes of a lane run are settled (reads of them need no check): a run of other
lanes with the same addresses needs none either."""


def detect_lane_runs(
    state: Any, event: Any, plan: Any, firsts: Any, shift: int, stride: int
) -> int:
    """Records an access by lane runs, whose checked lanes and run heads are in E_CHECKED and
    E_HEADS; returns 1, or 0 if `detect_event` has to process it: it is not weak, or a run cannot be
    decided here. `firsts` has the address of each lane whose number is a multiple of 1 << `shift`;
    those of the lanes after it follow by `stride` bytes. If it returns 0, some lanes may have been
    recorded; to record them again changes nothing."""
    slot = slot_of_event(state, event, plan)
    weak = state[state[SITES_AT] + event[E_INSTRUCTION] * SITE_WORDS] & ~COPIES == 0
    if not weak or slot == 0:
        return 0
    heads, last_settled, last_address, last_mask = event[E_HEADS], 0, 0, 0
    while heads:
        following = heads & heads - 1
        # The checked lanes from this head on, and below up to the next head.
        run = event[E_CHECKED] & -(heads & -heads)
        if following:
            run &= (following & -following) - 1
        head = first_lane(run)
        address = firsts[head >> shift] + (head & (1 << shift) - 1) * stride
        # A broadcast row that is settled once is settled for each lane run with the same addresses.
        if last_settled == 0 or address != last_address or run >> head != last_mask:
            outcome = record_lane_run(state, event, slot, address, run)
            if outcome == 0:
                return 0
            last_settled, last_address, last_mask = (
                int(outcome == ALL_SETTLED),
                address,
                run >> head,
            )
        heads = following
    return 1


@jitable
def record_lane_run(state: Any, event: Any, slot: int, address: int, lanes: int) -> int:
    """Records the access of `lanes`, which access contiguous bytes from `address` on (of the first
    of them), in the block whose state is at index `slot`. Returns 1; ALL_SETTLED if it needed no
    record; 0 if the general code has to decide: the bytes are not all in one allocation, touched
    bytes are tracked, some are unwritten, or the lines cannot decide."""
    present = lanes >> first_lane(lanes)
    end = address + lanes_up_to_last(present) * event[E_SIZE]
    allocation = allocation_of_range(state, event, address, end)
    if allocation < 0 or (event[E_SPACE] == GLOBAL and state[allocation + A_TOUCHED]):
        return 0
    lines, bits, start = slot + state[SLOT_LINES], slot + state[SLOT_WRITTEN], 0
    if event[E_SPACE] == GLOBAL:
        lines, bits, start = (
            state[allocation + A_LINES],
            state[allocation + A_WRITTEN],
            state[allocation + A_START],
        )
    if state[TOOLS] & INIT and bits:
        # No lane is missing. `first_unwritten` also sets the bits of what a store writes.
        contiguous = present & present + 1 == 0
        if (
            not contiguous
            or first_unwritten(state, bits, address - start, end - start, event[E_OP]) >= 0
        ):
            return 0
    return record_lines_of_run(state, event, slot, lines, address - (start & -LINE_BYTES), lanes)


@jitable
def record_lines_of_run(state: Any, event: Any, slot: int, lines: int, at: int, lanes: int) -> int:
    """Records the access of a lane run (mask `lanes` of the warp) to memory whose lines begin at
    index `lines` of the state, from its byte `at` on, line by line; `slot` is the index of the
    block's state. Returns 1; ALL_SETTLED if all its reads are of bytes settled for the grid; 0 if a
    line's cells have to decide."""
    size, thread, outcome = event[E_SIZE], (event[E_WARP] << 5) + first_lane(lanes), ALL_SETTLED
    lanes >>= first_lane(lanes)
    # The logarithm of the size, which is a power of two.
    shift = first_lane(size)
    warp_at = slot + state[SLOT_WARPS] + event[E_WARP] * WARP_WORDS
    interval_word = event[E_BLOCK] + 1 << BLOCK_AT | interval_of(state, slot, warp_at)
    time_bits = state[warp_at + V_TIME] << TIME_AT
    access_bits = event[E_INSTRUCTION] | event[E_OP] << OP_AT
    while lanes:
        begin = at & LINE_BYTES - 1
        count = min(LINE_BYTES - begin >> shift, 32)
        present = lanes & (1 << count) - 1
        if present:
            end = begin + (lanes_up_to_last(present) << shift)
            footprint, words = (
                footprint_of_contiguous(size, begin, end),
                words_of_contiguous(size, begin, end, present),
            )
            line = lines + (at >> LINE_SHIFT) * LINE_WORDS
            tag_line(state, line, interval_word, event[E_SPACE])
            if event[E_OP] != LOAD or are_settled_for_all(state, line, words) == 0:
                outcome = 1
                if (
                    record_ordered_run(
                        state,
                        line,
                        interval_word,
                        time_bits | thread,
                        access_bits | footprint,
                        words,
                    )
                    == 0
                ):
                    select_warp(state, event, slot)
                    if record_in_line(state, line, thread, event[E_OP], footprint, words) == 0:
                        return 0
        at += count << shift
        thread += count
        lanes >>= count
    return outcome


@jitable
def lanes_up_to_last(lanes: int) -> int:
    """Returns the number of lanes from lane 0 up to the last of a mask that is not empty, gaps
    included."""
    # Without gaps that is the count of bits, which is faster.
    if lanes & lanes + 1 == 0:
        return count_lanes(lanes)
    return last_lane(lanes) + 1


@jitable
def slot_of_event(state: Any, event: Any, plan: Any) -> int:
    """Returns the index of the state of an event's block; 0 if its events may not be processed
    here: FAST_PATH is off, the block has not begun, or lanes leave a barrier and knowledge has to
    be joined (EXACT). Otherwise lets lanes that waited at a barrier leave it."""
    slot = state[SLOTS_AT] + max(plan[SLOT], 0) * state[SLOT_WORDS]
    waiting = (
        state[slot + state[SLOT_WARPS] + event[E_WARP] * WARP_WORDS + V_WAITING] & event[E_LANES]
    )
    if (
        state[FAST_PATH] == 0
        or state[slot + B_BLOCK] != event[E_BLOCK] + 1
        or (waiting and state[EXACT])
    ):
        return 0
    if waiting:
        state[ME_SLOT], state[ME_BLOCK] = slot, event[E_BLOCK]
        leave_barrier(state, event[E_WARP], event[E_LANES])
    return int(slot)


@jitable
def select_warp(state: Any, event: Any, slot: int) -> None:
    """Makes the first thread of an event's warp the current one, in the block at index `slot`, and
    sets the ME_ words of instruction and space; the block's own shared memory is selected."""
    state[ME_SLOT], state[ME_BLOCK], state[ME_OWNER] = slot, event[E_BLOCK], event[E_BLOCK]
    state[ME_INSTRUCTION], state[ME_SPACE] = event[E_INSTRUCTION], event[E_SPACE]
    set_current_thread(state, event[E_WARP] << 5)
