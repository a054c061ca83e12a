"""Records accesses to lines, the race detector's shadow memory of 128 bytes each, by runs: lanes of
a warp whose addresses are evenly spaced.

Warp 0 stores 4 bytes a lane to a line of global memory in interval 0: one run. Warp 1 loads the
line in interval 1, which the first run precedes: a second run. Had warp 1 loaded it in interval 0,
the runs would overlap unordered: the line's 32 cells are used from then on (`cells`), the first run
is written into them lane by lane, and each lane's load is checked there, which reports the races.
So a line never decides that there is a race. Strong accesses, atomics and copies are recorded in
cells.
"""

from __future__ import annotations

from warploom.detector.cells import distance_between, thread_distance
from warploom.detector.layout import (
    BLOCK_AT,
    FEW_FROM,
    IN_CELLS,
    IN_FORCE,
    LOAD,
    LOW,
    MORE_FROM,
    MOST_RUNS,
    OP_AT,
    OP_BITS,
    SHARED,
    THREAD_BITS,
    TIME_AT,
)
from warploom.detector.records import (
    DetectorState,
    LaneRun,
    LineExtension,
    LineShadow,
)
from warploom.detector.runs import (
    WORD,
    covers,
    never_overlap,
    overlap_is_same_thread,
    size_of,
)
from warploom.detector.settled import (
    allocate_for_lines,
    clear_settled_line,
    extension_of,
    run_at,
    settle_run,
)
from warploom.simt.lane_counts import jitable

FEW_WORDS, MORE_WORDS = (
    (MORE_FROM - FEW_FROM) * LaneRun.WORDS,
    (MOST_RUNS - MORE_FROM) * LaneRun.WORDS,
)
"""Words of the parts of a line that have the runs from FEW_FROM on, and from MORE_FROM on."""


@jitable
def record_run(
    state: DetectorState, line: LineShadow, thread: int, op: int, footprint: int, words: int
) -> int:
    """Records a weak access of lanes from `thread` on in a line, as a run: its footprint (bytes,
    stride) and words (bit for each 4 bytes; `runs`). Returns 1, or 0 if the line's cells have to
    decide: they are in use already, the line or the pool is full, or a run with bytes in common is
    not known to be ordered, unless both are reads.

    A run that is ordered before the access, and whose bytes the access covers, is dropped; a read
    drops no write. Without `exact`, a read that two retained unordered reads make redundant is not
    recorded, and its bytes are settled: later reads of them need no check
    (`cells.record_weak_read`).
    """
    if line.count == IN_CELLS:
        return 0
    covered, first_reader, second_reader = 0, 0, 0
    for number in range(line.count):
        run = run_at(state, line, number)
        access_word, run_words = run.access, run.mask
        # No word in common. Most runs of a line end here, by one operation on two masks.
        if run_words & words == 0:
            continue
        is_read = access_word >> OP_AT & OP_BITS == LOAD
        before = is_run_ordered(state, run, thread, footprint)
        if not (
            before
            or (is_read and op == LOAD)
            or never_overlap(access_word, run_words, footprint, words)
        ):
            return 0
        # A read never replaces a write: later reads have to be checked against it, too.
        if before and (op != LOAD or is_read) and covers(footprint, words, access_word, run_words):
            covered |= 1 << number
        elif is_read and not before and covers(access_word, run_words, footprint, words):
            # The second is the one that lies farthest from the first: the wider apart two readers
            # are, the more others they make redundant.
            if first_reader and (
                second_reader == 0
                or distance_between(state, first_reader, run.at)
                > distance_between(state, first_reader, second_reader)
            ):
                second_reader = run.at
            first_reader = run.at if first_reader == 0 else first_reader
    interval_word = state.current_block + 1 << BLOCK_AT | state.current_interval
    thread_word = state.current_time << TIME_AT | thread
    redundant = (
        op == LOAD
        and state.exact == 0
        and second_reader
        and retained_pair_covers(state, first_reader, second_reader, interval_word, thread_word)
    )
    # Also where the read itself is not recorded: a write that is ordered after the retained pair is
    # ordered after this read, and so after the reads that this one is ordered after.
    if covered:
        drop_runs(state, line, covered)
    if redundant:
        settle_run(state, line, footprint, words)
        return 1
    run_count = line.count
    if run_count == MOST_RUNS or not reserve_run(state, line, run_count):
        return 0
    run = run_at(state, line, run_count)
    line.count = run_count + 1
    run.interval, run.thread = interval_word, thread_word
    run.access, run.mask = state.current_instruction | op << OP_AT | footprint, words
    return 1


@jitable
def drop_runs(state: DetectorState, line: LineShadow, numbers: int) -> None:
    """Removes the runs of a line whose numbers are bits set in `numbers`; the others move together
    in their order."""
    retained = 0
    for number in range(line.count):
        if numbers >> number & 1 == 0:
            move_run(run_at(state, line, retained), run_at(state, line, number))
            retained += 1
    line.count = retained


@jitable
def record_ordered_run(
    state: DetectorState,
    line: LineShadow,
    interval_word: int,
    thread_word: int,
    access_word: int,
    words: int,
) -> int:
    """Records a weak access, given by the words of a run, in a line as `record_run` would without
    vector clocks. It can if each run that shares a word with the access is of an earlier interval
    of the block, or is of this interval and its common bytes are accessed by the same threads. The
    access replaces the last of these runs all of whose words it covers, or else becomes a further
    run; it never replaces one if its lanes have less than four bytes, nor a write if it is a read.
    Returns 1 if it is recorded; 0, with the line's runs unchanged, if such a run is not ordered so,
    the line is in cells or has MORE_FROM runs or more, settled bytes are in force, or the pool is
    exhausted."""
    run_count, extension, replaced = line.count, LineExtension(state, line.extension), -1
    if run_count >= MORE_FROM or run_count < 0 or (extension.at and extension.settled & IN_FORCE):
        return 0
    is_read = access_word >> OP_AT & OP_BITS == LOAD
    for number in range(run_count):
        run = run_at(state, line, number)
        # Words are compared, not bytes: stricter for lanes of less than a word, and never wrong.
        if run.mask & words:
            if not is_run_before(run, interval_word, thread_word, access_word):
                return 0
            covers_run = run.mask & ~words == 0 and size_of(access_word) >= WORD
            if covers_run and (not is_read or run.access >> OP_AT & OP_BITS == LOAD):
                replaced = number
    if replaced < 0:
        if not reserve_run(state, line, run_count):
            return 0
        line.count, replaced = run_count + 1, run_count
    run = run_at(state, line, replaced)
    run.interval, run.thread, run.access, run.mask = interval_word, thread_word, access_word, words
    return 1


@jitable
def is_run_before(run: LaneRun, interval_word: int, thread_word: int, access_word: int) -> int:
    """Returns whether a run is of an earlier interval of the access's block, or is of the same
    block and interval and each byte in common is accessed by the same thread in both."""
    if run.interval != interval_word:
        same_block = run.interval >> BLOCK_AT == interval_word >> BLOCK_AT
        return int(same_block and run.interval < interval_word)
    lanes = (thread_word & THREAD_BITS) - (run.thread & THREAD_BITS)
    return overlap_is_same_thread(run.access, access_word, lanes)


@jitable
def reserve_run(state: DetectorState, line: LineShadow, number: int) -> int:
    """Returns whether a line can hold run number `number`: run 0 always; for others allocates the
    line's extension, and the part of it for the run, if missing; 0 if the pool is exhausted."""
    if number == 0:
        return 1
    extension = LineExtension(state, extension_of(state, line))
    if extension.at == 0 or number < FEW_FROM:
        return int(extension.at != 0)
    at, size = extension.at + LineExtension.few, FEW_WORDS
    if number >= MORE_FROM:
        at, size = extension.at + LineExtension.more, MORE_WORDS
    if state.words[at] == 0:
        state.words[at] = allocate_for_lines(state, size)
    return int(state.words[at] != 0)


@jitable
def is_run_ordered(state: DetectorState, run: LaneRun, thread: int, footprint: int) -> int:
    """Returns whether a run is ordered before the current warp's access by lanes from `thread` on:
    by a barrier, by a synchronization of the warp, or because the same threads access all common
    bytes. 0 for a run of another block, and if only its lanes one by one would show that."""
    interval_word, thread_word = run.interval, run.thread
    if interval_word >> BLOCK_AT != state.current_block + 1:
        return 0
    if interval_word & LOW < state.current_interval:
        return 1
    first_thread = thread_word & THREAD_BITS
    if first_thread >> 5 == thread >> 5 and thread_word >> TIME_AT < state.current_synced:
        return 1
    return overlap_is_same_thread(run.access, footprint, thread - first_thread)


@jitable
def retained_pair_covers(
    state: DetectorState,
    first_reader: int,
    second_reader: int,
    interval_word: int,
    thread_word: int,
) -> int:
    """Returns whether two retained reads (indices of their runs) make a third, given by its words,
    redundant: their distance (lane, warp, block) is at least as large as it is from either, so a
    later write ordered after both is ordered after it. Leaves their distance in
    `current_distance`."""
    between = state.current_distance = distance_between(state, first_reader, second_reader)
    first_run, second_run = LaneRun(state, first_reader), LaneRun(state, second_reader)
    if between < thread_distance(first_run.interval, first_run.thread, interval_word, thread_word):
        return 0
    return int(
        between
        >= thread_distance(second_run.interval, second_run.thread, interval_word, thread_word)
    )


@jitable
def move_run(to: LaneRun, run: LaneRun) -> None:
    """Copies a run to another position in its line; nothing if it is there."""
    if to.at != run.at:
        to.interval, to.thread, to.access, to.mask = run.interval, run.thread, run.access, run.mask


@jitable
def tag_line(state: DetectorState, line: LineShadow, tag: int, space: int) -> None:
    """Prepares a line for an access of the block and interval in `tag`: marks it as touched. In
    shared memory, stores the tag and empties a line that an earlier block used, and, if only
    barriers order accesses, one of an earlier interval, all of whose accesses are ordered before.
    """
    line.touched = 1
    previous = line.tag
    if space == SHARED and previous != tag:
        line.tag = tag
        if previous >> BLOCK_AT != tag >> BLOCK_AT or only_barriers_order(state):
            reset_line(state, line)


@jitable
def current_tag(state: DetectorState) -> int:
    """Returns the tag (packed as an interval word) of a line of shared memory that is accessed now:
    the block that owns the selected memory, and the current interval."""
    return int(state.current_owner + 1 << BLOCK_AT | state.current_interval)


@jitable
def only_barriers_order(state: DetectorState) -> int:
    """Returns whether all accesses to shared memory before a barrier of the block are ordered
    before those after it: the kernel has no agents and no clusters, so only the block's threads
    access it."""
    return int(state.clock_words == state.threads and state.cluster_blocks == 1)


@jitable
def reset_line(state: DetectorState, line: LineShadow) -> None:
    """Empties a line of runs and settled bytes. Its cells are left: they are cleared when runs are
    next moved into them."""
    line.count = 0
    clear_settled_line(state, line)
