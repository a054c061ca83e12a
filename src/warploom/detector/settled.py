"""Settled bytes of a line: those of which weak reads need not be looked at, since no write of this
launch is in conflict with them and two earlier reads stand for them (`cells.keep_read`)."""

from __future__ import annotations

from typing import Any

from warploom.detector.layout import (
    BLOCK_AT,
    EXACT,
    FEW_FROM,
    FLAGS_AT,
    H_COUNT,
    H_REST,
    H_RUN,
    IN_FORCE,
    LINE_BYTES,
    LISTS,
    LOAD,
    LOW,
    ME_BLOCK,
    ME_DISTANCE,
    ME_INTERVAL,
    ME_SPACE,
    ME_SYNCED,
    ME_WARP,
    MORE_FROM,
    N_NEXT,
    N_THIRD,
    OP_AT,
    POOL_AT,
    POOL_END,
    Q_FAR,
    Q_NEAR,
    Q_OWN,
    Q_OWN_TAG,
    Q_OWN_WARP,
    Q_TAG,
    REST_WORDS,
    RUN_WORDS,
    SETTLED_WORDS,
    SHARED,
    STRONG,
    W_FIRST,
    X_FAR_WORDS,
    X_FEW,
    X_MORE,
    X_RUN,
    X_SETTLED,
)
from warploom.detector.pool import take
from warploom.detector.runs import begin_of, bytes_of, end_of
from warploom.simt.lane_counts import jitable

OTHER_WARP, OTHER_BLOCK = 2, 3
"""Distances between two threads (`cells.distance`)."""

POOL_FOR_THREADS = 1 << 27
"""So many words of the pool are left for what threads know of each other."""

WARP_BITS = 8
"""Bits of a warp's number in its block: there are at most 64."""


@jitable
def are_settled_for_all(s: Any, line: int, words: int) -> int:
    """Return whether some words of a line are settled for all threads."""
    rest = s[line + H_REST]
    return int(rest != 0 and words & ~s[rest + X_FAR_WORDS] == 0)


@jitable
def is_settled(s: Any, line: int, place: int, words: int) -> int:
    """Return whether the bytes of a place of a line and its words (`runs`) are settled for the
    current thread."""
    at = settled_at(s, line)
    if at == 0:
        return 0
    if are_settled_for_all(s, line, words):
        return 1
    now = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL]
    near = s[at + Q_TAG] == now
    own = s[at + Q_OWN_TAG] == now and s[at + Q_OWN_WARP] == own_warp(s)
    missing = 0
    for word in range(begin_of(place) >> 5, (end_of(place) + 31) >> 5):
        known = s[at + Q_FAR + word]
        if near:
            known |= s[at + Q_NEAR + word]
        if own:
            known |= s[at + Q_OWN + word]
        missing |= bytes_of(place, words, word) & ~known
    return int(missing == 0)


@jitable
def settled_at(s: Any, line: int) -> int:
    """Return where the settled bytes of a line stand; 0 where it has none."""
    rest = s[line + H_REST]
    if rest == 0 or s[rest + X_SETTLED] & IN_FORCE == 0:
        return 0
    return int(s[rest + X_SETTLED] - IN_FORCE)


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
    if s[EXACT] or s[ME_DISTANCE] == 0 or not has_weak_reads_only(s, s[cell + LISTS]):
        return
    if s[ME_DISTANCE] == OTHER_BLOCK:
        if write == 0:
            mark(s, line, place >> 5, bytes_ << (place & 31))
        return
    here = write >> BLOCK_AT == s[ME_BLOCK] + 1 or s[ME_SPACE] == SHARED
    if write == 0 or (write != now and here):
        mark(s, line, place >> 5, bytes_ << (place & 31))


@jitable
def settle_run(s: Any, line: int, place: int, words: int) -> None:
    """Note that the bytes of a place of a line and its words are settled, if two runs that stand
    for the current weak read make them so, and no run of the line writes there."""
    if s[EXACT] or s[ME_DISTANCE] == 0:
        return
    for number in range(s[line + H_COUNT]):
        run = run_at(s, line, number)
        if s[run + 2] >> OP_AT & 3 != LOAD and s[run + 3] & words:
            return
    for word in range(begin_of(place) >> 5, (end_of(place) + 31) >> 5):
        mark(s, line, word, bytes_of(place, words, word))


@jitable
def run_at(s: Any, line: int, number: int) -> int:
    """Returns where a line has a run."""
    if number == 0:
        return line + H_RUN
    rest = s[line + H_REST]
    if number < FEW_FROM:
        return int(rest + X_RUN)
    if number < MORE_FROM:
        return int(s[rest + X_FEW] + (number - FEW_FROM) * RUN_WORDS)
    return int(s[rest + X_MORE] + (number - MORE_FROM) * RUN_WORDS)


@jitable
def rest_of(s: Any, line: int) -> int:
    """Returns where the rest of a line is, which it is given when it first needs it; 0 where there
    is no room."""
    if s[line + H_REST] == 0:
        s[line + H_REST] = take_for_lines(s, REST_WORDS)
    return int(s[line + H_REST])


@jitable
def take_for_lines(s: Any, size: int) -> int:
    """Return the index of so many words, where a cache line of the host begins; 0 where too little
    would be left for what threads know of each other: lines can do without."""
    s[POOL_AT] = (s[POOL_AT] + 7) & -8
    if s[POOL_AT] + size + POOL_FOR_THREADS > s[POOL_END]:
        return 0
    return take(s, size)


@jitable
def mark(s: Any, line: int, word: int, bits: int) -> None:
    """Adds to the settled bytes of a line, for as long as the distance of the two reads says."""
    now, at = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL], put_in_force(s, line)
    if at == 0:
        return
    if s[ME_DISTANCE] == OTHER_BLOCK:
        s[at + Q_FAR + word] |= bits
        s[s[line + H_REST] + X_FAR_WORDS] |= whole_words(s[at + Q_FAR + word]) << 8 * word
        return
    if s[ME_DISTANCE] == OTHER_WARP:
        if s[at + Q_TAG] != now:
            s[at + Q_TAG] = now
            clear_bits(s, at + Q_NEAR)
        s[at + Q_NEAR + word] |= bits
        return
    if s[at + Q_OWN_TAG] != now or s[at + Q_OWN_WARP] != own_warp(s):
        s[at + Q_OWN_TAG], s[at + Q_OWN_WARP] = now, own_warp(s)
        clear_bits(s, at + Q_OWN)
    s[at + Q_OWN + word] |= bits


@jitable
def put_in_force(s: Any, line: int) -> int:
    """Return where the settled bytes of a line stand, which has such from now on; 0 where there is
    no room."""
    rest = rest_of(s, line)
    if rest == 0:
        return 0
    if s[rest + X_SETTLED] == 0:
        s[rest + X_SETTLED] = take_for_lines(s, SETTLED_WORDS)
    if s[rest + X_SETTLED]:
        s[rest + X_SETTLED] |= IN_FORCE
    return settled_at(s, line)


@jitable
def whole_words(bits: int) -> int:
    """Return a bit for each four of 32 bits that are all set."""
    whole = 0
    for word in range(8):
        whole |= int(bits >> 4 * word & 15 == 15) << word
    return whole


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
def unsettle(s: Any, line: int, place: int, words: int) -> None:
    """Note that a place of a line and its words are written."""
    at = settled_at(s, line)
    if at == 0:
        return
    s[s[line + H_REST] + X_FAR_WORDS] &= ~words
    for word in range(begin_of(place) >> 5, (end_of(place) + 31) >> 5):
        if words >> 8 * word & 255 == 0:
            continue
        left = ~bytes_of(place, words, word)
        s[at + Q_FAR + word] &= left
        s[at + Q_NEAR + word] &= left
        s[at + Q_OWN + word] &= left


@jitable
def unsettle_line(s: Any, line: int) -> None:
    """Note that no byte of a line is settled."""
    at = settled_at(s, line)
    if at:
        rest = s[line + H_REST]
        s[rest + X_SETTLED], s[rest + X_FAR_WORDS] = at, 0
        s[at + Q_TAG] = s[at + Q_OWN_TAG] = 0
        clear_bits(s, at + Q_FAR)
