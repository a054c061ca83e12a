"""Records, in the race detector, which bytes of an allocation a launch has read and written, and by
which instructions, for comparison with work in other streams."""

from __future__ import annotations

from typing import Any

from warploom.detector.launches import has_waited
from warploom.detector.layout import (
    A_EARLY,
    A_START,
    A_TOUCHED,
    ATOMIC,
    E_INSTRUCTION,
    E_OP,
    E_SIZE,
    E_SPACE,
    GLOBAL,
    ME_ADDRESS,
    ME_SIZE,
    ME_STRIDE,
    SITE_WORDS,
    SITES_AT,
    STORE,
    STRONG,
    T_NUMBER_BITS,
    T_READ_AT,
    T_READER_AT,
    T_STRONG_READ_AT,
    T_STRONG_WRITTEN_AT,
    T_WRITER_AT,
    T_WRITTEN_AT,
)
from warploom.simt.lane_counts import jitable


@jitable
def record_touched_run(state: Any, event: Any, end: int, allocation: int, lanes: int) -> None:
    """Records the bytes that a run of lanes reads or writes from the current address up to `end`,
    if touched bytes of the allocation (a table row) are tracked; nothing for shared memory. `lanes`
    masks the lanes that are there, from that of the current address on."""
    if event[E_SPACE] != GLOBAL or state[allocation + A_TOUCHED] == 0:
        return
    at, size, writes = state[ME_ADDRESS], state[ME_SIZE], int(event[E_OP] == STORE)
    stride = abs(state[ME_STRIDE])
    # Contiguous and without gaps: the bytes of all lanes at once.
    if stride == size and lanes & lanes + 1 == 0:
        record_touched_bytes(state, event, at, end, allocation, writes)
        return
    while at < end:
        if lanes & 1:
            record_touched_bytes(state, event, at, at + size, allocation, writes)
        at += stride
        lanes >>= 1


@jitable
def record_touched_lane(state: Any, event: Any, allocation: int, writes: int) -> None:
    """Records the bytes of global memory that the current thread's access reads, unless it is a
    store, and writes if `writes`, in an allocation (a table row) whose touched bytes are tracked.
    """
    if event[E_SPACE] == GLOBAL and state[allocation + A_TOUCHED] != 0:
        record_touched_bytes(
            state, event, state[ME_ADDRESS], state[ME_ADDRESS] + event[E_SIZE], allocation, writes
        )


@jitable
def record_touched_bytes(
    state: Any, event: Any, at: int, end: int, allocation: int, writes: int
) -> None:
    """Records that the current instruction reads the bytes from `at` to `end`, unless it is a
    store, and, if `writes`, writes them, in the word of each aligned four bytes at A_TOUCHED, or at
    A_EARLY if the current thread does not know that the previous launch has ended: sets the bytes'
    bits, those for strong accesses if it is STRONG or an atomic, and replaces the last reader's or
    writer's number by its own (its index and one)."""
    flags = state[state[SITES_AT] + event[E_INSTRUCTION] * SITE_WORDS]
    read_at, written_at = T_READ_AT, T_WRITTEN_AT
    if flags & STRONG or event[E_OP] == ATOMIC:
        read_at, written_at = T_STRONG_READ_AT, T_STRONG_WRITTEN_AT
    # T_NUMBER_BITS is the mask of a number's field, so also the largest number that fits.
    number = min(event[E_INSTRUCTION] + 1, T_NUMBER_BITS)
    table = state[allocation + (A_TOUCHED if has_waited(state) else A_EARLY)]
    word, base = at & ~3, state[allocation + A_START] & ~3
    while word < end:
        # The bytes of this word from `at` on and up to `end`.
        bytes_ = (15 << max(at - word, 0) & 15) & (15 >> max(word + 4 - end, 0))
        index = table + (word - base >> 2)
        touched_word = state[index]
        if event[E_OP] != STORE:
            touched_word = touched_word & ~(T_NUMBER_BITS << T_READER_AT) | number << T_READER_AT
            touched_word |= bytes_ << read_at
        if writes:
            touched_word = touched_word & ~(T_NUMBER_BITS << T_WRITER_AT) | number << T_WRITER_AT
            touched_word |= bytes_ << written_at
        state[index] = touched_word
        word += 4
