"""Checks the bytes of an access: run by run, word by word, and whether anybody wrote them."""

from __future__ import annotations

from typing import Any

from warploom.detector.cells import third_word, touch
from warploom.detector.knowledge import become_lane
from warploom.detector.layout import (
    A_CELLS,
    A_LINES,
    A_START,
    A_WRITTEN,
    ASYNC,
    CELL_WORDS,
    COPIES,
    E_INSTRUCTION,
    E_OP,
    E_SIZE,
    E_SPACE,
    EXACT,
    H_COUNT,
    IN_CELLS,
    INIT,
    K_UNWRITTEN,
    LINE_BYTES,
    LINE_SHIFT,
    LINE_WORDS,
    LOAD,
    ME_ADDRESS,
    ME_HOME,
    ME_SIZE,
    ME_STRIDE,
    ME_THREAD,
    RACE,
    SCOPE_AT,
    SHARED,
    SITE_WORDS,
    SITES_AT,
    SLOT_CELLS,
    SLOT_LINES,
    SLOT_WRITTEN,
    STORE,
    STRONG,
    TOOLS,
)
from warploom.detector.lines import open_line, stamp, tag_here, take_run
from warploom.detector.pool import report
from warploom.detector.quick_words import check_quickly, stored_word
from warploom.detector.releases import forget_releases
from warploom.detector.runs import place_of, words_of
from warploom.detector.settled import is_settled, settle, unsettle
from warploom.detector.shared_memory_owners import shared_key
from warploom.detector.touched import touch_run
from warploom.simt.lane_counts import first_lane, jitable

SIMPLE = COPIES | STRONG | 3 << SCOPE_AT
"""Flags of accesses that `check_quickly` may take."""


@jitable
def take_lines(
    s: Any, e: Any, memory: Any, addresses: Any, data: Any, lanes: int, end: int, row: int
) -> None:
    """Take a weak access of lanes whose addresses are evenly spaced from the current one on, up to
    the end of the last one's bytes; what a line cannot tell, lane by lane. The current thread's
    lane reaches the current address, the lanes behind it what follows: those before it, if the
    stride is negative. Those of the mask `lanes`, whose first bit is that of this lane, are
    there."""
    size, stride, at = e[E_SIZE], abs(s[ME_STRIDE]), s[ME_ADDRESS]
    thread, step = s[ME_THREAD], 1 if s[ME_STRIDE] > 0 else -1
    touch_run(s, e, end, row, lanes)
    if s[TOOLS] & INIT:
        check_run_written(s, e, end, row, lanes)
    if s[TOOLS] & RACE == 0:
        return
    lines, base = s[ME_HOME] + s[SLOT_LINES], 0
    if e[E_SPACE] != SHARED:
        lines, base = s[row + A_LINES], s[row + A_START] & -LINE_BYTES
    shift = int(size > 1) + int(size > 2) + int(size > 4) + int(size > 8)
    while at < end:
        number = at - base >> LINE_SHIFT
        line, begins = lines + number * LINE_WORDS, base + (number << LINE_SHIFT)
        behind = min(end - size, begins + LINE_BYTES - 1) - at
        count = (behind >> shift if stride == size else behind // stride) + 1
        last = at + (count - 1) * stride + size
        here = lanes & (1 << count) - 1
        place = place_of(size, step * stride, at - begins, last - begins)
        words = words_of(place, here)
        if here:
            stamp(s, line, tag_here(s), e[E_SPACE])
        if here and take_line(s, line, thread, e[E_OP], place, words) == 0:
            for lane_behind in range(count):
                own = thread + step * lane_behind
                if here >> lane_behind & 1:
                    become_lane(s, own)
                    s[ME_ADDRESS] = at + lane_behind * stride
                    check_words(s, e, memory, addresses, data, own & 31, row, 1)
        thread += step * count
        at += count * stride
        lanes >>= count


@jitable
def take_line(s: Any, line: int, thread: int, op: int, place: int, words: int) -> int:
    """Take a weak access of lanes from `thread` on to a place of a line and its words; return
    whether the line could, 0 where its cells must."""
    if op != LOAD:
        unsettle(s, line, place, words)
    elif is_settled(s, line, place, words):
        return 1
    return int(take_run(s, line, thread, op, place, words))


@jitable
def check_run_written(s: Any, e: Any, end: int, row: int, lanes: int) -> None:
    """Check with `check_written` what a run of lanes reaches, up to `end`, of which those of a mask
    are there."""
    size, first = e[E_SIZE], s[ME_ADDRESS]
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    stride, step = abs(s[ME_STRIDE]), 1 if s[ME_STRIDE] > 0 else -1
    whole = s[ME_STRIDE] == size and lanes & lanes + 1 == 0
    piece = end - first if whole else size
    thread, at = s[ME_THREAD], first
    while at < end:
        s[ME_ADDRESS], s[ME_SIZE] = at, piece
        if lanes & 1:
            check_written(s, e, flags, row)
        lanes >>= 1
        at += max(stride, piece)
        s[ME_THREAD] += step
    s[ME_THREAD], s[ME_ADDRESS], s[ME_SIZE] = thread, first, size


@jitable
def flags_here(s: Any, e: Any) -> int:
    """Return the flags of an event's instruction; a reduction by an agent is strong where it
    writes, not where it reads what it adds."""
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    return int(flags & ~STRONG if flags & ASYNC and e[E_OP] == LOAD else flags)


@jitable
def check_words(
    s: Any, e: Any, memory: Any, addresses: Any, data: Any, lane: int, row: int, writes: int
) -> None:
    """Checks the access of the current thread, which lies in one line, against those before it."""
    at, shared = s[ME_ADDRESS], int(e[E_SPACE] == SHARED)
    flags = flags_here(s, e)
    lines, cells, base = s[ME_HOME] + s[SLOT_LINES], s[ME_HOME] + s[SLOT_CELLS], 0
    if not shared:
        lines, cells, base = s[row + A_LINES], s[row + A_CELLS], s[row + A_START] & -LINE_BYTES
    number = at - base >> LINE_SHIFT
    line, place = lines + number * LINE_WORDS, at - base & LINE_BYTES - 1
    cell = cells + (at - base >> 2) * CELL_WORDS
    alone = place_of(e[E_SIZE], 0, place, place + e[E_SIZE])
    if e[E_OP] != LOAD:
        unsettle(s, line, alone, words_of(alone, 1))
    elif flags & ~COPIES == 0 and is_settled(s, line, alone, words_of(alone, 1)):
        return
    if flags & ~SIMPLE == 0 and check_quickly(s, e, data, lane, line, cell):
        return
    stamp(s, line, tag_here(s), e[E_SPACE])
    if s[line + H_COUNT] != IN_CELLS:
        first = cells + number * (LINE_BYTES // 4) * CELL_WORDS
        open_line(s, e, line, first, base + (number << LINE_SHIFT), memory, addresses, data)
    check_cells(s, e, data, lane, line, cell, writes)


@jitable
def check_cells(s: Any, e: Any, data: Any, lane: int, line: int, cell: int, writes: int) -> None:
    """Checks each aligned four bytes of an access against those before it."""
    at, end, op = s[ME_ADDRESS], s[ME_ADDRESS] + e[E_SIZE], e[E_OP] if writes else LOAD
    flags = flags_here(s, e)
    word = at & ~3
    while word < end:
        bytes_, value = 15, 0
        if word < at or word + 4 > end:
            bytes_ = (15 << max(at - word, 0) & 15) & (15 >> max(word + 4 - end, 0))
        if op == STORE:
            value = stored_word(e, data, lane, word - at)
        strong = touch(s, cell, third_word(s, op, bytes_, flags), value)
        if op == LOAD and flags & ~COPIES == 0:
            settle(s, line, cell, word & LINE_BYTES - 1, bytes_)
        elif strong and op == STORE and s[EXACT] and flags & STRONG == 0:
            forget_releases(s, shared_key(s, at) if e[E_SPACE] == SHARED else at)
        cell += CELL_WORDS
        word += 4


@jitable
def check_written(s: Any, e: Any, flags: int, row: int) -> None:
    """Reports a read of bytes that nobody has written, but not where it only copies; what is
    written is written from then on."""
    shared = e[E_SPACE] == SHARED
    bits = s[ME_HOME] + s[SLOT_WRITTEN]
    base = 0
    if not shared:
        bits, base = s[row + A_WRITTEN], s[row + A_START]
        if bits == 0:
            return
    place = s[ME_ADDRESS] - base
    missing = first_unwritten(s, bits, place, place + s[ME_SIZE], e[E_OP])
    if missing >= 0 and e[E_OP] != STORE and flags & COPIES == 0:
        lanes, size = (base + missing - s[ME_ADDRESS]) // e[E_SIZE], e[E_SIZE]
        thread = s[ME_THREAD]
        s[ME_THREAD] = thread + lanes
        report(s, K_UNWRITTEN, -1, -1, s[ME_ADDRESS] + lanes * size, size, e[E_OP])
        s[ME_THREAD] = thread


@jitable
def first_unwritten(s: Any, bits: int, place: int, end: int, op: int) -> int:
    """Return the first byte from `place` to `end` that nobody has written, by its bit from `bits`
    on, -1 where there is none; what is not only read is written from then on."""
    missing = -1
    while place < end:
        count = min(32 - (place & 31), end - place)
        mask = ((1 << count) - 1) << (place & 31)
        word = bits + (place >> 5)
        absent = mask & ~s[word]
        if absent and missing < 0:
            missing = (place & ~31) + first_lane(absent)
        if op != LOAD:
            s[word] |= mask
        place += count
    return missing
