"""Notes of what a thread knew when it released, and how another learns that."""

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
def write_release(state: Any, at: int, scope: int) -> None:
    """Writes at `at` what the current thread knows now."""
    row = 0
    if has_clock(state) or state[CLOCK_WORDS] > state[THREADS]:
        row = allocate(state, state[CLOCK_WORDS])
        if row:
            join_clocks(state, row, current_clock(state))
            if state[CLOCK_WORDS] > state[THREADS]:
                join_agent_words(state, row + state[THREADS], block_agent_words(state))
    state[at + REL_BLOCK] = state[state[ME_SLOT] + B_BLOCK]
    state[at + REL_INTERVAL] = state[ME_INTERVAL]
    state[at + REL_THREAD] = state[ME_THREAD]
    state[at + REL_TIME] = state[ME_TIME] + 1
    state[at + REL_SYNCED] = state[ME_SYNCED]
    state[at + REL_CLOCK] = row
    state[at + REL_SET] = current_set(state)
    state[at + REL_SCOPE] = scope


@jitable
def acquire_release(state: Any, at: int) -> None:
    """Let the current thread know from now on what a release at `at` knew. Who knows of the release
    itself knows that already."""
    first = state[at + REL_BLOCK] << BLOCK_AT | state[at + REL_INTERVAL]
    if is_ordered(state, first, state[at + REL_TIME] - 1 << TIME_AT | state[at + REL_THREAD]):
        return
    if state[at + REL_BLOCK] != state[ME_BLOCK] + 1:
        learn_set(state, set_with_release(state, at))
        return
    learn_set(state, state[at + REL_SET])
    if state[at + REL_INTERVAL] == state[ME_INTERVAL]:
        row, first = current_clock(state), state[at + REL_THREAD] >> 5 << 5
        for thread in range(first, first + 32):
            state[row + thread] = max(state[row + thread], state[at + REL_SYNCED])
        state[row + state[at + REL_THREAD]] = max(
            state[row + state[at + REL_THREAD]], state[at + REL_TIME]
        )
        if state[at + REL_CLOCK]:
            join_clocks(state, row, state[at + REL_CLOCK])


@jitable
def set_with_release(state: Any, at: int) -> int:
    """Returns the set of what a release knew of its own block and of others."""
    own = allocate(state, 7)
    if own == 0:
        return 0
    state[own] = 1
    state[own + 1] = state[at + REL_BLOCK]
    state[own + 2] = state[at + REL_INTERVAL]
    state[own + 3] = state[at + REL_CLOCK]
    state[own + 4] = state[at + REL_THREAD]
    state[own + 5] = state[at + REL_TIME]
    state[own + 6] = state[at + REL_SYNCED]
    return join_sets(state, state[at + REL_SET], own)
