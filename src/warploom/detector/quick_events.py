"""Processes the race detector's most frequent events on a fast path before `detect.detect_event`:
weak accesses of lanes that access contiguous bytes, if the lines show that they are ordered.
Returns 0 where the general code has to decide; the outcome is the same.

    ld.global.f32 [a + 4 * tid], tid 0 to 31, a % 128 == 0:
      `checked` 0xFFFFFFFF, `heads` 1, firsts [a]: one lane run, one line, one record
    a row of 8 lanes each in 4 matrix rows: `heads` 0x01010101: four lane runs
"""

from __future__ import annotations

from typing import Any

from warploom.detector.barriers import leave_barrier
from warploom.detector.bounds import allocation_of_range
from warploom.detector.knowledge import interval_of, set_current_thread
from warploom.detector.layout import (
    BLOCK_AT,
    COPIES,
    GLOBAL,
    INIT,
    LINE_BYTES,
    LINE_SHIFT,
    LOAD,
    OP_AT,
    TIME_AT,
)
from warploom.detector.lines import record_ordered_run, tag_line
from warploom.detector.memory_words import first_unwritten, record_in_line
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    LineShadow,
    ResidentBlock,
    TrackedAllocation,
    WarpKnowledge,
)
from warploom.detector.runs import footprint_of_contiguous, words_of_contiguous
from warploom.detector.settled import are_settled_for_all
from warploom.simt.lane_counts import count_lanes, first_lane, jitable, last_lane
from warploom.simt.schedule_layout import Plan

ALL_SETTLED = 2
"""Returned if all bytes of a lane run are settled (reads of them need no check): a run of other
lanes with the same addresses needs none either."""


def detect_lane_runs(
    state_words: Any, event_words: Any, schedule: Any, firsts: Any, shift: int, stride: int
) -> int:
    """Records the access of an event by lane runs: its words `checked` and `heads` are the masks of
    the lanes to record and of the first lane of each run. Returns 1, or 0 if `detect_event` has to
    process it: its instruction has a flag but COPIES (it is not weak), or `slot_of_event` or
    `record_lane_run` returns 0. `firsts` has the address of each lane whose number is a multiple of
    1 << `shift`; those of the lanes after it follow by `stride` bytes. If it returns 0, some lanes
    may have been recorded; to record them again changes nothing."""
    state, event = DetectorState(state_words, 0), DetectorEvent(event_words, 0)
    slot = ResidentBlock(state, slot_of_event(state, event, Plan(schedule, 0)))
    weak = InstructionSite(state, state.sites_at, event.instruction).flags & ~COPIES == 0
    if not weak or slot.at == 0:
        return 0
    heads, last_settled, last_address, last_mask = event.heads, 0, 0, 0
    while heads:
        following = heads & heads - 1
        # The checked lanes from this head on, and below up to the next head.
        run = event.checked & -(heads & -heads)
        if following:
            run &= (following & -following) - 1
        head = first_lane(run)
        address = firsts[head >> shift] + (head & (1 << shift) - 1) * stride
        # A broadcast row that is settled once is settled for each lane run with the same addresses.
        if last_settled == 0 or address != last_address or run >> head != last_mask:
            outcome = record_lane_run(state, event, slot, address, run)
            if outcome == 0:
                return 0
            last_settled = int(outcome == ALL_SETTLED)
            last_address = address
            last_mask = run >> head
        heads = following
    return 1


@jitable
def record_lane_run(
    state: DetectorState, event: DetectorEvent, slot: ResidentBlock, address: int, lanes: int
) -> int:
    """Records the access of `lanes` in the block with state `slot`: each accesses the bytes right
    after those of the lane number before (lanes may be missing), the first those at `address`. With
    INIT also marks what a store writes as written. Returns 1; ALL_SETTLED if reads there need no
    record; 0 if the general code has to process the access. That is so if the bytes are misaligned
    or not all in one allocation, a store is to a CONSTANT or CLOSED allocation, or touched bytes
    are tracked; with INIT if some bytes are unwritten or lanes are missing; or if the lines cannot
    decide (`record_lines_of_run`)."""
    present = lanes >> first_lane(lanes)
    end = address + lanes_up_to_last(present) * event.size
    allocation = TrackedAllocation(state, allocation_of_range(state, event, address, end))
    if allocation.at < 0 or (event.space == GLOBAL and allocation.touched):
        return 0
    lines, bits, start = slot.at + state.slot_lines, slot.at + state.slot_written, 0
    if event.space == GLOBAL:
        lines, bits, start = (allocation.lines, allocation.written, allocation.start)
    if state.tools & INIT and bits:
        # No lane is missing. `first_unwritten` also sets the bits of what a store writes.
        contiguous = present & present + 1 == 0
        if (
            not contiguous
            or first_unwritten(state, bits, address - start, end - start, event.op) >= 0
        ):
            return 0
    return record_lines_of_run(state, event, slot, lines, address - (start & -LINE_BYTES), lanes)


@jitable
def record_lines_of_run(
    state: DetectorState, event: DetectorEvent, slot: ResidentBlock, lines: int, at: int, lanes: int
) -> int:
    """Records the access of a lane run (mask `lanes` of the warp, not 0) to memory whose lines
    begin at index `lines` of the state, from its byte `at` on, line by line: by
    `record_ordered_run`, else by `record_in_line`. `slot` is the block's state. Returns 1;
    ALL_SETTLED if all its reads are of bytes settled for the grid, of which nothing is recorded; 0
    if a line's cells have to decide, with the lines before it recorded."""
    size, thread, outcome = event.size, (event.warp << 5) + first_lane(lanes), ALL_SETTLED
    lanes >>= first_lane(lanes)
    # The logarithm of the size, which is a power of two.
    shift = first_lane(size)
    own_warp = WarpKnowledge(state, slot.at + state.slot_warps, event.warp)
    interval_word = event.block + 1 << BLOCK_AT | interval_of(state, slot, own_warp)
    time_bits = own_warp.time << TIME_AT
    access_bits = event.instruction | event.op << OP_AT
    while lanes:
        begin = at & LINE_BYTES - 1
        count = min(LINE_BYTES - begin >> shift, 32)
        present = lanes & (1 << count) - 1
        if present:
            end = begin + (lanes_up_to_last(present) << shift)
            footprint = footprint_of_contiguous(size, begin, end)
            words = words_of_contiguous(size, begin, end, present)
            line = LineShadow(state, lines, at >> LINE_SHIFT)
            tag_line(state, line, interval_word, event.space)
            if event.op != LOAD or are_settled_for_all(state, line, words) == 0:
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
                    select_warp(state, event, slot.at)
                    if record_in_line(state, line, thread, event.op, footprint, words) == 0:
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
def slot_of_event(state: DetectorState, event: DetectorEvent, plan: Plan) -> int:
    """Returns the index of the state of an event's block, whose slot `plan` has. Returns 0 if the
    event may not be processed here: `fast_path` is off, the block has not begun, or lanes leave a
    barrier and knowledge has to be joined (`exact`). If lanes of the event have waited at a
    barrier, makes the block the current one (`current_slot`, `current_block`) and lets them leave
    the barrier."""
    slot = ResidentBlock(state, state.slots_at + max(plan.slot, 0) * state.slot_words)
    waiting = WarpKnowledge(state, slot.at + state.slot_warps, event.warp).waiting & event.lanes
    if state.fast_path == 0 or slot.block != event.block + 1 or (waiting and state.exact):
        return 0
    if waiting:
        state.current_slot, state.current_block = slot.at, event.block
        leave_barrier(state, event.warp, event.lanes)
    return int(slot.at)


@jitable
def select_warp(state: DetectorState, event: DetectorEvent, slot: int) -> None:
    """Makes the first thread of an event's warp the current one, in the block at index `slot`, and
    sets the `current_` words of instruction and space, and `current_owner` to the block itself."""
    state.current_slot, state.current_block, state.current_owner = slot, event.block, event.block
    state.current_instruction, state.current_space = event.instruction, event.space
    set_current_thread(state, event.warp << 5)
