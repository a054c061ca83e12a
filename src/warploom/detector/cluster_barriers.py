"""Processes the barrier of a cluster in the race detector, in phases: what the threads of its
blocks know of each other after it.

A thread arrives at one phase after the other, so its arrivals count the phases. Each block has a
record of a phase: an interval, a vector clock of its threads, and a block set. The first thread
that leaves a phase joins the records of all blocks in one block set. Source: PTX ISA,
"barrier.cluster".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import block_agent_words, join_agent_words
from warploom.detector.clocks import (
    add_to_clock,
    current_set,
    learn_own,
)
from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import (
    B_BLOCK,
    CLOCK_WORDS,
    CLUSTER_BARRIER_HEAD,
    CLUSTER_BLOCKS,
    E_LANES,
    E_WARP,
    L_CLUSTER_BARRIERS,
    L_GENERATION,
    L_SET,
    L_SET_STAMP,
    L_WAITS,
    M_AFTER,
    M_BEFORE,
    M_INTERVAL,
    M_JOINED_SET,
    M_OWN_SET,
    M_PHASE,
    ME_CLUSTER_AT,
    ME_HOLDER_AT,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_SLOT,
    ME_THREAD,
    ME_WARP_AT,
    OF_CLUSTER,
    RELEASES,
    S_CLOCK,
    S_INTERVAL,
    SET_WORDS,
    SLOT_CLUSTER_BARRIERS,
    SLOT_WORDS,
    THREADS,
    V_TIME,
    V_WAITING,
)
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import allocate
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def cluster_barrier_at(state: Any, slot: int, phase: int) -> int:
    """Returns the index in the state of a block's record of a phase of its cluster's barrier: one
    for even phases, one for odd ones. `slot` is the index of the block's state."""
    return int(
        slot
        + state[SLOT_CLUSTER_BARRIERS]
        + (phase & 1) * (CLUSTER_BARRIER_HEAD + state[CLOCK_WORDS])
    )


@jitable
def arrive_in_cluster(state: Any, event: Any, flags: int) -> None:
    """Processes `barrier.cluster.arrive` of an event's lanes: counts it for each thread (the count
    is the phase) and, with `.release` in `flags`, adds what they know to their block's record of
    the phase. Advances the warp's time."""
    left, releases_knowledge = event[E_LANES], flags & RELEASES
    while left:
        set_current_thread(state, (event[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        state[state[ME_LANE_AT] + L_CLUSTER_BARRIERS] += 1
        at = open_cluster_barrier(
            state, state[ME_SLOT], state[state[ME_LANE_AT] + L_CLUSTER_BARRIERS]
        )
        if releases_knowledge:
            add_to_phase(state, at)
        # What all threads of the block know of agents is the same for each: added once.
        if releases_knowledge and left == 0 and state[CLOCK_WORDS] > state[THREADS]:
            join_agent_words(
                state, at + CLUSTER_BARRIER_HEAD + state[THREADS], block_agent_words(state)
            )
    state[state[ME_WARP_AT] + V_TIME] += 1


@jitable
def open_cluster_barrier(state: Any, slot: int, phase: int) -> int:
    """Returns the index in the state of a block's record of a phase, cleared first if it still
    holds an earlier phase of the same parity. `slot` is the index of the block's state."""
    at = cluster_barrier_at(state, slot, phase)
    if state[at + M_PHASE] != phase:
        for word in range(CLUSTER_BARRIER_HEAD + state[CLOCK_WORDS]):
            state[at + word] = 0
        state[at + M_PHASE] = phase
    return int(at)


@jitable
def add_to_phase(state: Any, at: int) -> None:
    """Adds what the current thread knows to its block's record of a phase of the cluster's barrier,
    at index `at`; clears the record's clock first if it is of an earlier interval of the block,
    which the later one implies."""
    if state[at + M_INTERVAL] < state[ME_INTERVAL]:
        state[at + M_INTERVAL] = state[ME_INTERVAL]
        for thread in range(state[THREADS]):
            state[at + CLUSTER_BARRIER_HEAD + thread] = 0
    add_to_clock(state, at + CLUSTER_BARRIER_HEAD)
    state[at + M_OWN_SET] = join_sets(state, state[at + M_OWN_SET], current_set(state))


@jitable
def wait_in_cluster(state: Any, event: Any) -> None:
    """Processes `barrier.cluster.wait`: records that the lanes of an event wait, and for which
    phase (that of their last arrival); `leave_barrier` reads it at their next event."""
    left = event[E_LANES]
    while left:
        set_current_thread(state, (event[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane = state[ME_LANE_AT]
        state[state[ME_WARP_AT] + V_WAITING] |= 1 << (state[ME_THREAD] & 31)
        state[lane + L_WAITS] = 1 + OF_CLUSTER
        state[lane + L_GENERATION] = state[lane + L_CLUSTER_BARRIERS]


@jitable
def learn_cluster_barrier(state: Any, phase: int) -> None:
    """Adds to the current thread's knowledge what all blocks of its cluster have added to a phase
    for which it has waited. The first thread to leave the phase joins the blocks' records; the
    result is cached in the record of the cluster's first block."""
    cluster_phase = open_cluster_barrier(state, state[ME_CLUSTER_AT], phase)
    if state[cluster_phase + M_JOINED_SET] == 0:
        state[cluster_phase + M_JOINED_SET] = set_of_phase(state, phase)
    learn_own(state, state[cluster_phase + M_JOINED_SET])
    block_set, holder = current_set(state), state[ME_HOLDER_AT]
    # Most threads have the same set before the barrier: the join is done once for all of them.
    if state[cluster_phase + M_AFTER] == 0 or state[cluster_phase + M_BEFORE] != block_set:
        state[cluster_phase + M_BEFORE] = block_set
        state[cluster_phase + M_AFTER] = join_sets(
            state, block_set, state[cluster_phase + M_JOINED_SET]
        )
    state[holder + L_SET] = state[cluster_phase + M_AFTER]
    state[holder + L_SET_STAMP] = state[ME_INTERVAL] + 1


@jitable
def set_of_phase(state: Any, phase: int) -> int:
    """Returns a new block set of what all blocks of the current cluster have added to a phase: an
    entry for each block that has arrived, with a copy of its clock, joined with the sets that they
    added; 0 if the pool is exhausted."""
    joined = allocate(state, 1 + state[CLUSTER_BLOCKS] * SET_WORDS)
    if joined == 0:
        return 0
    entry, block_set = joined + 1, 0
    for rank in range(state[CLUSTER_BLOCKS]):
        slot = state[ME_CLUSTER_AT] + rank * state[SLOT_WORDS]
        at = cluster_barrier_at(state, slot, phase)
        if state[at + M_PHASE] == phase:
            clock = allocate(state, state[CLOCK_WORDS])
            for word in range(state[CLOCK_WORDS] if clock else 0):
                state[clock + word] = state[at + CLUSTER_BARRIER_HEAD + word]
            state[entry], state[entry + S_INTERVAL], state[entry + S_CLOCK] = (
                state[slot + B_BLOCK],
                state[at + M_INTERVAL],
                clock,
            )
            block_set = join_sets(state, block_set, state[at + M_OWN_SET])
            entry += SET_WORDS
    state[joined] = (entry - joined - 1) // SET_WORDS
    return int(join_sets(state, block_set, joined))
