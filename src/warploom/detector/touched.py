"""Records, in the race detector, which bytes of an allocation a launch has read and written, and by
which instructions, for comparison with work in other streams."""

from __future__ import annotations

from warploom.detector.launches import has_waited
from warploom.detector.layout import (
    ATOMIC,
    GLOBAL,
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
from warploom.detector.records import (
    DetectorEvent,
    DetectorState,
    InstructionSite,
    TrackedAllocation,
)
from warploom.simt.lane_counts import jitable


@jitable
def record_touched_run(
    state: DetectorState, event: DetectorEvent, end: int, allocation: TrackedAllocation, lanes: int
) -> None:
    """Records the bytes that a run of lanes reads or writes from the current address up to `end`
    (exclusive), if touched bytes of the allocation (a table row) are tracked; nothing for shared
    memory. `lanes` masks the lanes that are there, from that of the current address on."""
    if event.space != GLOBAL or allocation.touched == 0:
        return
    at, size, writes = state.current_address, state.current_size, int(event.op == STORE)
    stride = abs(state.current_stride)
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
def record_touched_lane(
    state: DetectorState, event: DetectorEvent, allocation: TrackedAllocation, writes: int
) -> None:
    """Records the bytes of global memory that the current thread's access reads, unless it is a
    store, and writes if `writes`, in an allocation (a table row) whose touched bytes are tracked.
    """
    if event.space == GLOBAL and allocation.touched != 0:
        record_touched_bytes(
            state,
            event,
            state.current_address,
            state.current_address + event.size,
            allocation,
            writes,
        )


@jitable
def record_touched_bytes(
    state: DetectorState,
    event: DetectorEvent,
    at: int,
    end: int,
    allocation: TrackedAllocation,
    writes: int,
) -> None:
    """Records that the current instruction reads the bytes from `at` up to `end` (exclusive),
    unless it is a store, and, if `writes`, writes them. Each aligned four bytes have a word at
    `touched`, and another at `early`, which is used if the current thread does not know that the
    previous launch has ended. In the word it sets the bytes' bits (those for strong accesses, if
    the instruction is STRONG or an atomic), and stores its own number (its index plus one) as the
    last reader or writer."""
    flags = InstructionSite(state, state.sites_at, event.instruction).flags
    read_at, written_at = T_READ_AT, T_WRITTEN_AT
    if flags & STRONG or event.op == ATOMIC:
        read_at, written_at = T_STRONG_READ_AT, T_STRONG_WRITTEN_AT
    # T_NUMBER_BITS is the mask of a number's field, so also the largest number that fits.
    number = min(event.instruction + 1, T_NUMBER_BITS)
    table = state.words[
        allocation.at
        + (TrackedAllocation.touched if has_waited(state) else TrackedAllocation.early)
    ]
    word, base = at & ~3, allocation.start & ~3
    while word < end:
        # The bytes of this word from `at` on and up to `end`.
        bytes_ = (15 << max(at - word, 0) & 15) & (15 >> max(word + 4 - end, 0))
        index = table + (word - base >> 2)
        touched_word = state.words[index]
        if event.op != STORE:
            touched_word = touched_word & ~(T_NUMBER_BITS << T_READER_AT) | number << T_READER_AT
            touched_word |= bytes_ << read_at
        if writes:
            touched_word = touched_word & ~(T_NUMBER_BITS << T_WRITER_AT) | number << T_WRITER_AT
            touched_word |= bytes_ << written_at
        state.words[index] = touched_word
        word += 4
