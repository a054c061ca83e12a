"""Writes release records of the race detector, which have what a thread knew when it released, and
adds what they have to the knowledge of threads that acquire them."""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import block_agent_words, join_agent_words
from warploom.detector.clocks import current_clock, current_set, has_clock, join_clocks, learn_set
from warploom.detector.knowledge import is_ordered
from warploom.detector.layout import (
    B_BLOCK,
    BLOCK_AT,
    CLOCK_WORDS,
    ME_BLOCK,
    ME_INTERVAL,
    ME_SLOT,
    ME_SYNCED,
    ME_THREAD,
    ME_TIME,
    REL_BLOCK,
    REL_CLOCK,
    REL_INTERVAL,
    REL_SCOPE,
    REL_SET,
    REL_SYNCED,
    REL_THREAD,
    REL_TIME,
    THREADS,
    TIME_AT,
)
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import allocate
from warploom.simt.lane_counts import jitable


@jitable
def write_release(state: Any, release: int, scope: int) -> None:
    """Writes what the current thread knows now to the release record at index `release` of the
    state: its own time, its warp's last synchronisation, a copy of its clock if that has more (none
    if the pool is exhausted), its block set, and `scope`."""
    clock = 0
    if has_clock(state) or state[CLOCK_WORDS] > state[THREADS]:
        clock = allocate(state, state[CLOCK_WORDS])
        if clock:
            join_clocks(state, clock, current_clock(state))
            if state[CLOCK_WORDS] > state[THREADS]:
                join_agent_words(state, clock + state[THREADS], block_agent_words(state))
    state[release + REL_BLOCK] = state[state[ME_SLOT] + B_BLOCK]
    state[release + REL_INTERVAL] = state[ME_INTERVAL]
    state[release + REL_THREAD] = state[ME_THREAD]
    state[release + REL_TIME] = state[ME_TIME] + 1
    state[release + REL_SYNCED] = state[ME_SYNCED]
    state[release + REL_CLOCK] = clock
    state[release + REL_SET] = current_set(state)
    state[release + REL_SCOPE] = scope


@jitable
def acquire_release(state: Any, release: int) -> None:
    """Lets the current thread know what the thread of a release record knew; nothing if it knows
    the release itself. A record of an earlier interval of the same block adds only what it knew of
    other blocks, as the barrier has made the rest known."""
    # Tested by an interval word and a thread word of an access just before the release.
    first_thread = state[release + REL_BLOCK] << BLOCK_AT | state[release + REL_INTERVAL]
    if is_ordered(
        state, first_thread, state[release + REL_TIME] - 1 << TIME_AT | state[release + REL_THREAD]
    ):
        return
    if state[release + REL_BLOCK] != state[ME_BLOCK] + 1:
        learn_set(state, set_with_release(state, release))
        return
    learn_set(state, state[release + REL_SET])
    if state[release + REL_INTERVAL] == state[ME_INTERVAL]:
        clock, first_thread = current_clock(state), state[release + REL_THREAD] >> 5 << 5
        for thread in range(first_thread, first_thread + 32):
            state[clock + thread] = max(state[clock + thread], state[release + REL_SYNCED])
        state[clock + state[release + REL_THREAD]] = max(
            state[clock + state[release + REL_THREAD]], state[release + REL_TIME]
        )
        if state[release + REL_CLOCK]:
            join_clocks(state, clock, state[release + REL_CLOCK])


@jitable
def set_with_release(state: Any, release: int) -> int:
    """Returns a block set of what a release record knows of its own block and of others; 0 if the
    pool is exhausted."""
    # A count and one entry, whose fields are in the order of S_BLOCK to S_SYNCED.
    single_set = allocate(state, 7)
    if single_set == 0:
        return 0
    state[single_set] = 1
    state[single_set + 1] = state[release + REL_BLOCK]
    state[single_set + 2] = state[release + REL_INTERVAL]
    state[single_set + 3] = state[release + REL_CLOCK]
    state[single_set + 4] = state[release + REL_THREAD]
    state[single_set + 5] = state[release + REL_TIME]
    state[single_set + 6] = state[release + REL_SYNCED]
    return join_sets(state, state[release + REL_SET], single_set)
