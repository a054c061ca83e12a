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
    N_ACCESS,
    N_NEXT,
    OP_AT,
    POOL_AT,
    POOL_END,
    Q_BLOCK,
    Q_BLOCK_TAG,
    Q_GRID,
    Q_WARP,
    Q_WARP_EPOCH,
    Q_WARP_TAG,
    REST_WORDS,
    RUN_WORDS,
    SETTLED_WORDS,
    SHARED,
    STRONG,
    W_INTERVAL,
    X_FEW,
    X_GRID_WORDS,
    X_MORE,
    X_RUN,
    X_SETTLED,
)
from warploom.detector.pool import allocate
from warploom.detector.runs import begin_of, bytes_of, end_of
from warploom.simt.lane_counts import jitable

OTHER_WARP, OTHER_BLOCK = 2, 3
"""Distances between two threads (`cells.distance`)."""

POOL_FOR_THREADS = 1 << 27
"""So many words of the pool are left for what threads know of each other."""

WARP_BITS = 8
"""Bits of a warp's number in its block: there are at most 64."""


@jitable
def are_settled_for_all(state: Any, line: int, words: int) -> int:
    """Return whether some words of a line are settled for all threads."""
    rest = state[line + H_REST]
    return int(rest != 0 and words & ~state[rest + X_GRID_WORDS] == 0)


@jitable
def is_settled(state: Any, line: int, footprint: int, words: int) -> int:
    """Return whether the bytes of a place of a line and its words (`runs`) are settled for the
    current thread."""
    at = settled_at(state, line)
    if at == 0:
        return 0
    if are_settled_for_all(state, line, words):
        return 1
    tag = state[ME_BLOCK] + 1 << BLOCK_AT | state[ME_INTERVAL]
    block_valid = state[at + Q_BLOCK_TAG] == tag
    warp_valid = state[at + Q_WARP_TAG] == tag and state[at + Q_WARP_EPOCH] == warp_epoch(state)
    missing = 0
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        settled = state[at + Q_GRID + word]
        if block_valid:
            settled |= state[at + Q_BLOCK + word]
        if warp_valid:
            settled |= state[at + Q_WARP + word]
        missing |= bytes_of(footprint, words, word) & ~settled
    return int(missing == 0)


@jitable
def settled_at(state: Any, line: int) -> int:
    """Return where the settled bytes of a line stand; 0 where it has none."""
    rest = state[line + H_REST]
    if rest == 0 or state[rest + X_SETTLED] & IN_FORCE == 0:
        return 0
    return int(state[rest + X_SETTLED] - IN_FORCE)


@jitable
def warp_epoch(state: Any) -> int:
    """Returns the current warp and the time when its lanes synchronised last."""
    return int(state[ME_SYNCED] << WARP_BITS | state[ME_WARP])


@jitable
def settle(state: Any, line: int, cell: int, offset: int, bytes_: int) -> None:
    """Notes that bytes of a cell, which begins at byte `offset` of its line, are settled, if the
    weak read that came last makes them so: for all, where two blocks have read them and nobody has
    written them; for its block until the next barrier, where two warps have read them; for its warp
    until this synchronises, where two of its lanes have."""
    write = state[cell + W_INTERVAL]
    tag = state[ME_BLOCK] + 1 << BLOCK_AT | state[ME_INTERVAL]
    if (
        state[EXACT]
        or state[ME_DISTANCE] == 0
        or not has_weak_reads_only(state, state[cell + LISTS])
    ):
        return
    if state[ME_DISTANCE] == OTHER_BLOCK:
        if write == 0:
            mark_settled(state, line, offset >> 5, bytes_ << (offset & 31))
        return
    same_memory = write >> BLOCK_AT == state[ME_BLOCK] + 1 or state[ME_SPACE] == SHARED
    if write == 0 or (write != tag and same_memory):
        mark_settled(state, line, offset >> 5, bytes_ << (offset & 31))


@jitable
def settle_run(state: Any, line: int, footprint: int, words: int) -> None:
    """Note that the bytes of a place of a line and its words are settled, if two runs that stand
    for the current weak read make them so, and no run of the line writes there."""
    if state[EXACT] or state[ME_DISTANCE] == 0:
        return
    for number in range(state[line + H_COUNT]):
        run = run_at(state, line, number)
        if state[run + 2] >> OP_AT & 3 != LOAD and state[run + 3] & words:
            return
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        mark_settled(state, line, word, bytes_of(footprint, words, word))


@jitable
def run_at(state: Any, line: int, number: int) -> int:
    """Returns where a line has a run."""
    if number == 0:
        return line + H_RUN
    rest = state[line + H_REST]
    if number < FEW_FROM:
        return int(rest + X_RUN)
    if number < MORE_FROM:
        return int(state[rest + X_FEW] + (number - FEW_FROM) * RUN_WORDS)
    return int(state[rest + X_MORE] + (number - MORE_FROM) * RUN_WORDS)


@jitable
def rest_of(state: Any, line: int) -> int:
    """Returns where the rest of a line is, which it is given when it first needs it; 0 where there
    is no room."""
    if state[line + H_REST] == 0:
        state[line + H_REST] = allocate_for_lines(state, REST_WORDS)
    return int(state[line + H_REST])


@jitable
def allocate_for_lines(state: Any, size: int) -> int:
    """Return the index of so many words, where a cache line of the host begins; 0 where too little
    would be left for what threads know of each other: lines can do without."""
    state[POOL_AT] = (state[POOL_AT] + 7) & -8
    if state[POOL_AT] + size + POOL_FOR_THREADS > state[POOL_END]:
        return 0
    return allocate(state, size)


@jitable
def mark_settled(state: Any, line: int, word: int, bits: int) -> None:
    """Adds to the settled bytes of a line, for as long as the distance of the two reads says."""
    tag, at = state[ME_BLOCK] + 1 << BLOCK_AT | state[ME_INTERVAL], enable_settled(state, line)
    if at == 0:
        return
    if state[ME_DISTANCE] == OTHER_BLOCK:
        state[at + Q_GRID + word] |= bits
        state[state[line + H_REST] + X_GRID_WORDS] |= (
            full_words(state[at + Q_GRID + word]) << 8 * word
        )
        return
    if state[ME_DISTANCE] == OTHER_WARP:
        if state[at + Q_BLOCK_TAG] != tag:
            state[at + Q_BLOCK_TAG] = tag
            clear_bits(state, at + Q_BLOCK)
        state[at + Q_BLOCK + word] |= bits
        return
    if state[at + Q_WARP_TAG] != tag or state[at + Q_WARP_EPOCH] != warp_epoch(state):
        state[at + Q_WARP_TAG], state[at + Q_WARP_EPOCH] = tag, warp_epoch(state)
        clear_bits(state, at + Q_WARP)
    state[at + Q_WARP + word] |= bits


@jitable
def enable_settled(state: Any, line: int) -> int:
    """Return where the settled bytes of a line stand, which has such from now on; 0 where there is
    no room."""
    rest = rest_of(state, line)
    if rest == 0:
        return 0
    if state[rest + X_SETTLED] == 0:
        state[rest + X_SETTLED] = allocate_for_lines(state, SETTLED_WORDS)
    if state[rest + X_SETTLED]:
        state[rest + X_SETTLED] |= IN_FORCE
    return settled_at(state, line)


@jitable
def full_words(bits: int) -> int:
    """Return a bit for each four of 32 bits that are all set."""
    whole = 0
    for word in range(8):
        whole |= int(bits >> 4 * word & 15 == 15) << word
    return whole


@jitable
def clear_bits(state: Any, at: int) -> None:
    """Clears the bits of a line's bytes."""
    for number in range(LINE_BYTES // 32):
        state[at + number] = 0


@jitable
def has_weak_reads_only(state: Any, lists: int) -> int:
    """Returns whether the lists of a cell have nothing but weak reads."""
    node = lists & LOW
    only = int(lists >> 32 == 0)
    while node and only:
        access_word = state[node + N_ACCESS]
        only = int(access_word >> OP_AT & 3 == LOAD and access_word >> FLAGS_AT & STRONG == 0)
        node = state[node + N_NEXT]
    return only


@jitable
def clear_settled(state: Any, line: int, footprint: int, words: int) -> None:
    """Note that a place of a line and its words are written."""
    at = settled_at(state, line)
    if at == 0:
        return
    state[state[line + H_REST] + X_GRID_WORDS] &= ~words
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        if words >> 8 * word & 255 == 0:
            continue
        unwritten = ~bytes_of(footprint, words, word)
        state[at + Q_GRID + word] &= unwritten
        state[at + Q_BLOCK + word] &= unwritten
        state[at + Q_WARP + word] &= unwritten


@jitable
def clear_settled_line(state: Any, line: int) -> None:
    """Note that no byte of a line is settled."""
    at = settled_at(state, line)
    if at:
        rest = state[line + H_REST]
        state[rest + X_SETTLED], state[rest + X_GRID_WORDS] = at, 0
        state[at + Q_BLOCK_TAG] = state[at + Q_WARP_TAG] = 0
        clear_bits(state, at + Q_GRID)
