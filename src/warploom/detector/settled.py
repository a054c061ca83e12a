"""Marks bytes of a line of the race detector as settled: further weak reads of them need no check
and no record, as no write of this launch conflicts with them and two retained reads make others
redundant (`cells.record_weak_read`). Most lines of read-only inputs become settled, and a read of
one costs a look at a bit mask. Also allocates the extensions of lines, which hold these marks and
all runs but the first.

Blocks 0 and 1 have read a line that the launch has not written: its 128 bytes are settled for the
grid. Warps 0 and 1 of block 3 have read it: settled for block 3 until its next barrier. Lanes 0 and
1 of one warp: settled for that warp until it synchronizes. A write clears the bits of its bytes.
Does nothing with `exact`.
"""

from __future__ import annotations

from warploom.detector.cells import OTHER_BLOCK, OTHER_WARP
from warploom.detector.layout import (
    BLOCK_AT,
    FEW_FROM,
    FLAGS_AT,
    IN_FORCE,
    LINE_BYTES,
    LOAD,
    LOW,
    MORE_FROM,
    OP_AT,
    OP_BITS,
    SHARED,
    STRONG,
)
from warploom.detector.pool import allocate
from warploom.detector.records import (
    AccessNode,
    DetectorState,
    LaneRun,
    LineExtension,
    LineShadow,
    SettledBytes,
    ShadowCell,
)
from warploom.detector.runs import begin_of, bytes_of, end_of
from warploom.simt.lane_counts import jitable

POOL_FOR_THREADS = 1 << 27
"""Words of the pool that are reserved for vector clocks and releases; lines can do without
theirs."""

WARP_BITS = 8
"""Bits of a warp's number in its block: there are at most 64 warps."""


@jitable
def are_settled_for_all(state: DetectorState, line: LineShadow, words: int) -> int:
    """Returns whether all words of a line in the mask `words` are settled for the grid: no thread's
    weak reads of them need a check."""
    extension = LineExtension(state, line.extension)
    return int(extension.at != 0 and words & ~extension.grid_words == 0)


@jitable
def is_settled(state: DetectorState, line: LineShadow, footprint: int, words: int) -> int:
    """Returns whether a weak read needs neither check nor record: all bytes of its footprint and
    words (`runs`) in a line are settled for the grid, for the current thread's block in this
    interval, or for its warp until that synchronizes."""
    settled_record = SettledBytes(state, settled_at(state, line))
    if settled_record.at == 0:
        return 0
    if are_settled_for_all(state, line, words):
        return 1
    tag = state.current_block + 1 << BLOCK_AT | state.current_interval
    # Bits of an earlier interval, block or warp are left in place and not counted, as long as their
    # tag differs: a barrier needs no pass over memory.
    block_valid = settled_record.block_tag == tag
    warp_valid = settled_record.warp_tag == tag and settled_record.warp_epoch == warp_epoch(state)
    missing = 0
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        settled = settled_record.grid[word]
        if block_valid:
            settled |= settled_record.block[word]
        if warp_valid:
            settled |= settled_record.warp[word]
        missing |= bytes_of(footprint, words, word) & ~settled
    return int(missing == 0)


@jitable
def settled_at(state: DetectorState, line: LineShadow) -> int:
    """Returns the index in the state of a line's settled bytes (`SettledBytes`); 0 if it has none
    or they do not count (IN_FORCE)."""
    extension = LineExtension(state, line.extension)
    if extension.at == 0 or extension.settled & IN_FORCE == 0:
        return 0
    return int(extension.settled - IN_FORCE)


@jitable
def warp_epoch(state: DetectorState) -> int:
    """Returns the current warp and the time when its lanes synchronized last, packed: bytes settled
    for the warp are valid while this is equal."""
    return int(state.current_synced << WARP_BITS | state.current_warp)


@jitable
def settle(
    state: DetectorState, line: LineShadow, cell: ShadowCell, offset: int, bytes_: int
) -> None:
    """Marks bytes of a cell, which begins at byte `offset` of its line, as settled (weak reads need
    no check), if two readers are retained, at the distance `current_distance`, which the weak read
    recorded last has left. They are settled for the grid if the readers are of two blocks and no
    thread has written; for the block and interval if they are of two warps; for the warp, until it
    synchronizes, if they are two of its lanes. The last two also need that no thread has written,
    or that the last write is of an earlier interval of the block or, in shared memory, of another
    block. Nothing with `exact`, for a single reader, or if the cell's lists have writes or strong
    accesses."""
    write = cell.write_interval
    tag = state.current_block + 1 << BLOCK_AT | state.current_interval
    if state.exact or state.current_distance == 0 or not has_weak_reads_only(state, cell.lists):
        return
    # Readers of two blocks. Without clocks of other blocks (`exact`), whoever writes these bytes in
    # this launch is unordered with at least one of the two, and is reported with that one.
    if state.current_distance == OTHER_BLOCK:
        if write == 0:
            mark_settled(state, line, offset >> 5, bytes_ << (offset & 31))
        return
    # A write of this block in the current interval may be unordered with a read by a third thread.
    same_memory = write >> BLOCK_AT == state.current_block + 1 or state.current_space == SHARED
    if write == 0 or (write != tag and same_memory):
        mark_settled(state, line, offset >> 5, bytes_ << (offset & 31))


@jitable
def settle_run(state: DetectorState, line: LineShadow, footprint: int, words: int) -> None:
    """Marks the bytes of a footprint and its words as settled (weak reads need no check): two
    retained reads make further ones redundant, in the scope that follows from their distance
    (`current_distance`; `mark_settled`). Nothing if the distance is 0, if a run of the line writes
    the bytes, or with `exact`."""
    if state.exact or state.current_distance == 0:
        return
    for number in range(line.count):
        run = run_at(state, line, number)
        if run.access >> OP_AT & OP_BITS != LOAD and run.mask & words:
            return
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        mark_settled(state, line, word, bytes_of(footprint, words, word))


@jitable
def run_at(state: DetectorState, line: LineShadow, number: int) -> LaneRun:
    """Returns run number `number` of a line: the first is in the line, the second in its extension,
    further ones in the extension's two parts, which must be allocated."""
    if number == 0:
        return line.run
    extension = LineExtension(state, line.extension)
    if number < FEW_FROM:
        return extension.run
    if number < MORE_FROM:
        return LaneRun(state, extension.few, number - FEW_FROM)
    return LaneRun(state, extension.more, number - MORE_FROM)


@jitable
def extension_of(state: DetectorState, line: LineShadow) -> int:
    """Returns the index in the state of a line's extension, allocated when it is first needed; 0 if
    the pool has no space for it."""
    if line.extension == 0:
        line.extension = allocate_for_lines(state, LineExtension.WORDS)
    return int(line.extension)


@jitable
def allocate_for_lines(state: DetectorState, size: int) -> int:
    """Returns the index of `size` new words of the pool, at the start of a cache line of the host;
    0 if less than POOL_FOR_THREADS would be left."""
    # Eight words of 8 bytes are a cache line.
    state.pool_at = (state.pool_at + 7) & -8
    if state.pool_at + size + POOL_FOR_THREADS > state.pool_end:
        return 0
    return allocate(state, size)


@jitable
def mark_settled(state: DetectorState, line: LineShadow, word: int, bits: int) -> None:
    """Marks bytes of a line as settled (later weak reads in the scope need no check), those of
    `bits` in group `word` of 32, for the scope that follows from `current_distance`: block and
    interval for OTHER_WARP, grid for OTHER_BLOCK, else the warp until it synchronizes. Clears the
    bits of an earlier block, interval or warp first. Nothing if the pool is exhausted."""
    tag = state.current_block + 1 << BLOCK_AT | state.current_interval
    settled = SettledBytes(state, enable_settled(state, line))
    if settled.at == 0:
        return
    if state.current_distance == OTHER_BLOCK:
        settled.grid[word] |= bits
        # One bit a word for the grid, so that `are_settled_for_all` need not look at the bytes.
        LineExtension(state, line.extension).grid_words |= (
            full_words(settled.grid[word]) << 8 * word
        )
        return
    if state.current_distance == OTHER_WARP:
        if settled.block_tag != tag:
            settled.block_tag = tag
            clear_bits(state, settled.at + SettledBytes.block)
        settled.block[word] |= bits
        return
    if settled.warp_tag != tag or settled.warp_epoch != warp_epoch(state):
        settled.warp_tag, settled.warp_epoch = tag, warp_epoch(state)
        clear_bits(state, settled.at + SettledBytes.warp)
    settled.warp[word] |= bits


@jitable
def enable_settled(state: DetectorState, line: LineShadow) -> int:
    """Returns the index in the state of a line's settled bytes, allocated if need be, and sets
    IN_FORCE, so that they count from now on; 0 if the pool is exhausted."""
    extension = LineExtension(state, extension_of(state, line))
    if extension.at == 0:
        return 0
    if extension.settled == 0:
        extension.settled = allocate_for_lines(state, SettledBytes.WORDS)
    if extension.settled:
        # Indices are multiples of 8, so the lowest bit is free for the flag.
        extension.settled |= IN_FORCE
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
def clear_bits(state: DetectorState, at: int) -> None:
    """Clears the 128 bits of a line's bytes, four words from index `at` on."""
    for number in range(LINE_BYTES // 32):
        state.words[at + number] = 0


@jitable
def has_weak_reads_only(state: DetectorState, lists: int) -> int:
    """Returns whether the lists of a cell, packed as in `ShadowCell.lists`, have weak reads only,
    or are empty."""
    node = AccessNode(state, lists & LOW)
    only = int(lists >> 32 == 0)
    while node.at and only:
        access_word = node.access
        only = int(access_word >> OP_AT & OP_BITS == LOAD and access_word >> FLAGS_AT & STRONG == 0)
        node = AccessNode(state, node.next)
    return only


@jitable
def clear_settled(state: DetectorState, line: LineShadow, footprint: int, words: int) -> None:
    """Clears the settled bits of the bytes of a footprint and its words, which are being written,
    for grid, block and warp; nothing if the line has none in force."""
    settled = SettledBytes(state, settled_at(state, line))
    if settled.at == 0:
        return
    LineExtension(state, line.extension).grid_words &= ~words
    for word in range(begin_of(footprint) >> 5, (end_of(footprint) + 31) >> 5):
        # A group of 32 bytes has eight words.
        if words >> 8 * word & 255 == 0:
            continue
        unwritten = ~bytes_of(footprint, words, word)
        settled.grid[word] &= unwritten
        settled.block[word] &= unwritten
        settled.warp[word] &= unwritten


@jitable
def clear_settled_line(state: DetectorState, line: LineShadow) -> None:
    """Makes all bytes of a line unsettled: clears the bits of the grid, invalidates those of block
    and warp, and clears IN_FORCE; nothing if it is not set."""
    settled = SettledBytes(state, settled_at(state, line))
    if settled.at:
        extension = LineExtension(state, line.extension)
        extension.settled, extension.grid_words = settled.at, 0
        settled.block_tag = settled.warp_tag = 0
        clear_bits(state, settled.at + SettledBytes.grid)
