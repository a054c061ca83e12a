"""Marks bytes of a line of the race detector as settled: further weak reads of them need no check
and no record, as no write of this launch conflicts with them and two retained reads make others
redundant (`cells.record_weak_read`). Most lines of read-only inputs become settled, and a read of
one costs a look at a bit mask.

Blocks 0 and 1 have read a line that the launch has not written: its 128 bytes are settled for the
grid. Warps 0 and 1 of block 3 have read it: settled for block 3 until its next barrier. Lanes 0 and
1 of one warp: settled for that warp until it synchronises. A write clears the bits of its bytes.
Does nothing with EXACT.
"""

from __future__ import annotations

from typing import Any

from warploom.detector.layout import (
    BLOCK_AT,
    EXACT,
    EXTENSION_WORDS,
    FEW_FROM,
    FLAGS_AT,
    H_COUNT,
    H_EXTENSION,
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
"""Distances of two threads (`cells.distance`)."""

POOL_FOR_THREADS = 1 << 27
"""Words of the pool that are reserved for vector clocks and releases; lines can do without
theirs."""

WARP_BITS = 8
"""Bits of a warp's number in its block: there are at most 64 warps."""


@jitable
def are_settled_for_all(state: Any, line: int, words: int) -> int:
    """Returns whether all words of a line in the mask `words` are settled for the grid: no thread's
    weak reads of them need a check."""
    extension = state[line + H_EXTENSION]
    return int(extension != 0 and words & ~state[extension + X_GRID_WORDS] == 0)


@jitable
def is_settled(state: Any, line: int, footprint: int, words: int) -> int:
    """Returns whether a weak read needs neither check nor record: all bytes of its footprint and
    words (`runs`) in a line are settled for the grid, for the current thread's block in this
    interval, or for its warp until that synchronises."""
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
    """Returns the index in the state of a line's settled bytes (masks Q_); 0 if it has none or they
    do not count (IN_FORCE)."""
    extension = state[line + H_EXTENSION]
    if extension == 0 or state[extension + X_SETTLED] & IN_FORCE == 0:
        return 0
    return int(state[extension + X_SETTLED] - IN_FORCE)


@jitable
def warp_epoch(state: Any) -> int:
    """Returns the current warp and the time when its lanes synchronised last, packed: bytes settled
    for the warp are valid while this is equal."""
    return int(state[ME_SYNCED] << WARP_BITS | state[ME_WARP])


@jitable
def settle(state: Any, line: int, cell: int, offset: int, bytes_: int) -> None:
    """Marks bytes of a cell, which begins at byte `offset` of its line, as settled (weak reads need
    no check), if ME_DISTANCE, left by the weak read recorded last, permits: for the grid, if two
    blocks have read them and none has written; for its block and interval, if two warps have read
    them; for its warp until that synchronises, if two lanes have; these two also if the last write
    is of an earlier interval of the block. Nothing with EXACT, for a single reader, or if the
    cell's lists have writes or strong accesses."""
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
    # A write of this block in the current interval may be unordered with a read by a third thread.
    same_memory = write >> BLOCK_AT == state[ME_BLOCK] + 1 or state[ME_SPACE] == SHARED
    if write == 0 or (write != tag and same_memory):
        mark_settled(state, line, offset >> 5, bytes_ << (offset & 31))


@jitable
def settle_run(state: Any, line: int, footprint: int, words: int) -> None:
    """Marks the bytes of a footprint and its words as settled (weak reads need no check), which two
    retained reads have made redundant, for the scope that follows from their distance
    (ME_DISTANCE); nothing if that is 0, if a run of the line writes there, or with EXACT."""
    if state[EXACT] or state[ME_DISTANCE] == 0:
        return
    for number in range(state[line + H_COUNT]):
        run = run_at(state, line, number)
        # Words 2 and 3 of a run: access word, and mask of the line's words.
        if state[run + 2] >> OP_AT & 3 != LOAD and state[run + 3] & words:
            return
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        mark_settled(state, line, word, bytes_of(footprint, words, word))


@jitable
def run_at(state: Any, line: int, number: int) -> int:
    """Returns the index in the state of run number `number` of a line: the first is in the line,
    the second in its extension, further ones in the extension's two parts, which must be allocated.
    """
    if number == 0:
        return line + H_RUN
    extension = state[line + H_EXTENSION]
    if number < FEW_FROM:
        return int(extension + X_RUN)
    if number < MORE_FROM:
        return int(state[extension + X_FEW] + (number - FEW_FROM) * RUN_WORDS)
    return int(state[extension + X_MORE] + (number - MORE_FROM) * RUN_WORDS)


@jitable
def extension_of(state: Any, line: int) -> int:
    """Returns the index in the state of a line's extension, allocated when it is first needed; 0 if
    the pool has no space for it."""
    if state[line + H_EXTENSION] == 0:
        state[line + H_EXTENSION] = allocate_for_lines(state, EXTENSION_WORDS)
    return int(state[line + H_EXTENSION])


@jitable
def allocate_for_lines(state: Any, size: int) -> int:
    """Returns the index of `size` new words of the pool, at the start of a cache line of the host;
    0 if less than POOL_FOR_THREADS would be left."""
    # Eight words of 8 bytes are a cache line.
    state[POOL_AT] = (state[POOL_AT] + 7) & -8
    if state[POOL_AT] + size + POOL_FOR_THREADS > state[POOL_END]:
        return 0
    return allocate(state, size)


@jitable
def mark_settled(state: Any, line: int, word: int, bits: int) -> None:
    """Marks bytes of a line as settled (later weak reads in the scope need no look at their cells:
    the module's docstring), those of `bits` in group `word` of 32, for the scope that follows from
    ME_DISTANCE: block and interval for OTHER_WARP, grid for OTHER_BLOCK, else the warp. Nothing if
    the pool is exhausted."""
    tag, at = state[ME_BLOCK] + 1 << BLOCK_AT | state[ME_INTERVAL], enable_settled(state, line)
    if at == 0:
        return
    if state[ME_DISTANCE] == OTHER_BLOCK:
        state[at + Q_GRID + word] |= bits
        # One bit a word for the grid, so that `are_settled_for_all` need not look at the bytes.
        state[state[line + H_EXTENSION] + X_GRID_WORDS] |= (
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
    """Returns the index in the state of a line's settled bytes, allocated if need be, and sets
    IN_FORCE, so that they count from now on; 0 if the pool is exhausted."""
    extension = extension_of(state, line)
    if extension == 0:
        return 0
    if state[extension + X_SETTLED] == 0:
        state[extension + X_SETTLED] = allocate_for_lines(state, SETTLED_WORDS)
    if state[extension + X_SETTLED]:
        # Indices are multiples of 8, so the lowest bit is free for the flag.
        state[extension + X_SETTLED] |= IN_FORCE
    return settled_at(state, line)


@jitable
def full_words(bits: int) -> int:
    """Returns a mask of 8 bits: those of the eight groups of four in `bits` (bytes of a word) that
    are all set."""
    whole = 0
    for word in range(8):
        whole |= int(bits >> 4 * word & 15 == 15) << word
    return whole


@jitable
def clear_bits(state: Any, at: int) -> None:
    """Clears the 128 bits of a line's bytes, four words from index `at` on."""
    for number in range(LINE_BYTES // 32):
        state[at + number] = 0


@jitable
def has_weak_reads_only(state: Any, lists: int) -> int:
    """Returns whether the lists of a cell, packed as in LISTS, have weak reads only, or are
    empty."""
    node = lists & LOW
    only = int(lists >> 32 == 0)
    while node and only:
        access_word = state[node + N_ACCESS]
        only = int(access_word >> OP_AT & 3 == LOAD and access_word >> FLAGS_AT & STRONG == 0)
        node = state[node + N_NEXT]
    return only


@jitable
def clear_settled(state: Any, line: int, footprint: int, words: int) -> None:
    """Clears the settled bits of the bytes of a footprint and its words, which are being written,
    for grid, block and warp; nothing if the line has none in force."""
    at = settled_at(state, line)
    if at == 0:
        return
    state[state[line + H_EXTENSION] + X_GRID_WORDS] &= ~words
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        # A group of 32 bytes has eight words.
        if words >> 8 * word & 255 == 0:
            continue
        unwritten = ~bytes_of(footprint, words, word)
        state[at + Q_GRID + word] &= unwritten
        state[at + Q_BLOCK + word] &= unwritten
        state[at + Q_WARP + word] &= unwritten


@jitable
def clear_settled_line(state: Any, line: int) -> None:
    """Makes all bytes of a line unsettled: clears the bits of the grid, invalidates those of block
    and warp, and takes IN_FORCE away; nothing if it is not set."""
    at = settled_at(state, line)
    if at:
        extension = state[line + H_EXTENSION]
        state[extension + X_SETTLED], state[extension + X_GRID_WORDS] = at, 0
        state[at + Q_BLOCK_TAG] = state[at + Q_WARP_TAG] = 0
        clear_bits(state, at + Q_GRID)
