"""Takes an access of one lane in few steps, where each of its words is reached by a single thread
at a time, or only read. Everything else is for `cells.touch`, which would come to the same."""

from __future__ import annotations

from typing import Any

from warploom.detector.cells import (
    ALL_BYTES,
    distance,
    farthest,
    is_wide,
    third_word,
)
from warploom.detector.layout import (
    AGENT,
    BLOCK_AT,
    BYTES_AT,
    CELL_WORDS,
    E_INSTRUCTION,
    E_OP,
    E_PART,
    E_SIZE,
    EXACT,
    FLAGS_AT,
    H_COUNT,
    H_TAG,
    IN_CELLS,
    LISTS,
    LOAD,
    LOW,
    ME_ADDRESS,
    ME_BLOCK,
    ME_INTERVAL,
    ME_OWNER,
    ME_SPACE,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    N_FIRST,
    N_NEXT,
    N_SECOND,
    N_THIRD,
    OP_AT,
    R_FIRST,
    R_THIRD,
    SHARED,
    SITE_WORDS,
    SITES_AT,
    THREAD_BITS,
    TIME_AT,
    W_FIRST,
    W_THIRD,
    W_VALUE,
)
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import jitable


@jitable
def check_quickly(s: Any, e: Any, data: Any, lane: int, line: int, cell: int) -> int:
    """Takes the access of the current thread, weak or of a kind that `is_wide` says, to a line and
    a first cell in it; returns whether it could, 0 where its words are to be checked one by one."""
    shared = int(s[ME_SPACE] == SHARED)
    if s[line + H_COUNT] != IN_CELLS:
        return 0
    if shared and s[line + H_TAG] != s[ME_OWNER] + 1 << BLOCK_AT | s[ME_INTERVAL]:
        return 0
    size, behind, bytes_ = e[E_SIZE], s[ME_ADDRESS] & 3, ALL_BYTES
    if size < 4:
        bytes_ = (1 << size) - 1 << behind
    third = third_word(s, e[E_OP], bytes_, s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS])
    for word in range((size + 3) // 4):
        if not is_quiet(s, cell, third):
            return 0
        if is_wide(third):
            if not have_two(s, s[cell + LISTS] >> 32, third):
                return 0
        elif e[E_OP] == LOAD:
            if not read_quickly(s, cell, third):
                return 0
        else:
            write_quickly(s, cell, third, stored_word(e, data, lane, 4 * word - behind))
        cell += CELL_WORDS
    return 1


@jitable
def stored_word(e: Any, data: Any, lane: int, place: int) -> int:
    """Returns the word of what a lane stores that begins at byte `place` of it, which may be before
    the first; bytes that the lane does not store are 0."""
    part, size, value = e[E_PART], e[E_SIZE], 0
    begin, end = max(place, 0), min(place + 4, size)
    at = (begin // part * 32 + lane) * part + begin % part
    if part == size:
        at = lane * size + begin
    for byte in range(begin, end):
        value |= int(data[at]) << 8 * (byte - place)
        at += 1
        if (byte + 1) % part == 0:
            at += 31 * part
    return value


@jitable
def is_quiet(s: Any, cell: int, third: int) -> int:
    """Returns whether all that was done to a cell is ordered before what the current thread does,
    as far as `touch` compares the two."""
    lists = s[cell + LISTS]
    if s[cell + W_FIRST] and not is_older(s, cell + W_FIRST):
        return 0
    if is_wide(third):
        return int(lists & LOW == 0 and (s[cell + R_FIRST] == 0 or is_older(s, cell + R_FIRST)))
    if third >> OP_AT & 3 == LOAD:
        return int(lists == 0)
    if lists:
        return 0
    others = ~(third >> BYTES_AT & ALL_BYTES)
    if s[cell + W_FIRST] and s[cell + W_THIRD] >> BYTES_AT & ALL_BYTES & others:
        return 0
    if s[cell + R_FIRST]:
        return int(is_older(s, cell + R_FIRST) and s[cell + R_THIRD] >> BYTES_AT & others == 0)
    return 1


@jitable
def is_older(s: Any, record: int) -> int:
    """Returns whether a record is of the current thread, or barriers order it before: all of which
    `is_ordered` knows without what threads know of each other."""
    first, second = s[record], s[record + 1]
    if first >> BLOCK_AT != s[ME_BLOCK] + 1:
        return int(s[ME_SPACE] == SHARED and not is_peer(s, first >> BLOCK_AT))
    thread = second & THREAD_BITS
    if thread & AGENT:
        return 0
    if first & LOW < s[ME_INTERVAL] or thread == s[ME_THREAD]:
        return 1
    return int(thread >> 5 == s[ME_THREAD] >> 5 and second >> TIME_AT < s[ME_SYNCED])


@jitable
def read_quickly(s: Any, cell: int, third: int) -> int:
    """Keeps a weak read; returns whether it could."""
    r = cell + R_FIRST
    others = ~(third >> BYTES_AT & ALL_BYTES)
    if s[r] == 0 or (s[r + 2] >> BYTES_AT & ALL_BYTES & others == 0 and is_older(s, r)):
        put_record(s, r, third)
        return 1
    return 0


@jitable
def write_quickly(s: Any, cell: int, third: int, value: int) -> None:
    """Keeps a weak write to a cell about which nothing else has to be known."""
    put_record(s, cell + W_FIRST, third)
    s[cell + W_VALUE] = value
    s[cell + R_FIRST] = 0


@jitable
def put_record(s: Any, at: int, third: int) -> None:
    """Writes the record of the current access."""
    s[at] = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
    s[at + 1] = s[ME_TIME] << TIME_AT | s[ME_THREAD]
    s[at + 2] = third


@jitable
def have_two(s: Any, node: int, third: int) -> int:
    """Returns whether a list begins with two accesses like the current one that stand for all
    (`cells.keep_strong`), it too."""
    if s[EXACT] or node == 0 or s[node + N_NEXT] == 0:
        return 0
    other = s[node + N_NEXT]
    if not (is_alike(s, node, third) and is_alike(s, other, third)):
        return 0
    between = distance(
        s[node + N_FIRST], s[node + N_SECOND], s[other + N_FIRST], s[other + N_SECOND]
    )
    return int(between >= farthest(s))


@jitable
def is_alike(s: Any, node: int, third: int) -> int:
    """Returns whether a record of a list is of the same op and flags as the current access, and of
    its block and interval where it is in shared memory."""
    old = s[node + N_THIRD]
    if old >> FLAGS_AT != third >> FLAGS_AT or (old ^ third) >> OP_AT & 3:
        return 0
    now = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
    return int(s[ME_SPACE] != SHARED or s[node + N_FIRST] == now)
