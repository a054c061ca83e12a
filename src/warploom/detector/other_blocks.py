"""Holds block sets: what a thread knows of other blocks, as a sparse vector clock in the race
detector's pool. A set is immutable and shared; to add to one makes another. A set of blocks 2 and
9:

    2, (3, interval 1, clock 0, thread 0, time 4, synced 4), (10, interval 0, ...)

Of block 2 all before interval 1 is known, and in that interval thread 0 before time 4, and its warp
before time 4.
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import agent_index, begun_index, includes_copy, join_agent_word
from warploom.detector.layout import (
    AGENT,
    AGENT_KIND_AT,
    AGENTS,
    CLOCK_WORDS,
    ME_AGENT,
    S_CLOCK,
    S_INTERVAL,
    S_SYNCED,
    S_THREAD,
    S_TIME,
    SET_WORDS,
    THREADS,
    WORK_OF_THREAD,
)
from warploom.detector.pool import allocate
from warploom.simt.lane_counts import jitable


@jitable
def set_knows(state: Any, block_set: int, block: int, interval: int, thread: int, time: int) -> int:
    """Returns whether a block set (0: empty) includes an access of the block with number `block` -
    1: by `thread` (its agent's kind included) at `time` of `interval`. Of agents, the interval is
    ignored."""
    entry = find_entry(state, block_set, block)
    if entry == 0:
        return 0
    if thread & AGENT:
        return entry_knows_agent(state, entry, thread, time)
    if state[entry + S_INTERVAL] != interval:
        return int(interval < state[entry + S_INTERVAL])
    return int(time < first_unknown(state, entry, thread))


@jitable
def entry_knows_agent(state: Any, entry: int, who: int, time: int) -> int:
    """Returns whether an entry of a block set includes access number `time` of agent `who`. If both
    it and the current access are work of tensor cores, it is enough that it had begun before a
    fence."""
    if includes_copy(entry_agent_word(state, entry, agent_index(state, who)), time):
        return 1
    kind, own = who >> AGENT_KIND_AT, state[ME_AGENT] >> AGENT_KIND_AT
    if kind != WORK_OF_THREAD or own != WORK_OF_THREAD:
        return 0
    return includes_copy(entry_agent_word(state, entry, begun_index(state, who & AGENT - 1)), time)


@jitable
def find_entry(state: Any, block_set: int, block: int) -> int:
    """Returns the index in the state of a block set's entry for the block with number `block` - 1,
    by binary search; 0 for none."""
    if block_set == 0:
        return 0
    low, high = 0, state[block_set]
    while low < high:
        middle = (low + high) // 2
        if state[block_set + 1 + middle * SET_WORDS] < block:
            low = middle + 1
        else:
            high = middle
    entry = block_set + 1 + low * SET_WORDS
    return int(entry if low < state[block_set] and state[entry] == block else 0)


@jitable
def first_unknown(state: Any, entry: int, thread: int) -> int:
    """Returns the first time of a thread, in the interval of an entry of a block set, that the
    entry does not include: for the thread that released its TIME, for others of its warp SYNCED, or
    what the entry's clock has if that is later; 0 for a thread of which nothing is known."""
    time = 0
    if state[entry + S_THREAD] == thread:
        time = state[entry + S_TIME]
    elif state[entry + S_THREAD] >> 5 == thread >> 5:
        time = state[entry + S_SYNCED]
    if state[entry + S_CLOCK]:
        time = max(time, state[state[entry + S_CLOCK] + thread])
    return int(time)


@jitable
def entry_agent_word(state: Any, entry: int, agent: int) -> int:
    """Returns what an entry of a block set knows of an agent, as an agent word (`agents`), by the
    agent's index; 0 if the entry has no clock."""
    if state[AGENTS] == 0 or state[entry + S_CLOCK] == 0:
        return 0
    return int(state[state[entry + S_CLOCK] + state[THREADS] + agent])


@jitable
def entry_includes(state: Any, a: int, b: int) -> int:
    """Returns whether entry `a` of a block set includes all that entry `b` of the same block
    includes, accesses of threads and of agents."""
    if state[b + S_CLOCK] and state[b + S_CLOCK] != state[a + S_CLOCK]:
        for agent in range(state[AGENTS]):
            block_set = entry_agent_word(state, a, agent)
            if join_agent_word(block_set, entry_agent_word(state, b, agent)) != block_set:
                return 0
    return entry_includes_accesses(state, a, b)


@jitable
def entry_includes_accesses(state: Any, a: int, b: int) -> int:
    """Returns whether entry `a` of a block set includes all accesses that entry `b` of the same
    block includes, without those of agents: it is of a later interval, or knows each thread up to
    as late a time."""
    if state[a + S_INTERVAL] != state[b + S_INTERVAL]:
        return int(state[a + S_INTERVAL] > state[b + S_INTERVAL])
    if state[b + S_CLOCK] and state[b + S_CLOCK] != state[a + S_CLOCK]:
        for thread in range(state[THREADS]):
            if first_unknown(state, a, thread) < first_unknown(state, b, thread):
                return 0
        return 1
    # Without a clock of its own, `b` knows only the warp of the thread that released.
    first = state[b + S_THREAD] >> 5 << 5
    for thread in range(first, first + 32):
        if first_unknown(state, a, thread) < first_unknown(state, b, thread):
            return 0
    return 1


@jitable
def set_includes(state: Any, a: int, b: int) -> int:
    """Returns whether block set `a` includes all that set `b` does (neither empty): for each block
    of `b`, it has an entry that includes that of `b`."""
    at, end = a + 1, a + 1 + state[a] * SET_WORDS
    for number in range(state[b]):
        entry = b + 1 + number * SET_WORDS
        while at < end and state[at] < state[entry]:
            at += SET_WORDS
        if at == end or state[at] != state[entry] or not entry_includes(state, at, entry):
            return 0
    return 1


@jitable
def join_sets(state: Any, a: int, b: int) -> int:
    """Returns the union of two sets (0: empty): one of the two if that includes the other, else a
    new one from the pool; `a` if the pool is exhausted."""
    if a == b or b == 0:
        return a
    if a == 0:
        return b
    if set_includes(state, a, b):
        return a
    if set_includes(state, b, a):
        return b
    joined = allocate(state, 1 + (state[a] + state[b]) * SET_WORDS)
    if joined == 0:
        return a
    to, i, j = joined + 1, 0, 0
    while i < state[a] or j < state[b]:
        x, y = a + 1 + i * SET_WORDS, b + 1 + j * SET_WORDS
        if j == state[b] or (i < state[a] and state[x] < state[y]):
            copy_entry(state, to, x)
            i += 1
        elif i == state[a] or state[y] < state[x]:
            copy_entry(state, to, y)
            j += 1
        else:
            join_entries(state, to, x, y)
            i += 1
            j += 1
        to += SET_WORDS
    state[joined] = (to - joined - 1) // SET_WORDS
    return int(joined)


@jitable
def copy_entry(state: Any, to: int, source: int) -> None:
    """Copies an entry of a block set from index `source` of the state to index `to`."""
    for word in range(SET_WORDS):
        state[to + word] = state[source + word]


@jitable
def join_entries(state: Any, to: int, a: int, b: int) -> None:
    """Writes the union of two entries of the same block to index `to`: one of them if that includes
    the other, else the entry of the later interval with a new clock that has the times of both;
    without the earlier one's times if the pool is exhausted."""
    if entry_includes(state, a, b):
        copy_entry(state, to, a)
    elif entry_includes(state, b, a):
        copy_entry(state, to, b)
    else:
        later, earlier = (a, b) if state[a + S_INTERVAL] >= state[b + S_INTERVAL] else (b, a)
        copy_entry(state, to, later)
        clock = allocate(state, state[CLOCK_WORDS])
        if clock == 0:
            return
        for thread in range(state[THREADS]):
            state[clock + thread] = first_unknown(state, later, thread)
            if state[earlier + S_INTERVAL] == state[later + S_INTERVAL]:
                state[clock + thread] = max(
                    state[clock + thread], first_unknown(state, earlier, thread)
                )
        for agent in range(state[AGENTS]):
            both = join_agent_word(
                entry_agent_word(state, a, agent), entry_agent_word(state, b, agent)
            )
            state[clock + state[THREADS] + agent] = both
        state[to + S_CLOCK] = clock
