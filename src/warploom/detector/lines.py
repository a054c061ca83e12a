"""Lines of 128 bytes: the last runs of lanes that reached them, each kept as one record.

What a few runs cannot tell goes on in the line's cells (`cells`), which are written when that comes
up.
"""

from __future__ import annotations

from typing import Any

from warploom.detector.cells import distance, distance_between, keep_write
from warploom.detector.layout import (
    BLOCK_AT,
    BYTES_AT,
    CELL_WORDS,
    CLUSTER_BLOCKS,
    E_BLOCK,
    E_INSTRUCTION,
    E_LANES,
    E_WARP,
    EXACT,
    FALLS,
    FEW_FROM,
    H_COUNT,
    H_REST,
    H_TAG,
    H_TOUCHED,
    IN_CELLS,
    IN_FORCE,
    LINE_BYTES,
    LISTS,
    LOAD,
    LOW,
    ME_BASE,
    ME_BLOCK,
    ME_DISTANCE,
    ME_INSTRUCTION,
    ME_INTERVAL,
    ME_OWNER,
    ME_SPACE,
    ME_SYNCED,
    ME_TIME,
    MORE_FROM,
    MOST_RUNS,
    OP_AT,
    R_FIRST,
    ROW,
    RUN_WORDS,
    SHARED,
    SITE_BITS,
    THREAD_BITS,
    THREADS,
    TIME_AT,
    X_FEW,
    X_MORE,
    X_SETTLED,
)
from warploom.detector.pool import give_back_all, push
from warploom.detector.quick_words import stored_word
from warploom.detector.runs import (
    WORD,
    are_lanes_own,
    begin_of,
    covers,
    end_of,
    never_overlap,
    size_of,
    stride_of,
)
from warploom.detector.settled import (
    rest_of,
    run_at,
    settle_run,
    take_for_lines,
    unsettle_line,
)
from warploom.simt.lane_counts import jitable

RUN_BITS = SITE_BITS | 3 << OP_AT
"""The bits of a run's third word that a record of a cell has too: instruction and op."""

FEW_WORDS, MORE_WORDS = (MORE_FROM - FEW_FROM) * RUN_WORDS, (MOST_RUNS - MORE_FROM) * RUN_WORDS


@jitable
def take_run(s: Any, line: int, thread: int, op: int, place: int, words: int) -> int:
    """Take a weak access of lanes from `thread` on to a place of a line and its words (`runs`);
    return whether the line could, 0 where its cells must."""
    if s[line + H_COUNT] == IN_CELLS:
        return 0
    covered, one, two = 0, 0, 0
    for number in range(s[line + H_COUNT]):
        run = run_at(s, line, number)
        third, own = s[run + 2], s[run + 3]
        if own & words == 0:
            continue
        is_read = third >> OP_AT & 3 == LOAD
        before = precedes(s, run, thread, place)
        if not (before or (is_read and op == LOAD) or never_overlap(third, own, place, words)):
            return 0
        if before and (op != LOAD or is_read) and covers(place, words, third, own):
            covered |= 1 << number
        elif is_read and not before and covers(third, own, place, words):
            if one and (two == 0 or distance_between(s, one, run) > distance_between(s, one, two)):
                two = run
            one = run if one == 0 else one
    first, second = s[ME_BLOCK] + 1 << BLOCK_AT | s[ME_INTERVAL], s[ME_TIME] << TIME_AT | thread
    stand = op == LOAD and s[EXACT] == 0 and two and stand_for(s, one, two, first, second)
    if covered:
        drop_runs(s, line, covered)
    if stand:
        settle_run(s, line, place, words)
        return 1
    kept = s[line + H_COUNT]
    if kept == MOST_RUNS or not has_slot(s, line, kept):
        return 0
    run = run_at(s, line, kept)
    s[line + H_COUNT] = kept + 1
    s[run], s[run + 1] = first, second
    s[run + 2], s[run + 3] = s[ME_INSTRUCTION] | op << OP_AT | place, words
    return 1


@jitable
def drop_runs(s: Any, line: int, numbers: int) -> None:
    """Drop those runs of a line whose bits are set."""
    kept = 0
    for number in range(s[line + H_COUNT]):
        if numbers >> number & 1 == 0:
            move_run(s, run_at(s, line, kept), run_at(s, line, number))
            kept += 1
    s[line + H_COUNT] = kept


@jitable
def take_alone(s: Any, line: int, first: int, second: int, third: int, words: int) -> int:
    """Take a weak access, whose run has these words, as `take_run` does where the line's other runs
    with any of them are of the same lanes in the same interval, or of earlier intervals of the
    block; return whether it was taken. A run that the access stands for gives way to it."""
    count, rest, place = s[line + H_COUNT], s[line + H_REST], -1
    if count >= MORE_FROM or count < 0 or (rest and s[rest + X_SETTLED] & IN_FORCE):
        return 0
    reads = third >> OP_AT & 3 == LOAD
    for number in range(count):
        run = run_at(s, line, number)
        if s[run + 3] & words:
            if not is_in_order(s, run, first, second, third):
                return 0
            stands = s[run + 3] & ~words == 0 and size_of(third) >= WORD
            if stands and (not reads or s[run + 2] >> OP_AT & 3 == LOAD):
                place = number
    if place < 0:
        if not has_slot(s, line, count):
            return 0
        s[line + H_COUNT], place = count + 1, count
    run = run_at(s, line, place)
    s[run], s[run + 1], s[run + 2], s[run + 3] = first, second, third, words
    return 1


@jitable
def is_in_order(s: Any, run: int, first: int, second: int, third: int) -> int:
    """Return whether a run comes before an access that would be another, since it is of an earlier
    interval of the block, or since each of its lanes reaches what it reaches there."""
    if s[run] != first:
        return int(s[run] >> BLOCK_AT == first >> BLOCK_AT and s[run] < first)
    lanes = (second & THREAD_BITS) - (s[run + 1] & THREAD_BITS)
    return are_lanes_own(s[run + 2], third, lanes)


@jitable
def has_slot(s: Any, line: int, number: int) -> int:
    """Returns whether a line has room for a run of that number, which it is given when it first
    needs it."""
    if number == 0:
        return 1
    rest = rest_of(s, line)
    if rest == 0 or number < FEW_FROM:
        return int(rest != 0)
    at, size = rest + X_FEW, FEW_WORDS
    if number >= MORE_FROM:
        at, size = rest + X_MORE, MORE_WORDS
    if s[at] == 0:
        s[at] = take_for_lines(s, size)
    return int(s[at] != 0)


@jitable
def precedes(s: Any, run: int, thread: int, place: int) -> int:
    """Return whether a run of the current block is ordered before the current warp's access by
    lanes from `thread` on to a place of the line; 0 where its cells would tell."""
    first, second = s[run], s[run + 1]
    if first >> BLOCK_AT != s[ME_BLOCK] + 1:
        return 0
    if first & LOW < s[ME_INTERVAL]:
        return 1
    other = second & THREAD_BITS
    if other >> 5 == thread >> 5 and second >> TIME_AT < s[ME_SYNCED]:
        return 1
    return are_lanes_own(s[run + 2], place, thread - other)


@jitable
def stand_for(s: Any, one: int, two: int, first: int, second: int) -> int:
    """Returns whether two reads stand for another, too (`cells.keep_read`)."""
    between = s[ME_DISTANCE] = distance_between(s, one, two)
    if between < distance(s[one], s[one + 1], first, second):
        return 0
    return int(between >= distance(s[two], s[two + 1], first, second))


@jitable
def move_run(s: Any, to: int, run: int) -> None:
    """Copies a run to another place of its line."""
    if to != run:
        for word in range(RUN_WORDS):
            s[to + word] = s[run + word]


@jitable
def stamp(s: Any, line: int, tag: int, space: int) -> None:
    """Note that a line is reached. In shared memory, what it knows of an earlier block than that of
    the tag is forgotten, and what it knows of earlier intervals, which is ordered before all that
    follows, but for what agents and other blocks do."""
    s[line + H_TOUCHED] = 1
    before = s[line + H_TAG]
    if space == SHARED and before != tag:
        s[line + H_TAG] = tag
        if before >> BLOCK_AT != tag >> BLOCK_AT or knows_by_barriers(s):
            forget(s, line)


@jitable
def tag_here(s: Any) -> int:
    """Return the tag of lines of the memory turned to."""
    return int(s[ME_OWNER] + 1 << BLOCK_AT | s[ME_INTERVAL])


@jitable
def knows_by_barriers(s: Any) -> int:
    """Return whether all that reached shared memory before a barrier of the block is ordered before
    what follows: neither agents nor other blocks are there."""
    return int(s[ROW] == s[THREADS] and s[CLUSTER_BLOCKS] == 1)


@jitable
def forget(s: Any, line: int) -> None:
    """Makes a line one that nobody has reached. What its cells have is ordered before all that
    follows: they are written anew only when runs are put into them."""
    s[line + H_COUNT] = 0
    unsettle_line(s, line)


@jitable
def open_line(
    s: Any, e: Any, line: int, cells: int, begins: int, memory: Any, addresses: Any, data: Any
) -> None:
    """Has a line's cells go on for it; `begins` is the address of its bytes. What the current event
    stores, at the addresses of its lanes, is not in memory yet, but in `data`."""
    count = s[line + H_COUNT]
    if count == IN_CELLS:
        return
    s[line + H_COUNT] = IN_CELLS
    if count and s[ME_SPACE] == SHARED:
        for word in range(LINE_BYTES // 4):
            clear_cell(s, cells + word * CELL_WORDS)
    for number in range(count):
        open_run(s, e, run_at(s, line, number), cells, begins, memory, addresses, data)


@jitable
def clear_cell(s: Any, cell: int) -> None:
    """Makes a cell one that nobody has reached."""
    give_back_all(s, s[cell + LISTS])
    for word in range(CELL_WORDS):
        s[cell + word] = 0


@jitable
def open_run(
    s: Any, e: Any, run: int, cells: int, begins: int, memory: Any, addresses: Any, data: Any
) -> None:
    """Put what a run did to its line's words into their cells, lane by lane."""
    third, second = s[run + 2], s[run + 1]
    at, size = begin_of(third), size_of(third)
    stride = max(stride_of(third), size)
    step = -1 if third & FALLS else 1
    count = min(size, 4)
    while at < end_of(third):
        if s[run + 3] >> (at >> 2) & 1 == 0:
            at, second = at + stride, second + step
            continue
        for byte in range(at, at + size, count):
            cell = cells + byte // 4 * CELL_WORDS
            bytes_ = (1 << count) - 1 << (byte & 3)
            kept = third & RUN_BITS | bytes_ << BYTES_AT
            if third >> OP_AT & 3 == LOAD:
                add_read(s, cell, s[run], second, kept)
            else:
                value = word_of(memory, s[ME_BASE] + begins + (byte & -4))
                lane = second & 31
                if is_of_event(s, e, run, second) and addresses[lane] == begins + at:
                    value = stored_word(e, data, lane, (byte & -4) - at)
                keep_write(s, cell, bytes_, s[run], second, kept, value)
        at += stride
        second += step


@jitable
def is_of_event(s: Any, e: Any, run: int, second: int) -> int:
    """Return whether a run is of the current event's instruction, and the thread of a second word
    one that executes it."""
    own = s[run] >> BLOCK_AT == e[E_BLOCK] + 1 and second >> 5 & THREAD_BITS >> 5 == e[E_WARP]
    here = s[run + 2] & SITE_BITS == e[E_INSTRUCTION] and e[E_LANES] >> (second & 31) & 1
    return int(own and here)


@jitable
def word_of(memory: Any, address: int) -> int:
    """Return the 32-bit word at an address of the host."""
    value = 0
    for byte in range(4):
        value |= int(memory[address + byte]) << 8 * byte
    return value


@jitable
def add_read(s: Any, cell: int, first: int, second: int, third: int) -> None:
    """Puts a weak read into a cell, beside those that it has."""
    if s[cell + R_FIRST] == 0:
        s[cell + R_FIRST], s[cell + R_FIRST + 1], s[cell + R_FIRST + 2] = first, second, third
        return
    lists = s[cell + LISTS]
    low = push(s, lists & LOW, first, second, third, 0)
    s[cell + LISTS] = lists >> 32 << 32 | low
