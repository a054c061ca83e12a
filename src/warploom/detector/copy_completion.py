"""Processes the completion of asynchronous copies in the race detector: by groups (`cp.async`, bulk
copies), and at mbarriers.

`cp.async; cp.async.commit_group; cp.async.wait_group 0`: the copy is access 0 of the thread's
agent; the commit notes in the ring that copies before number 1 are in the group; the wait puts the
bound 1 in the thread's agent word, so the thread knows copy 0. At an mbarrier, completed copies are
added to the vector clock of the phase, which a thread joins by `mbarrier.test_wait`.

Source: PTX ISA, "cp.async", "cp.async.bulk", "mbarrier".
"""

from __future__ import annotations

from warploom.asynchronous.mbarrier import PHASE_AT
from warploom.detector.agents import join_agent_word, word_of_copy
from warploom.detector.barriers import clear_generation
from warploom.detector.clocks import (
    add_to_clock,
    current_clock,
    current_set,
    join_clocks,
    learn_set,
)
from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import (
    ACQUIRES,
    ARRIVES,
    ARRIVES_ASYNC,
    BULK,
    CLUSTER,
    INVALIDATES,
    PLAIN_WRITE,
    RELEASES,
    RING,
    WAITS,
)
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import allocate
from warploom.detector.records import (
    BarrierShadow,
    BlockSetEntry,
    DetectorEvent,
    DetectorState,
    ReleaseLocation,
    ReleaseRecord,
    ThreadKnowledge,
)
from warploom.detector.release_notes import set_with_release, write_release
from warploom.detector.releases import find_location
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def commit_group(state: DetectorState, event: DetectorEvent, flags: int) -> None:
    """Ends the group of asynchronous copies of each lane of an event (`cp.async`, with BULK in
    `flags` bulk copies). Advances the number of the lane's next copy (`copies`), stores it in the
    ring of the lane's last RING commits, and counts the commit: the group has the copies before
    that number."""
    left = event.lanes
    count = ThreadKnowledge.bulk_commits if flags & BULK else ThreadKnowledge.commits
    ring = ThreadKnowledge.bulk_ring if flags & BULK else ThreadKnowledge.ring
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        lane = ThreadKnowledge(state, state.current_lane_at)
        lane.copies += 1
        # The group has the copies before the thread's next number.
        state.words[lane.at + ring + state.words[lane.at + count] % RING] = lane.copies
        state.words[lane.at + count] += 1


@jitable
def wait_for_copies(state: DetectorState, event: DetectorEvent, flags: int) -> None:
    """Processes a wait for groups (of bulk copies for BULK in `flags`): adds each lane's own
    copies, but for those of its last `number` groups, to what the lane knows (the agent word in its
    vector clock). If the event's `number` is -1, adds all copies, and the lane's next copy gets a
    new number. Does nothing for a lane that has committed no more than `number` groups, or if
    `number` is 8 (RING) or more."""
    left, pending = event.lanes, event.number
    count = ThreadKnowledge.bulk_commits if flags & BULK else ThreadKnowledge.commits
    ring = ThreadKnowledge.bulk_ring if flags & BULK else ThreadKnowledge.ring
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        lane, bound = ThreadKnowledge(state, state.current_lane_at), 0
        if pending < 0:
            lane.copies += 1
            bound = lane.copies
        elif pending < RING and state.words[lane.at + count] > pending:
            bound = state.words[
                lane.at + ring + (state.words[lane.at + count] - pending - 1) % RING
            ]
        if bound:
            agent_word = current_clock(state) + state.threads + state.current_thread
            state.words[agent_word] = join_agent_word(state.words[agent_word], bound)


@jitable
def operate_mbarrier(state: DetectorState, key: int, word: int, flags: int) -> None:
    """Processes an operation of the current thread on the mbarrier of key `key`, whose value is
    `word` before it. An initialization (PLAIN_WRITE in `flags`) or invalidation clears both phases
    of the record. Any other operation first clears the record of the phase that `word` is in, if it
    is still of an earlier phase. Then, with ACQUIRES (a wait), at an mbarrier of the thread's
    block, the thread learns what was added to the phase before. With RELEASES (an arrival), what
    the thread knows is added to the phase of `word`. With ARRIVES_ASYNC the thread's copies so far
    are added to it, and its next copy gets a new number. Creates the record, and notes whether an
    mbarrier is there (not after an invalidation); nothing if the table or the pool is full."""
    entry = ReleaseLocation(state, find_location(state, key, 1))
    if entry.at == 0:
        return
    if entry.chain == 0:
        entry.chain = allocate(state, BarrierShadow.WORDS + 2 * state.clock_words)
        if entry.chain == 0:
            return
    barrier, entry.mbarrier = BarrierShadow(state, entry.chain), int(flags & INVALIDATES == 0)
    if flags & (PLAIN_WRITE | INVALIDATES):
        # Clears both phases, and ends with phase 0.
        for generation in range(1, -1, -1):
            barrier.generation = generation
            clear_generation(state, barrier)
        return
    phase = word >> PHASE_AT & 3
    if barrier.generation & 3 != phase:
        barrier.generation = phase
        clear_generation(state, barrier)
    if flags & WAITS and flags & ACQUIRES and state.current_owner == state.current_block:
        # A successful wait is for the phase before the present one.
        odd = phase + 1 & 1
        join_clocks(
            state, current_clock(state), barrier.at + BarrierShadow.WORDS + odd * state.clock_words
        )
        learn_set(state, barrier.set[odd])
    if flags & ARRIVES and flags & RELEASES:
        add_to_phase(state, barrier, phase)
    if flags & ARRIVES_ASYNC:
        ThreadKnowledge(state, state.current_lane_at).copies += 1
        record_completion(
            state,
            barrier,
            phase,
            state.current_thread,
            ThreadKnowledge(state, state.current_lane_at).copies,
        )


@jitable
def is_mbarrier(state: DetectorState, key: int) -> int:
    """Returns whether an mbarrier, initialized and not invalidated, is at the location with key
    `key`."""
    entry = ReleaseLocation(state, find_location(state, key, 0))
    return int(entry.at != 0 and entry.mbarrier != 0)


@jitable
def add_to_phase(state: DetectorState, barrier: BarrierShadow, phase: int) -> None:
    """Adds what the current thread knows to a phase (modulo 4) of an mbarrier. If the thread is of
    the block that owns the mbarrier, adds it to the phase's vector clock and to its block set
    (which accesses of other blocks are known). Else adds it to the block set only, as a release of
    cluster scope; nothing if the pool is full."""
    set_at = barrier.at + BarrierShadow.set + (phase & 1)
    if state.current_owner == state.current_block:
        add_to_clock(state, barrier.at + BarrierShadow.WORDS + (phase & 1) * state.clock_words)
        state.words[set_at] = join_sets(state, state.words[set_at], current_set(state))
        return
    release = ReleaseRecord(state, allocate(state, ReleaseRecord.WORDS))
    if release.at:
        write_release(state, release, CLUSTER)
        state.words[set_at] = join_sets(
            state, state.words[set_at], set_with_release(state, release)
        )


@jitable
def signal_and_count_copy(state: DetectorState, key: int, word: int) -> None:
    """Records that the bytes of the current thread's last copy have arrived at the mbarrier of key
    `key`, whose value is `word` (`signal_mbarrier`; nothing if no operation on that mbarrier was
    recorded). In either case counts the copy: the thread's next one gets a new number."""
    signal_mbarrier(state, key, word)
    ThreadKnowledge(state, state.current_lane_at).copies += 1


@jitable
def signal_mbarrier(state: DetectorState, key: int, word: int) -> None:
    """Records that the bytes of the current thread's last copy have arrived at the mbarrier of key
    `key`, whose value is `word`: its phase makes that copy known to threads that wait. Nothing if
    no operation on that mbarrier was recorded."""
    signal_for_agent(
        state,
        key,
        word,
        state.current_thread,
        word_of_copy(ThreadKnowledge(state, state.current_lane_at).copies),
    )


@jitable
def signal_for_agent(state: DetectorState, key: int, word: int, agent: int, copies: int) -> None:
    """Records that copies of an agent (an asynchronous part of a thread) of the current block
    complete at the mbarrier with key `key`, whose value is `word`; nothing if no operation on that
    mbarrier was recorded. First clears the phase of `word` if the record is of another one
    (`operate_mbarrier`). `agent` is the index of its word in a vector clock's agent words, `copies`
    such a word: a bound and a window of numbers."""
    entry = ReleaseLocation(state, find_location(state, key, 0))
    if entry.at and entry.chain:
        operate_mbarrier(state, key, word, 0)
        record_completion(
            state, BarrierShadow(state, entry.chain), word >> PHASE_AT & 3, agent, copies
        )


@jitable
def record_completion(
    state: DetectorState, barrier: BarrierShadow, phase: int, agent: int, copies: int
) -> None:
    """Adds copies of an agent (the asynchronous part of a thread of the current block) to what a
    phase of an mbarrier, modulo 4, makes known to the threads that wait for it. `agent` is the
    index among the agent words of a vector clock, `copies` such a word (`detector.agents`): a bound
    and a window of numbers. If the current block owns the mbarrier, they are added to the phase's
    clock; else to its block set, or nowhere if the pool is full."""
    if state.current_owner != state.current_block:
        single_set = allocate(state, 1 + BlockSetEntry.WORDS)
        set_at = barrier.at + BarrierShadow.set + (phase & 1)
        clock = allocate(state, state.clock_words)
        if single_set and clock:
            # A count of 1 and one entry: block, interval (0: agents have none), clock.
            (
                state.words[single_set],
                state.words[single_set + 1],
                BlockSetEntry(state, single_set + 1).clock,
            ) = (1, state.current_block + 1, clock)
            state.words[clock + state.threads + agent] = copies
            state.words[set_at] = join_sets(state, state.words[set_at], single_set)
        return
    agent_word = (
        barrier.at + BarrierShadow.WORDS + (phase & 1) * state.clock_words + state.threads + agent
    )
    state.words[agent_word] = join_agent_word(state.words[agent_word], copies)
