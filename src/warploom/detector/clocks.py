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

from typing import Any

from warploom.detector.agents import join_agent_word
from warploom.detector.layout import (
    B_SET,
    CLOCK_WORDS,
    L_AGENT_STAMP,
    L_CLOCK_STAMP,
    L_SET,
    L_SET_STAMP,
    ME_BLOCK,
    ME_CLOCK_AT,
    ME_HOLDER_AT,
    ME_INTERVAL,
    ME_SLOT,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    ME_WARP,
    S_CLOCK,
    S_INTERVAL,
    S_THREAD,
    THREADS,
)
from warploom.detector.other_blocks import find_entry, first_unknown, join_sets
from warploom.simt.lane_counts import jitable


@jitable
def current_clock(state: Any) -> int:
    """Returns the index in the state of the current thread's vector clock, made valid for reading
    and writing: its words of threads are cleared if they are of an earlier interval (before the
    last barrier of all threads), those of agents if never used."""
    holder, clock, threads = state[ME_HOLDER_AT], state[ME_CLOCK_AT], state[THREADS]
    # Stamps are the interval and one, so that 0, in cleared memory, is never valid.
    if state[holder + L_CLOCK_STAMP] != state[ME_INTERVAL] + 1:
        state[holder + L_CLOCK_STAMP] = state[ME_INTERVAL] + 1
        for thread in range(threads):
            state[clock + thread] = 0
    # What is known of agents outlasts barriers: their accesses are not of an interval.
    if state[CLOCK_WORDS] > threads and state[holder + L_AGENT_STAMP] == 0:
        state[holder + L_AGENT_STAMP] = 1
        for thread in range(threads, state[CLOCK_WORDS]):
            state[clock + thread] = 0
    return int(clock)


@jitable
def join_clocks(state: Any, to: int, source: int) -> None:
    """Adds to the vector clock at index `to` what the one at `source` knows: the later time of each
    thread, and of agents the union."""
    threads = state[THREADS]
    for thread in range(threads):
        if state[source + thread] > state[to + thread]:
            state[to + thread] = state[source + thread]
    join_agent_part(state, to, source)


@jitable
def join_agent_part(state: Any, to: int, source: int) -> None:
    """Joins to the agent words (what is known of asynchronous copies) of the vector clock at index
    `to` those of the one at `source`; words of threads stay."""
    for thread in range(state[THREADS], state[CLOCK_WORDS]):
        if state[source + thread]:
            state[to + thread] = join_agent_word(state[to + thread], state[source + thread])


@jitable
def has_clock(state: Any) -> int:
    """Returns whether the current thread's vector clock is valid, in this interval or for agents:
    the thread knows more than follows from barriers and warps."""
    holder = state[ME_HOLDER_AT]
    return int(
        state[holder + L_CLOCK_STAMP] == state[ME_INTERVAL] + 1
        or state[holder + L_AGENT_STAMP] != 0
    )


@jitable
def current_set(state: Any) -> int:
    """Returns the block set (sparse vector clock of other blocks) that the current thread knows:
    that of all threads of its block, joined with its own if that is of this interval; 0 if empty.
    """
    holder, block_set = state[ME_HOLDER_AT], state[state[ME_SLOT] + B_SET]
    if state[holder + L_SET_STAMP] != state[ME_INTERVAL] + 1:
        return int(block_set)
    return join_sets(state, block_set, state[holder + L_SET])


@jitable
def learn_set(state: Any, added: int) -> None:
    """Adds block set `added` (what is known of other blocks; 0: empty, nothing to do) to the
    knowledge of the current thread: to its own set, and what the set has of the thread's own block
    to its clock."""
    if added == 0:
        return
    learn_own(state, added)
    holder = state[ME_HOLDER_AT]
    state[holder + L_SET] = join_sets(state, current_set(state), added)
    state[holder + L_SET_STAMP] = state[ME_INTERVAL] + 1


@jitable
def learn_own(state: Any, added: int) -> None:
    """Adds to the current thread's vector clock what block set `added` has of the thread's own
    block, which may come back through other blocks; nothing if it has no such entry. Of threads
    only if the entry is of the present interval (a barrier has made earlier ones known), of agents
    always."""
    entry = find_entry(state, added, state[ME_BLOCK] + 1)
    if entry == 0:
        return
    if state[entry + S_INTERVAL] == state[ME_INTERVAL]:
        clock, first = current_clock(state), state[entry + S_THREAD] >> 5 << 5
        for thread in range(first, first + 32):
            state[clock + thread] = max(state[clock + thread], first_unknown(state, entry, thread))
        if state[entry + S_CLOCK]:
            join_clocks(state, clock, state[entry + S_CLOCK])
    elif state[CLOCK_WORDS] > state[THREADS] and state[entry + S_CLOCK]:
        join_agent_part(state, current_clock(state), state[entry + S_CLOCK])


@jitable
def add_to_clock(state: Any, clock: int) -> None:
    """Adds to the vector clock at index `clock` of the state all that the current thread knows of
    its block: its clock, its warp up to the last synchronisation, and its own accesses so far."""
    if has_clock(state):
        join_clocks(state, clock, current_clock(state))
    first = state[ME_WARP] << 5
    for thread in range(first, first + 32):
        state[clock + thread] = max(state[clock + thread], state[ME_SYNCED])
    state[clock + state[ME_THREAD]] = max(state[clock + state[ME_THREAD]], state[ME_TIME] + 1)
