"""Holds what threads of a block know of each other, in the race detector's vector clocks: for each
thread of the block, the first time that the clock's thread does not know; after these, what it
knows of agents (`agents`).

    clock of thread 40   [5, 0, 0, ...]    thread 0 is known before time 5
    joined with          [3, 7, 0, ...]
    gives                [5, 7, 0, ...]

A clock is valid for one interval: a barrier of all threads makes all earlier accesses known, so it
is cleared when it is next used. Clocks of other blocks are in block sets (`other_blocks`).
"""

from __future__ import annotations

from warploom.detector.agents import join_agent_word
from warploom.detector.other_blocks import find_entry, first_unknown, join_sets
from warploom.detector.records import BlockSetEntry, DetectorState, ResidentBlock, ThreadKnowledge
from warploom.simt.lane_counts import jitable


@jitable
def current_clock(state: DetectorState) -> int:
    """Returns the index in the state of the current thread's vector clock, made valid for reading
    and writing: its words of threads are cleared if they are of an earlier interval (before the
    last barrier of all threads), those of agents if never used."""
    holder = ThreadKnowledge(state, state.current_holder_at)
    clock = state.current_clock_at
    threads = state.threads
    # Stamps are the interval and one, so that 0, in cleared memory, is never valid.
    if holder.clock_stamp != state.current_interval + 1:
        holder.clock_stamp = state.current_interval + 1
        for thread in range(threads):
            state.words[clock + thread] = 0
    # What is known of agents outlasts barriers: their accesses are not of an interval.
    if state.clock_words > threads and holder.agent_stamp == 0:
        holder.agent_stamp = 1
        for thread in range(threads, state.clock_words):
            state.words[clock + thread] = 0
    return int(clock)


@jitable
def join_clocks(state: DetectorState, to: int, source: int) -> None:
    """Adds to the vector clock at index `to` what the one at `source` knows: the later time of each
    thread, and of agents the union."""
    threads = state.threads
    for thread in range(threads):
        if state.words[source + thread] > state.words[to + thread]:
            state.words[to + thread] = state.words[source + thread]
    join_agent_part(state, to, source)


@jitable
def join_agent_part(state: DetectorState, to: int, source: int) -> None:
    """Joins to the agent words (what is known of asynchronous copies) of the vector clock at index
    `to` those of the one at `source`; words of threads stay."""
    for thread in range(state.threads, state.clock_words):
        if state.words[source + thread]:
            state.words[to + thread] = join_agent_word(
                state.words[to + thread], state.words[source + thread]
            )


@jitable
def has_clock(state: DetectorState) -> int:
    """Returns whether the current thread's vector clock is valid, in this interval or for agents:
    the thread knows more than follows from barriers and warps."""
    holder = ThreadKnowledge(state, state.current_holder_at)
    return int(holder.clock_stamp == state.current_interval + 1 or holder.agent_stamp != 0)


@jitable
def current_set(state: DetectorState) -> int:
    """Returns the block set (sparse vector clock of other blocks) that the current thread knows:
    that of all threads of its block, joined with its own if that is of this interval; 0 if empty.
    """
    holder = ThreadKnowledge(state, state.current_holder_at)
    block_set = ResidentBlock(state, state.current_slot).set
    if holder.set_stamp != state.current_interval + 1:
        return int(block_set)
    return join_sets(state, block_set, holder.set)


@jitable
def learn_set(state: DetectorState, added: int) -> None:
    """Adds block set `added` (what is known of other blocks; 0: empty, nothing to do) to the
    knowledge of the current thread: to its own set, and what the set has of the thread's own block
    to its clock."""
    if added == 0:
        return
    learn_own(state, added)
    holder = ThreadKnowledge(state, state.current_holder_at)
    holder.set = join_sets(state, current_set(state), added)
    holder.set_stamp = state.current_interval + 1


@jitable
def learn_own(state: DetectorState, added: int) -> None:
    """Adds to the current thread's vector clock what block set `added` has of the thread's own
    block, which may come back through other blocks; nothing if it has no such entry. Of threads
    only if the entry is of the present interval (a barrier has made earlier ones known), of agents
    always."""
    entry = BlockSetEntry(state, find_entry(state, added, state.current_block + 1))
    if entry.at == 0:
        return
    if entry.interval == state.current_interval:
        clock, first_thread = current_clock(state), entry.thread >> 5 << 5
        for thread in range(first_thread, first_thread + 32):
            state.words[clock + thread] = max(
                state.words[clock + thread], first_unknown(state, entry, thread)
            )
        if entry.clock:
            join_clocks(state, clock, entry.clock)
    elif state.clock_words > state.threads and entry.clock:
        join_agent_part(state, current_clock(state), entry.clock)


@jitable
def add_to_clock(state: DetectorState, clock: int) -> None:
    """Adds to the vector clock at index `clock` of the state all that the current thread knows of
    its block: its clock, its warp up to the last synchronization, and its own accesses so far."""
    if has_clock(state):
        join_clocks(state, clock, current_clock(state))
    # What no clock stores, because it follows from the warp: what other lanes did before the warp
    # last synchronized, and what the thread itself did up to now (the first unknown time is the
    # next one).
    first_thread = state.current_warp << 5
    for thread in range(first_thread, first_thread + 32):
        state.words[clock + thread] = max(state.words[clock + thread], state.current_synced)
    state.words[clock + state.current_thread] = max(
        state.words[clock + state.current_thread], state.current_time + 1
    )
