"""Holds block sets: what a thread knows of other blocks, as a sparse vector clock in the race
detector's pool. A set is immutable and shared; to add to one makes another. A set of blocks 2 and
9:

    2, (3, interval 1, clock 0, thread 0, time 4, synced 4), (10, interval 0, ...)

Of block 2 all before interval 1 is known, and in that interval thread 0 before time 4, and its warp
before time 4.
"""

from __future__ import annotations

from warploom.detector.agents import agent_index, begun_index, includes_copy, join_agent_word
from warploom.detector.layout import AGENT, AGENT_KIND_AT, WORK_OF_THREAD
from warploom.detector.pool import allocate
from warploom.detector.records import BlockSetEntry, DetectorState
from warploom.simt.lane_counts import jitable
from warploom.simt.record_copies import copy_record


@jitable
def set_knows(
    state: DetectorState, block_set: int, block: int, interval: int, thread: int, time: int
) -> int:
    """Returns whether a block set (0: empty) includes an access of the block with number `block` -
    1: by `thread` (its agent's kind included) at `time` of `interval`. All of earlier intervals
    than the entry's are included; of agents, the interval is ignored."""
    entry = BlockSetEntry(state, find_entry(state, block_set, block))
    if entry.at == 0:
        return 0
    if thread & AGENT:
        return entry_knows_agent(state, entry, thread, time)
    if entry.interval != interval:
        return int(interval < entry.interval)
    return int(time < first_unknown(state, entry, thread))


@jitable
def entry_knows_agent(state: DetectorState, entry: BlockSetEntry, agent: int, time: int) -> int:
    """Returns whether an entry of a block set includes access number `time` of agent `agent`. If
    both that access and the current one are work of tensor cores, it is enough that the former had
    begun before a fence."""
    if includes_copy(entry_agent_word(state, entry, agent_index(state, agent)), time):
        return 1
    kind, own = agent >> AGENT_KIND_AT, state.current_agent >> AGENT_KIND_AT
    if kind != WORK_OF_THREAD or own != WORK_OF_THREAD:
        return 0
    return includes_copy(
        entry_agent_word(state, entry, begun_index(state, agent & AGENT - 1)), time
    )


@jitable
def find_entry(state: DetectorState, block_set: int, block: int) -> int:
    """Returns the index in the state of a block set's entry for the block with number `block` - 1,
    by binary search; 0 for none."""
    if block_set == 0:
        return 0
    low, high = 0, state.words[block_set]
    while low < high:
        middle = (low + high) // 2
        if state.words[block_set + 1 + middle * BlockSetEntry.WORDS] < block:
            low = middle + 1
        else:
            high = middle
    entry = block_set + 1 + low * BlockSetEntry.WORDS
    return int(entry if low < state.words[block_set] and state.words[entry] == block else 0)


@jitable
def first_unknown(state: DetectorState, entry: BlockSetEntry, thread: int) -> int:
    """Returns the first time of a thread, in the interval of an entry of a block set, that the
    entry does not include: `time` for the thread that released, `synced` for others of its warp, or
    the entry of the entry's clock for the thread if that is later; 0 for a thread of which nothing
    is known."""
    time = 0
    if entry.thread == thread:
        time = entry.time
    elif entry.thread >> 5 == thread >> 5:
        time = entry.synced
    if entry.clock:
        time = max(time, state.words[entry.clock + thread])
    return int(time)


@jitable
def entry_agent_word(state: DetectorState, entry: BlockSetEntry, agent: int) -> int:
    """Returns what an entry of a block set knows of an agent, as an agent word (`agents`), by the
    agent's index; 0 if the entry has no clock or the kernel no agents."""
    if state.agents == 0 or entry.clock == 0:
        return 0
    return int(state.words[entry.clock + state.threads + agent])


@jitable
def entry_includes(state: DetectorState, a: BlockSetEntry, b: BlockSetEntry) -> int:
    """Returns whether entry `a` of a block set includes all that entry `b` of the same block
    includes, accesses of threads and of agents."""
    if b.clock and b.clock != a.clock:
        for agent in range(state.agents):
            block_set = entry_agent_word(state, a, agent)
            if join_agent_word(block_set, entry_agent_word(state, b, agent)) != block_set:
                return 0
    return entry_includes_accesses(state, a, b)


@jitable
def entry_includes_accesses(state: DetectorState, a: BlockSetEntry, b: BlockSetEntry) -> int:
    """Returns whether entry `a` of a block set includes all accesses that entry `b` of the same
    block includes, without those of agents: it is of a later interval, or of the same one and knows
    each thread up to as late a time."""
    if a.interval != b.interval:
        return int(a.interval > b.interval)
    if b.clock and b.clock != a.clock:
        for thread in range(state.threads):
            if first_unknown(state, a, thread) < first_unknown(state, b, thread):
                return 0
        return 1
    # Without a clock of its own, `b` knows only the warp of the thread that released.
    first_thread = b.thread >> 5 << 5
    for thread in range(first_thread, first_thread + 32):
        if first_unknown(state, a, thread) < first_unknown(state, b, thread):
            return 0
    return 1


@jitable
def set_includes(state: DetectorState, a: int, b: int) -> int:
    """Returns whether block set `a` includes all that set `b` does (neither empty): for each block
    of `b`, it has an entry that includes that of `b`."""
    # Both are sorted by block, so that one pass over each is enough.
    at, end = a + 1, a + 1 + state.words[a] * BlockSetEntry.WORDS
    for number in range(state.words[b]):
        entry = BlockSetEntry(state, b + 1, number)
        while at < end and state.words[at] < state.words[entry.at]:
            at += BlockSetEntry.WORDS
        if (
            at == end
            or state.words[at] != state.words[entry.at]
            or not entry_includes(state, BlockSetEntry(state, at), entry)
        ):
            return 0
    return 1


@jitable
def join_sets(state: DetectorState, a: int, b: int) -> int:
    """Returns the union of two block sets (0: empty): one of the two if that includes the other,
    else a new one from the pool, with entries sorted by block and those of one block joined.
    Neither is changed. `a` if the pool is exhausted."""
    if a == b or b == 0:
        return a
    if a == 0:
        return b
    if set_includes(state, a, b):
        return a
    if set_includes(state, b, a):
        return b
    # A new set, even where only one entry changes: others may hold the index of either. Space for
    # the case that no block is in both; what is left over is lost to the pool.
    joined = allocate(state, 1 + (state.words[a] + state.words[b]) * BlockSetEntry.WORDS)
    if joined == 0:
        return a
    to, i, j = joined + 1, 0, 0
    while i < state.words[a] or j < state.words[b]:
        x, y = BlockSetEntry(state, a + 1, i), BlockSetEntry(state, b + 1, j)
        entry = BlockSetEntry(state, to)
        if j == state.words[b] or (i < state.words[a] and state.words[x.at] < state.words[y.at]):
            copy_record(entry, x)
            i += 1
        elif i == state.words[a] or state.words[y.at] < state.words[x.at]:
            copy_record(entry, y)
            j += 1
        else:
            join_entries(state, entry, x, y)
            i += 1
            j += 1
        to += BlockSetEntry.WORDS
    state.words[joined] = (to - joined - 1) // BlockSetEntry.WORDS
    return int(joined)


@jitable
def join_entries(
    state: DetectorState, to: BlockSetEntry, a: BlockSetEntry, b: BlockSetEntry
) -> None:
    """Writes the union of two entries of the same block to the entry `to`: one of them if it
    includes the other; else the entry of the later interval with a new clock. The clock has the
    agents of both entries and, if both are of one interval, the times of both. If the pool is
    exhausted, writes only a copy of the later entry."""
    if entry_includes(state, a, b):
        copy_record(to, a)
    elif entry_includes(state, b, a):
        copy_record(to, b)
    else:
        later, earlier = (a, b) if a.interval >= b.interval else (b, a)
        copy_record(to, later)
        clock = allocate(state, state.clock_words)
        if clock == 0:
            return
        for thread in range(state.threads):
            state.words[clock + thread] = first_unknown(state, later, thread)
            if earlier.interval == later.interval:
                unknown = first_unknown(state, earlier, thread)
                state.words[clock + thread] = max(state.words[clock + thread], unknown)
        for agent in range(state.agents):
            both = join_agent_word(
                entry_agent_word(state, a, agent), entry_agent_word(state, b, agent)
            )
            state.words[clock + state.threads + agent] = both
        to.clock = clock
