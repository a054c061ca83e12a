"""Checks the bytes of an access: line by line, word by word, and whether anybody wrote them."""

from __future__ import annotations

from typing import Any

from warploom.rules.distinct import jitable
from warploom.rules.happens_before.cells import third_word, touch
from warploom.rules.happens_before.knowledge import become_lane
from warploom.rules.happens_before.lines import open_line, stamp, take_line
from warploom.rules.happens_before.pool import report
from warploom.rules.happens_before.releases import forget_releases
from warploom.rules.happens_before.words import (
    A_CELLS,
    A_LINES,
    A_START,
    A_WRITTEN,
    CELL_WORDS,
    COPIES,
    E_BASE,
    E_INSTRUCTION,
    E_OP,
    E_PART,
    E_SIZE,
    E_SPACE,
    E_WARP,
    EXACT,
    H_STATE,
    IN_CELLS,
    INIT,
    K_UNWRITTEN,
    LINE_BYTES,
    LINE_WORDS,
    LOAD,
    ME_ADDRESS,
    ME_BLOCK,
    ME_SIZE,
    ME_SLOT,
    RACE,
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


@jitable
def take_lines(s: Any, e: Any, memory: Any, addresses: Any, data: Any, row: int) -> None:
    """Takes an access of whole lines; what a line cannot tell, lane by lane."""
    size, first, shared = e[E_SIZE], addresses[0], int(e[E_SPACE] == SHARED)
    lanes_of_line = LINE_BYTES // size
    begins = e[E_WARP] << 5
    if s[TOOLS] & INIT:
        s[ME_ADDRESS], s[ME_SIZE] = first, 32 * size
        check_written(s, e, s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS], row)
        s[ME_SIZE] = size
    if s[TOOLS] & RACE == 0:
        return
    lines = s[ME_SLOT] + s[SLOT_LINES] if shared else s[row + A_LINES]
    at = first if shared else first - (s[row + A_START] & -LINE_BYTES)
    line = lines + at // LINE_BYTES * LINE_WORDS
    for number in range(size // 4):
        thread = begins + number * lanes_of_line
        become_lane(s, thread)
        stamp(s, line, shared)
        if take_line(s, line, thread, e[E_OP], size) == 0:
            for lane in range(number * lanes_of_line, (number + 1) * lanes_of_line):
                become_lane(s, begins + lane)
                s[ME_ADDRESS] = addresses[lane]
                check_words(s, e, memory, data, lane, row, 1)
        line += LINE_WORDS


@jitable
def check_words(s: Any, e: Any, memory: Any, data: Any, lane: int, row: int, writes: int) -> None:
    """Checks each aligned four bytes of an access against those before it."""
    at, end = s[ME_ADDRESS], s[ME_ADDRESS] + e[E_SIZE]
    op = e[E_OP] if writes else LOAD
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    shared = int(e[E_SPACE] == SHARED)
    lines, cells, base = s[ME_SLOT] + s[SLOT_LINES], s[ME_SLOT] + s[SLOT_CELLS], 0
    if not shared:
        lines, cells, base = s[row + A_LINES], s[row + A_CELLS], s[row + A_START] & -LINE_BYTES
    word = at & ~3
    while word < end:
        bytes_, value = 15, 0
        if word < at or word + 4 > end:
            bytes_ = (15 << max(at - word, 0) & 15) & (15 >> max(word + 4 - end, 0))
        if op == STORE:
            for byte in range(4):
                if bytes_ >> byte & 1:
                    value |= stored_byte(e, data, lane, word + byte - at) << 8 * byte
        number = (word - base) // LINE_BYTES
        line = lines + number * LINE_WORDS
        stamp(s, line, shared)
        if s[line + H_STATE] != IN_CELLS:
            first = cells + number * (LINE_BYTES // 4) * CELL_WORDS
            open_line(s, line, first, memory, e[E_BASE] + base + number * LINE_BYTES)
        cell = cells + (word - base) // 4 * CELL_WORDS
        strong = touch(s, cell, third_word(s, op, bytes_, flags), value)
        if strong and op == STORE and s[EXACT] and flags & STRONG == 0:
            forget_releases(s, -1 - (s[ME_BLOCK] << 24 | at) if shared else at)
        word += 4


@jitable
def stored_byte(e: Any, data: Any, lane: int, place: int) -> int:
    """Returns a byte of what a lane stores."""
    part = e[E_PART]
    return int(data[(place // part * 32 + lane) * part + place % part])


@jitable
def check_written(s: Any, e: Any, flags: int, row: int) -> None:
    """Reports a read of bytes that nobody has written, but not where it only copies; what is
    written is written from then on."""
    shared = e[E_SPACE] == SHARED
    bits = s[ME_SLOT] + s[SLOT_WRITTEN]
    base = 0
    if not shared:
        bits, base = s[row + A_WRITTEN], s[row + A_START]
        if bits == 0:
            return
    place = s[ME_ADDRESS] - base
    end, missing = place + s[ME_SIZE], 0
    while place < end:
        count = min(32 - (place & 31), end - place)
        mask = ((1 << count) - 1) << (place & 31)
        word = bits + (place >> 5)
        missing |= mask & ~s[word]
        if e[E_OP] != LOAD:
            s[word] |= mask
        place += count
    if missing and e[E_OP] != STORE and flags & COPIES == 0:
        report(s, K_UNWRITTEN, -1, -1, s[ME_ADDRESS], e[E_SIZE], e[E_OP])
