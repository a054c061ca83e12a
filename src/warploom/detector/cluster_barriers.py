"""Processes the barrier of a cluster in the race detector, in phases: what the threads of its
blocks know of each other after it.

A thread arrives at one phase after the other, so its arrivals count the phases. Each block has a
record of a phase: an interval, a vector clock of its threads, and a block set. The first thread
that leaves a phase joins the records of all blocks in one block set. Source: PTX ISA,
"barrier.cluster".
"""

from __future__ import annotations

from warploom.detector.agents import block_agent_words, join_agent_words
from warploom.detector.clocks import add_to_clock, current_set, learn_own
from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import OF_CLUSTER, RELEASES
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import allocate
from warploom.detector.records import (
    BlockSetEntry,
    ClusterBarrierShadow,
    DetectorEvent,
    DetectorState,
    ResidentBlock,
    ThreadKnowledge,
    WarpKnowledge,
)
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def cluster_barrier_at(state: DetectorState, slot: int, phase: int) -> int:
    """Returns the index in the state of a block's record of a phase of its cluster's barrier: one
    for even phases, one for odd ones. `slot` is the index of the block's state."""
    # Two suffice: the first arrival of phase n + 2 comes after all threads have arrived for n + 1,
    # and that arrival is an event, at which a thread first leaves phase n (`begin_event`).
    return int(
        slot
        + state.slot_cluster_barriers
        + (phase & 1) * (ClusterBarrierShadow.WORDS + state.clock_words)
    )


@jitable
def arrive_in_cluster(state: DetectorState, event: DetectorEvent, flags: int) -> None:
    """Processes `barrier.cluster.arrive` of an event's lanes: counts it for each thread (the count
    is the phase) and, with `.release` in `flags`, adds what they know to their block's record of
    the phase (what all threads of the block know of agents once). Advances the warp's time."""
    left, releases_knowledge = event.lanes, flags & RELEASES
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        ThreadKnowledge(state, state.current_lane_at).cluster_barriers += 1
        phase = ClusterBarrierShadow(
            state,
            open_cluster_barrier(
                state,
                state.current_slot,
                ThreadKnowledge(state, state.current_lane_at).cluster_barriers,
            ),
        )
        if releases_knowledge:
            add_to_cluster_phase(state, phase)
        # What all threads of the block know of agents is the same for each: added once.
        if releases_knowledge and left == 0 and state.clock_words > state.threads:
            join_agent_words(
                state,
                phase.at + ClusterBarrierShadow.WORDS + state.threads,
                block_agent_words(state),
            )
    WarpKnowledge(state, state.current_warp_at).time += 1


@jitable
def open_cluster_barrier(state: DetectorState, slot: int, phase: int) -> int:
    """Returns the index in the state of a block's record of a phase; clears it first, and stores
    the phase there, if it still holds an earlier one of the same parity. `slot` is the index of the
    block's state."""
    phase_record = ClusterBarrierShadow(state, cluster_barrier_at(state, slot, phase))
    if phase_record.phase != phase:
        for word in range(ClusterBarrierShadow.WORDS + state.clock_words):
            state.words[phase_record.at + word] = 0
        phase_record.phase = phase
    return int(phase_record.at)


@jitable
def add_to_cluster_phase(state: DetectorState, phase: ClusterBarrierShadow) -> None:
    """Joins what the current thread knows, its vector clock and its block set (of other blocks), to
    its block's record of a phase of the cluster's barrier. If the record is of an earlier interval
    of the block, first stores the present one and sets the clock's times of threads to 0, as the
    later interval implies them; the block set and the clock's agent words stay."""
    if phase.interval < state.current_interval:
        phase.interval = state.current_interval
        for thread in range(state.threads):
            state.words[phase.at + ClusterBarrierShadow.WORDS + thread] = 0
    add_to_clock(state, phase.at + ClusterBarrierShadow.WORDS)
    phase.own_set = join_sets(state, phase.own_set, current_set(state))


@jitable
def wait_in_cluster(state: DetectorState, event: DetectorEvent) -> None:
    """Processes `barrier.cluster.wait`: records of each thread of the event's lanes that it waits
    (`waits`, a number that names no barrier of its block), and for the phase of its last arrival
    (`generation`), and sets its bit in its warp's `waiting`; `leave_barrier` reads them at the
    thread's next event."""
    left = event.lanes
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        lane = ThreadKnowledge(state, state.current_lane_at)
        WarpKnowledge(state, state.current_warp_at).waiting |= 1 << (state.current_thread & 31)
        lane.waits = 1 + OF_CLUSTER
        lane.generation = lane.cluster_barriers


@jitable
def learn_cluster_barrier(state: DetectorState, phase: int) -> None:
    """Adds to the current thread's knowledge what all blocks of its cluster have added to a phase
    for which it has waited. The first thread to leave the phase joins the blocks' records; the
    result is cached in the record of the cluster's first block."""
    cluster_phase = ClusterBarrierShadow(
        state, open_cluster_barrier(state, state.current_cluster_at, phase)
    )
    if cluster_phase.joined_set == 0:
        cluster_phase.joined_set = set_of_phase(state, phase)
    learn_own(state, cluster_phase.joined_set)
    block_set, holder = current_set(state), ThreadKnowledge(state, state.current_holder_at)
    # Most threads have the same set before the barrier: the join is done once for all of them.
    if cluster_phase.after == 0 or cluster_phase.before != block_set:
        cluster_phase.before = block_set
        cluster_phase.after = join_sets(state, block_set, cluster_phase.joined_set)
    holder.set = cluster_phase.after
    holder.set_stamp = state.current_interval + 1


@jitable
def set_of_phase(state: DetectorState, phase: int) -> int:
    """Returns a new block set of what all blocks of the current cluster have added to a phase. It
    has an entry for each block that has arrived, with a copy of the block's clock, and is joined
    with the sets that the blocks added. Returns 0 if the pool has no space for the entries. An
    entry has clock 0 if the pool has no space for the copy."""
    joined = allocate(state, 1 + state.cluster_blocks * BlockSetEntry.WORDS)
    if joined == 0:
        return 0
    entry, block_set = joined + 1, 0
    for rank in range(state.cluster_blocks):
        slot = ResidentBlock(state, state.current_cluster_at + rank * state.slot_words)
        phase_record = ClusterBarrierShadow(state, cluster_barrier_at(state, slot.at, phase))
        if phase_record.phase == phase:
            clock = allocate(state, state.clock_words)
            for word in range(state.clock_words if clock else 0):
                state.words[clock + word] = state.words[
                    phase_record.at + ClusterBarrierShadow.WORDS + word
                ]
            (
                state.words[entry],
                BlockSetEntry(state, entry).interval,
                BlockSetEntry(state, entry).clock,
            ) = (slot.block, phase_record.interval, clock)
            block_set = join_sets(state, block_set, phase_record.own_set)
            entry += BlockSetEntry.WORDS
    state.words[joined] = (entry - joined - 1) // BlockSetEntry.WORDS
    return int(join_sets(state, block_set, joined))
