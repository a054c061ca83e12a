"""Takes lanes of an access that lie far apart: fetches what is kept of their words all at once, and
takes each in few steps where its words are quiet. Others are for `memory_words.check_words`, which
would come to the same."""

from __future__ import annotations

from typing import Any

from warploom.detector.bounds import allocation
from warploom.detector.cells import ALL_BYTES, third_word
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
    H_REST,
    IN_CELLS,
    INIT,
    LINE_BYTES,
    LINE_SHIFT,
    LINE_WORDS,
    LISTS,
    LOAD,
    ME_HOME,
    ME_THREAD,
    R_FIRST,
    SHARED,
    SITE_WORDS,
    SITES_AT,
    SLOT_CELLS,
    SLOT_LINES,
    TOOLS,
    W_FIRST,
    W_VALUE,
)
from warploom.detector.quick_words import is_older, put_record
from warploom.detector.runs import place_of, words_of
from warploom.detector.settled import is_settled
from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import first_lane, jitable

WORD = 4
"""Bytes of a cell."""


@jitable
def fetch_records(s: Any, e: Any, addresses: Any, lanes: int) -> int:
    """Fetch what is kept of the words that lanes reach: they mostly lie far apart, and each would
    be waited for by itself. Of global memory, those of the first lane's allocation, whose row is
    returned if `take_lone_lane` may take lanes there, else 0."""
    low, high, base, row = 0, e[E_LIMIT], 0, 0
    lines, cells = s[ME_HOME] + s[SLOT_LINES], s[ME_HOME] + s[SLOT_CELLS]
    if e[E_SPACE] == GLOBAL:
        row = allocation(s, addresses[first_lane(lanes)])
        if row < 0:
            return 0
        low, high, base = s[row + A_START], s[row + A_END], s[row + A_START] & -LINE_BYTES
        lines, cells = s[row + A_LINES], s[row + A_CELLS]
    elif e[E_SPACE] != SHARED:
        return 0
    for lane in range(32):
        if lanes >> lane & 1 and low <= addresses[lane] < high:
            behind = addresses[lane] - base
            prefetch(s, lines + (behind >> LINE_SHIFT) * LINE_WORDS)
            prefetch(s, cells + (behind >> 2) * CELL_WORDS)
    return int(row * is_plain(s, e, row)) if row else 0


@jitable
def is_plain(s: Any, e: Any, row: int) -> int:
    """Returns whether an access is weak, of whole words, and to an allocation of which only races
    are of interest."""
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    if e[E_OP] == ATOMIC or flags & ~COPIES or e[E_PART] < WORD or s[row + A_TOUCHED]:
        return 0
    if s[TOOLS] & INIT and s[row + A_WRITTEN]:
        return 0
    return int(e[E_OP] == LOAD or s[row + A_CONSTANT] == 0)


@jitable
def take_lone_lane(
    s: Any, e: Any, data: Any, address: int, lane: int, thread: int, row: int
) -> int:
    """Take the access of a lane to an allocation, if it is of settled bytes, or of words that this
    thread alone reaches, or that barriers order; return whether it was taken."""
    size, base = e[E_SIZE], s[row + A_START] & -LINE_BYTES
    if address < s[row + A_START] or address + size > s[row + A_END] or address & size - 1:
        return 0
    line = s[row + A_LINES] + (address - base >> LINE_SHIFT) * LINE_WORDS
    if s[line + H_REST]:
        place = address - base & LINE_BYTES - 1
        reads, at = int(e[E_OP] == LOAD), place_of(size, 0, place, place + size)
        return int(reads and is_settled(s, line, at, words_of(at, 1)))
    if s[line + H_COUNT] != IN_CELLS:
        return 0
    s[ME_THREAD] = thread
    cell = s[row + A_CELLS] + (address - base >> 2) * CELL_WORDS
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    third = third_word(s, e[E_OP], ALL_BYTES, flags)
    for word in range(size // WORD):
        if s[cell + LISTS] or (s[cell + W_FIRST] and not is_older(s, cell + W_FIRST)):
            return 0
        if s[cell + R_FIRST] and not is_older(s, cell + R_FIRST):
            return 0
        if e[E_OP] == LOAD:
            put_record(s, cell + R_FIRST, third)
        else:
            put_record(s, cell + W_FIRST, third)
            s[cell + W_VALUE] = whole_word(e, data, lane, word)
            s[cell + R_FIRST] = 0
        cell += CELL_WORDS
    return 1


@jitable
def whole_word(e: Any, data: Any, lane: int, word: int) -> int:
    """Returns a word of what a lane stores, in elements of whole words."""
    at, part = word * WORD, e[E_PART]
    if part == e[E_SIZE]:
        at += lane * part
    else:
        at = (at // part * 32 + lane) * part + at % part
    value = int(data[at]) | int(data[at + 1]) << 8
    return value | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
