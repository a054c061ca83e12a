"""Settled bytes of a line: those of which weak reads need not be looked at, since no write of this
launch is in conflict with them and two earlier reads stand for them (`cells.keep_read`)."""

from __future__ import annotations

from typing import Any

from warploom.rules.distinct import jitable
from warploom.rules.happens_before.runs import begin_of, bytes_of, end_of
from warploom.rules.happens_before.words import (
    BLOCK_AT,
    EXACT,
    FLAGS_AT,
    H_COUNT,
    H_FAR,
    H_MORE,
    H_NEAR,
    H_OWN,
    H_OWN_TAG,
    H_OWN_WARP,
    H_RUNS,
    H_SETTLED,
    H_TAG,
    INLINE_RUNS,
    LINE_BYTES,
    LISTS,
    LOAD,
    LOW,
    ME_APART,
    ME_BLOCK,
    ME_INTERVAL,
    ME_SPACE,
    ME_SYNCED,
    ME_WARP,
    N_NEXT,
    N_THIRD,
    OP_AT,
    RUN_WORDS,
    SHARED,
    STRONG,
    W_FIRST,
)

WARPS_APART, BLOCKS_APART = 2, 3
"""Distances between two threads (`cells.distance`)."""

WARP_BITS = 8
"""Bits of a warp's number in its block: there are at most 64."""


@jitable
def is_settled(s: Any, line: int, place: int) -> int:
    """Return whether the bytes of a place of a line (`runs`) are settled for the current thread."""
    if s[line + H_SETTLED] == 0:
        return 0
    now = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
    near = s[line + H_TAG] == now
    own = s[line + H_OWN_TAG] == now and s[line + H_OWN_WARP] == own_warp(s)
    missing = 0
    for word in range(begin_of(place) >> 5, (end_of(place) + 31) >> 5):
        known = s[line + H_FAR + word]
        if near:
            known |= s[line + H_NEAR + word]
        if own:
            known |= s[line + H_OWN + word]
        missing |= bytes_of(place, word) & ~known
    return int(missing == 0)


@jitable
def own_warp(s: Any) -> int:
    """Returns the current warp and the time when its lanes synchronised last."""
    return int(s[ME_SYNCED] << WARP_BITS | s[ME_WARP])


@jitable
def settle(s: Any, line: int, cell: int, place: int, bytes_: int) -> None:
    """Notes that bytes of a cell, which begins at byte `place` of its line, are settled, if the
    weak read that came last makes them so: for all, where two blocks have read them and nobody has
    written them; for its block until the next barrier, where two warps have read them; for its warp
    until this synchronises, where two of its lanes have."""
    write = s[cell + W_FIRST]
    now = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
    if s[EXACT] or s[ME_APART] == 0 or not has_weak_reads_only(s, s[cell + LISTS]):
        return
    if s[ME_APART] == BLOCKS_APART:
        if write == 0:
            mark(s, line, place >> 5, bytes_ << (place & 31))
        return
    here = write >> BLOCK_AT == s[ME_BLOCK] + 1 or s[ME_SPACE] == SHARED
    if write == 0 or (write != now and here):
        mark(s, line, place >> 5, bytes_ << (place & 31))


@jitable
def settle_run(s: Any, line: int, place: int) -> None:
    """Note that the bytes of a place of a line are settled, if two runs that stand for the current
    weak read make them so, and no run of the line is a write."""
    if s[EXACT] or s[ME_APART] == 0:
        return
    for number in range(s[line + H_COUNT]):
        if s[run_at(s, line, number) + 2] >> OP_AT & 3 != LOAD:
            return
    for word in range(begin_of(place) >> 5, (end_of(place) + 31) >> 5):
        mark(s, line, word, bytes_of(place, word))


@jitable
def run_at(s: Any, line: int, number: int) -> int:
    """Returns where a line has a run."""
    if number < INLINE_RUNS:
        return line + H_RUNS + number * RUN_WORDS
    return int(s[line + H_MORE] + (number - INLINE_RUNS) * RUN_WORDS)


@jitable
def mark(s: Any, line: int, word: int, bits: int) -> None:
    """Adds to the settled bytes of a line, for as long as the distance of the two reads says."""
    now = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
    s[line + H_SETTLED] = 1
    if s[ME_APART] == BLOCKS_APART:
        s[line + H_FAR + word] |= bits
        return
    if s[ME_APART] == WARPS_APART:
        if s[line + H_TAG] != now:
            s[line + H_TAG] = now
            clear_bits(s, line + H_NEAR)
        s[line + H_NEAR + word] |= bits
        return
    if s[line + H_OWN_TAG] != now or s[line + H_OWN_WARP] != own_warp(s):
        s[line + H_OWN_TAG], s[line + H_OWN_WARP] = now, own_warp(s)
        clear_bits(s, line + H_OWN)
    s[line + H_OWN + word] |= bits


@jitable
def clear_bits(s: Any, at: int) -> None:
    """Clears the bits of a line's bytes."""
    for number in range(LINE_BYTES // 32):
        s[at + number] = 0


@jitable
def has_weak_reads_only(s: Any, lists: int) -> int:
    """Returns whether the lists of a cell have nothing but weak reads."""
    node = lists & LOW
    only = int(lists >> 32 == 0)
    while node and only:
        third = s[node + N_THIRD]
        only = int(third >> OP_AT & 3 == LOAD and third >> FLAGS_AT & STRONG == 0)
        node = s[node + N_NEXT]
    return only


@jitable
def unsettle(s: Any, line: int) -> None:
    """Notes that a line is written."""
    if s[line + H_SETTLED]:
        s[line + H_SETTLED] = s[line + H_TAG] = s[line + H_OWN_TAG] = 0
        clear_bits(s, line + H_FAR)
