"""Takes the most frequent events in few steps, where what is kept of their memory tells that they
are in order: weak accesses of lanes that follow each other. Everything else is for
`detect.detect_event`, which comes to the same.
"""

from __future__ import annotations

from typing import Any

from warploom.detector.barriers import depart
from warploom.detector.bounds import row_of_range
from warploom.detector.knowledge import become, interval_of
from warploom.detector.layout import (
    A_LINES,
    A_START,
    A_TOUCHED,
    A_WRITTEN,
    B_BLOCK,
    BLOCK_AT,
    COPIES,
    E_BLOCK,
    E_HEADS,
    E_INSTRUCTION,
    E_LANES,
    E_OP,
    E_SHOWN,
    E_SIZE,
    E_SPACE,
    E_WARP,
    EXACT,
    FEW_STEPS,
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
from warploom.detector.lines import stamp, take_alone
from warploom.detector.memory_words import first_unwritten, take_line
from warploom.detector.runs import place_of_row, words_of_row
from warploom.detector.settled import are_settled_for_all
from warploom.simt.lane_counts import count_lanes, first_lane, jitable, last_lane
from warploom.simt.schedule_layout import SLOT

ALL_SETTLED = 2
"""Returned where all that a row reaches is settled: so it is for other lanes of the warp."""


def detect_rows(s: Any, e: Any, plan: Any, firsts: Any, shift: int, stride: int) -> int:
    """Take an event of an access whose E_SHOWN and E_HEADS are known; return whether it was taken.
    `firsts` has the address of every lane whose number is a multiple of 1 << `shift`; those behind
    it follow by the stride. What was taken of an event that was not as a whole may be taken
    again."""
    slot = slot_of(s, e, plan)
    weak = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS] & ~COPIES == 0
    if not weak or slot == 0:
        return 0
    heads, settled, known, like = e[E_HEADS], 0, 0, 0
    while heads:
        others = heads & heads - 1
        row = e[E_SHOWN] & -(heads & -heads)
        if others:
            row &= (others & -others) - 1
        head = first_lane(row)
        address = firsts[head >> shift] + (head & (1 << shift) - 1) * stride
        if settled == 0 or address != known or row >> head != like:
            taken = take_row(s, e, slot, address, row)
            if taken == 0:
                return 0
            settled, known, like = int(taken == ALL_SETTLED), address, row >> head
        heads = others
    return 1


@jitable
def take_row(s: Any, e: Any, slot: int, address: int, lanes: int) -> int:
    """Take the access of lanes of which the first reaches an address, and each what follows the
    lane before it; return whether it was taken, and whether all was settled (ALL_SETTLED)."""
    there = lanes >> first_lane(lanes)
    end = address + lanes_up_to_last(there) * e[E_SIZE]
    row = row_of_range(s, e, address, end)
    if row < 0 or (e[E_SPACE] == GLOBAL and s[row + A_TOUCHED]):
        return 0
    lines, bits, start = slot + s[SLOT_LINES], slot + s[SLOT_WRITTEN], 0
    if e[E_SPACE] == GLOBAL:
        lines, bits, start = s[row + A_LINES], s[row + A_WRITTEN], s[row + A_START]
    if s[TOOLS] & INIT and bits:
        together = there & there + 1 == 0
        if not together or first_unwritten(s, bits, address - start, end - start, e[E_OP]) >= 0:
            return 0
    return take_lines_of_row(s, e, slot, lines, address - (start & -LINE_BYTES), lanes)


@jitable
def take_lines_of_row(s: Any, e: Any, slot: int, lines: int, at: int, lanes: int) -> int:
    """Take the access of lanes in a row to memory whose `lines` begin there, from byte `at` on;
    return whether its lines could, and whether all was settled (ALL_SETTLED)."""
    size, thread, taken = e[E_SIZE], (e[E_WARP] << 5) + first_lane(lanes), ALL_SETTLED
    lanes >>= first_lane(lanes)
    shift = first_lane(size)
    warp_at = slot + s[SLOT_WARPS] + e[E_WARP] * WARP_WORDS
    who = e[E_BLOCK] + 1 << BLOCK_AT | interval_of(s, slot, warp_at)
    time = s[warp_at + V_TIME] << TIME_AT
    what = e[E_INSTRUCTION] | e[E_OP] << OP_AT
    while lanes:
        begin = at & LINE_BYTES - 1
        count = min(LINE_BYTES - begin >> shift, 32)
        here = lanes & (1 << count) - 1
        if here:
            end = begin + (lanes_up_to_last(here) << shift)
            place, words = place_of_row(size, begin, end), words_of_row(size, begin, end, here)
            line = lines + (at >> LINE_SHIFT) * LINE_WORDS
            stamp(s, line, who, e[E_SPACE])
            if e[E_OP] != LOAD or are_settled_for_all(s, line, words) == 0:
                taken = 1
                if take_alone(s, line, who, time | thread, what | place, words) == 0:
                    turn_to_warp(s, e, slot)
                    if take_line(s, line, thread, e[E_OP], place, words) == 0:
                        return 0
        at += count << shift
        thread += count
        lanes >>= count
    return taken


@jitable
def lanes_up_to_last(lanes: int) -> int:
    """Return how many lanes there are up to the last one of a mask that is not empty."""
    if lanes & lanes + 1 == 0:
        return count_lanes(lanes)
    return last_lane(lanes) + 1


@jitable
def slot_of(s: Any, e: Any, plan: Any) -> int:
    """Return where the state of an event's block begins, if its events can be taken here, else 0.
    Lanes that waited at a barrier go on."""
    slot = s[SLOTS_AT] + max(plan[SLOT], 0) * s[SLOT_WORDS]
    waiting = s[slot + s[SLOT_WARPS] + e[E_WARP] * WARP_WORDS + V_WAITING] & e[E_LANES]
    if s[FEW_STEPS] == 0 or s[slot + B_BLOCK] != e[E_BLOCK] + 1 or (waiting and s[EXACT]):
        return 0
    if waiting:
        s[ME_SLOT], s[ME_BLOCK] = slot, e[E_BLOCK]
        depart(s, e[E_WARP], e[E_LANES])
    return int(slot)


@jitable
def turn_to_warp(s: Any, e: Any, slot: int) -> None:
    """Turn to the warp of an event and to the memory that it reaches."""
    s[ME_SLOT], s[ME_BLOCK], s[ME_OWNER] = slot, e[E_BLOCK], e[E_BLOCK]
    s[ME_INSTRUCTION], s[ME_SPACE] = e[E_INSTRUCTION], e[E_SPACE]
    become(s, e[E_WARP] << 5)
