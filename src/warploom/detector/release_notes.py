"""Writes release records of the race detector, which have what a thread knew when it released, and
adds what they have to the knowledge of threads that acquire them."""

from __future__ import annotations

from warploom.detector.agents import block_agent_words, join_agent_words
from warploom.detector.clocks import current_clock, current_set, has_clock, join_clocks, learn_set
from warploom.detector.knowledge import is_ordered
from warploom.detector.layout import BLOCK_AT, TIME_AT
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import allocate
from warploom.detector.records import DetectorState, ReleaseRecord, ResidentBlock
from warploom.simt.lane_counts import jitable


@jitable
def write_release(state: DetectorState, release: ReleaseRecord, scope: int) -> None:
    """Writes what the current thread knows now to a release record: its block, interval and thread,
    its own time plus one, its warp's last synchronization, its block set, and `scope`. If its clock
    is valid or there are agents, also a copy of the clock, joined with the block's agent words (0
    if the pool is exhausted)."""
    clock = 0
    if has_clock(state) or state.clock_words > state.threads:
        clock = allocate(state, state.clock_words)
        if clock:
            join_clocks(state, clock, current_clock(state))
            if state.clock_words > state.threads:
                join_agent_words(state, clock + state.threads, block_agent_words(state))
    release.block = ResidentBlock(state, state.current_slot).block
    release.interval = state.current_interval
    release.thread = state.current_thread
    release.time = state.current_time + 1
    release.synced = state.current_synced
    release.clock = clock
    release.set = current_set(state)
    release.scope = scope


@jitable
def acquire_release(state: DetectorState, release: ReleaseRecord) -> None:
    """Lets the current thread know what the thread of a release record knew; nothing if it knows
    the release itself, as it does any of an earlier interval of its block: the barrier has made
    that known."""
    # Tested by an interval word and a thread word of an access just before the release.
    first_thread = release.block << BLOCK_AT | release.interval
    if is_ordered(state, first_thread, release.time - 1 << TIME_AT | release.thread):
        return
    if release.block != state.current_block + 1:
        learn_set(state, set_with_release(state, release))
        return
    learn_set(state, release.set)
    if release.interval == state.current_interval:
        clock, first_thread = current_clock(state), release.thread >> 5 << 5
        for thread in range(first_thread, first_thread + 32):
            state.words[clock + thread] = max(state.words[clock + thread], release.synced)
        state.words[clock + release.thread] = max(state.words[clock + release.thread], release.time)
        if release.clock:
            join_clocks(state, clock, release.clock)


@jitable
def set_with_release(state: DetectorState, release: ReleaseRecord) -> int:
    """Returns a block set of what a release record knows of its own block and of others; 0 if the
    pool has no space for the entry of its own block."""
    # A count and one entry, whose fields are in the order of `block` to `synced`.
    single_set = allocate(state, 7)
    if single_set == 0:
        return 0
    state.words[single_set] = 1
    state.words[single_set + 1] = release.block
    state.words[single_set + 2] = release.interval
    state.words[single_set + 3] = release.clock
    state.words[single_set + 4] = release.thread
    state.words[single_set + 5] = release.time
    state.words[single_set + 6] = release.synced
    return join_sets(state, release.set, single_set)
