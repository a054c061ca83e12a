"""Lines of 128 bytes that warps reach as a whole, lane by lane: one record stands for all lanes.

What a line cannot tell goes on in its cells (`cells`), which are written when that comes up.
"""

from __future__ import annotations

from typing import Any

from warploom.rules.distinct import jitable
from warploom.rules.happens_before.cells import distance
from warploom.rules.happens_before.pool import give_back_all, push
from warploom.rules.happens_before.words import (
    BLOCK_AT,
    BYTES_AT,
    CELL_WORDS,
    EXACT,
    FRESH,
    H_BLOCK,
    H_INTERVAL,
    H_OTHER_READ,
    H_READ,
    H_STATE,
    H_WRITE,
    IN_CELLS,
    LINE_BYTES,
    LISTS,
    LOAD,
    LOW,
    ME_BLOCK,
    ME_INSTRUCTION,
    ME_INTERVAL,
    ME_SYNCED,
    ME_TIME,
    MIXED,
    N_FIRST,
    OP_AT,
    R_FIRST,
    ROW,
    THREAD_BITS,
    THREADS,
    TIME_AT,
    W_FIRST,
    W_VALUE,
    WHOLE,
)

SIZE_BITS = 63
"""The bits of a line's record, from BYTES_AT on, that hold the bytes of a lane."""


@jitable
def take_line(s: Any, line: int, thread: int, op: int, size: int) -> int:
    """Takes a weak access of a whole warp, `size` bytes a lane, of which the lanes from `thread` on
    reach this line; returns whether the line could, 0 where its cells must."""
    state = s[line + H_STATE]
    if state == IN_CELLS:
        return 0
    third = s[ME_INSTRUCTION] | op << OP_AT | size << BYTES_AT
    if state == WHOLE:
        if s[line + H_WRITE] and not is_before(s, line + H_WRITE, thread, size):
            return 0
        if op != LOAD:
            for read in range(H_READ, H_OTHER_READ + 1, H_OTHER_READ - H_READ):
                if s[line + read] and not is_before(s, line + read, thread, size):
                    return 0
    s[line + H_STATE] = WHOLE
    at = line + H_WRITE
    if op == LOAD:
        at = line + H_READ
        if s[at] and not is_before(s, at, thread, size):
            at = line + H_OTHER_READ
            if s[at] and not is_before(s, at, thread, size):
                if s[EXACT]:
                    return 0
                at = farther(s, line, thread)
    else:
        s[line + H_READ] = s[line + H_OTHER_READ] = 0
    if at:
        s[at] = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
        s[at + 1] = s[ME_TIME] << TIME_AT | thread
        s[at + 2] = third
    return 1


@jitable
def is_before(s: Any, at: int, thread: int, size: int) -> int:
    """Returns whether the record at `at` is ordered before the current warp's access, in which each
    lane reaches what `thread` and `size` say."""
    first, second = s[at], s[at + 1]
    if first >> BLOCK_AT != s[ME_BLOCK] + 1:
        return 0
    if first & LOW < s[ME_INTERVAL]:
        return 1
    other = second & THREAD_BITS
    if other == thread:
        return int(s[at + 2] >> BYTES_AT & SIZE_BITS == size or second >> TIME_AT < s[ME_SYNCED])
    return int(other >> 5 == thread >> 5 and second >> TIME_AT < s[ME_SYNCED])


@jitable
def farther(s: Any, line: int, thread: int) -> int:
    """Returns where the current read is to be kept, where two others are: nowhere (0), if these lie
    as far apart (`cells.keep_read`)."""
    read, other = line + H_READ, line + H_OTHER_READ
    first, second = s[ME_BLOCK] + 1 << BLOCK_AT, thread
    kept = distance(s[read], s[read + 1], s[other], s[other + 1])
    return other if distance(s[read], s[read + 1], first, second) > kept else 0


@jitable
def stamp(s: Any, line: int, shared: int) -> None:
    """Notes who reaches a line. In shared memory, what it knows of an earlier block is forgotten,
    and what it knows of earlier intervals, which is ordered before all that follows, but for what
    agents do."""
    block = s[ME_BLOCK] + 1
    if s[line + H_BLOCK] == block:
        if s[line + H_INTERVAL] != s[ME_INTERVAL]:
            s[line + H_INTERVAL] = s[ME_INTERVAL]
            if shared and s[ROW] == s[THREADS]:
                forget(s, line)
    elif s[line + H_BLOCK] == 0 or shared:
        s[line + H_BLOCK] = block
        s[line + H_INTERVAL] = s[ME_INTERVAL]
        forget(s, line)
    else:
        s[line + H_BLOCK] = MIXED


@jitable
def forget(s: Any, line: int) -> None:
    """Makes a line fresh; its cells are written anew when they are needed again."""
    s[line + H_STATE] = FRESH
    s[line + H_WRITE] = s[line + H_READ] = s[line + H_OTHER_READ] = 0


@jitable
def open_line(s: Any, line: int, cells: int, memory: Any, base: int) -> None:
    """Has a line's cells go on for it; `base` is where its bytes are on the host."""
    if s[line + H_STATE] == IN_CELLS:
        return
    s[line + H_STATE] = IN_CELLS
    for word in range(LINE_BYTES // 4):
        cell = cells + word * CELL_WORDS
        give_back_all(s, s[cell + LISTS])
        s[cell + LISTS] = 0
        open_record(s, line + H_WRITE, cell + W_FIRST, word)
        open_record(s, line + H_READ, cell + R_FIRST, word)
        if s[line + H_OTHER_READ]:
            s[cell + LISTS] = push(s, 0, 0, 0, 0, 0)
            open_record(s, line + H_OTHER_READ, s[cell + LISTS] + N_FIRST, word)
        if s[line + H_WRITE]:
            value = 0
            for byte in range(4):
                value |= int(memory[base + 4 * word + byte]) << 8 * byte
            s[cell + W_VALUE] = value


@jitable
def open_record(s: Any, record: int, to: int, word: int) -> None:
    """Writes the record of one of a line's words at `to`."""
    s[to] = s[record]
    if s[record]:
        third = s[record + 2]
        size = third >> BYTES_AT & SIZE_BITS
        s[to + 1] = s[record + 1] + 4 * word // size
        s[to + 2] = third & ~(SIZE_BITS << BYTES_AT) | 15 << BYTES_AT
