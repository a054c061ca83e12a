"""Processes the completion of asynchronous copies in the race detector: by groups (`cp.async`, bulk
copies), and at mbarriers.

`cp.async; cp.async.commit_group; cp.async.wait_group 0`: the copy is access 0 of the thread's
agent; the commit notes in the ring that copies before number 1 are in the group; the wait puts the
bound 1 in the thread's agent word, so the thread knows copy 0. At an mbarrier, completed copies are
added to the vector clock of the phase, which a thread joins by `mbarrier.test_wait`.

Source: PTX ISA, "cp.async", "cp.async.bulk", "mbarrier".
"""

from __future__ import annotations

from typing import Any

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
    BARRIER_HEAD,
    BULK,
    CLOCK_WORDS,
    CLUSTER,
    E_LANES,
    E_NUMBER,
    E_WARP,
    G_GENERATION,
    G_SET,
    INVALIDATES,
    L_BULK_COMMITS,
    L_BULK_RING,
    L_COMMITS,
    L_COPIES,
    L_RING,
    ME_BLOCK,
    ME_LANE_AT,
    ME_OWNER,
    ME_THREAD,
    O_CHAIN,
    O_MBARRIER,
    PLAIN_WRITE,
    RELEASE_WORDS,
    RELEASES,
    RING,
    S_CLOCK,
    SET_WORDS,
    THREADS,
    WAITS,
)
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import allocate
from warploom.detector.release_notes import set_with_release, write_release
from warploom.detector.releases import find_location
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def commit_group(state: Any, event: Any, flags: int) -> None:
    """Processes the commit of a group: notes, in each lane's ring of groups (that of bulk copies
    for BULK), that the copies which the lane has begun so far belong to it, and advances the number
    of its next copy."""
    left = event[E_LANES]
    count = L_BULK_COMMITS if flags & BULK else L_COMMITS
    ring = L_BULK_RING if flags & BULK else L_RING
    while left:
        set_current_thread(state, (event[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane = state[ME_LANE_AT]
        state[lane + L_COPIES] += 1
        # The group has the copies before the thread's next number.
        state[lane + ring + state[lane + count] % RING] = state[lane + L_COPIES]
        state[lane + count] += 1


@jitable
def wait_for_copies(state: Any, event: Any, flags: int) -> None:
    """Processes a wait for groups (of bulk copies for BULK in `flags`): lets each lane know its
    copies, but for those of its last E_NUMBER groups; all copies if that is -1, after which its
    next copy has a new number. Nothing if the lane has committed no more groups than that, or if it
    is 8 (RING) or more."""
    left, pending = event[E_LANES], event[E_NUMBER]
    count = L_BULK_COMMITS if flags & BULK else L_COMMITS
    ring = L_BULK_RING if flags & BULK else L_RING
    while left:
        set_current_thread(state, (event[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane, bound = state[ME_LANE_AT], 0
        if pending < 0:
            state[lane + L_COPIES] += 1
            bound = state[lane + L_COPIES]
        elif pending < RING and state[lane + count] > pending:
            bound = state[lane + ring + (state[lane + count] - pending - 1) % RING]
        if bound:
            agent_word = current_clock(state) + state[THREADS] + state[ME_THREAD]
            state[agent_word] = join_agent_word(state[agent_word], bound)


@jitable
def operate_mbarrier(state: Any, key: int, word: int, flags: int) -> None:
    """Processes an operation of the current thread on the mbarrier of key `key`, whose value is
    `word` before it. By `flags`, an initialisation or invalidation clears the record. Else clears
    the present phase if the record has another; then a wait that ACQUIRES, at an mbarrier of the
    thread's block, adds the last phase to the thread's knowledge, an arrival that RELEASES adds
    that to the present phase, and ARRIVES_ASYNC adds the thread's copies so far. Creates the
    record; nothing if the table or the pool is full."""
    entry = find_location(state, key, 1)
    if entry == 0:
        return
    if state[entry + O_CHAIN] == 0:
        state[entry + O_CHAIN] = allocate(state, BARRIER_HEAD + 2 * state[CLOCK_WORDS])
        if state[entry + O_CHAIN] == 0:
            return
    at, state[entry + O_MBARRIER] = state[entry + O_CHAIN], int(flags & INVALIDATES == 0)
    if flags & (PLAIN_WRITE | INVALIDATES):
        # Clears both phases, and ends with phase 0.
        for generation in range(1, -1, -1):
            state[at + G_GENERATION] = generation
            clear_generation(state, at)
        return
    phase = word >> PHASE_AT & 3
    if state[at + G_GENERATION] & 3 != phase:
        state[at + G_GENERATION] = phase
        clear_generation(state, at)
    if flags & WAITS and flags & ACQUIRES and state[ME_OWNER] == state[ME_BLOCK]:
        # A successful wait is for the phase before the present one.
        odd = phase + 1 & 1
        join_clocks(state, current_clock(state), at + BARRIER_HEAD + odd * state[CLOCK_WORDS])
        learn_set(state, state[at + G_SET + odd])
    if flags & ARRIVES and flags & RELEASES:
        add_to_phase(state, at, phase)
    if flags & ARRIVES_ASYNC:
        state[state[ME_LANE_AT] + L_COPIES] += 1
        record_completion(state, at, phase, state[ME_THREAD], state[state[ME_LANE_AT] + L_COPIES])


@jitable
def is_mbarrier(state: Any, key: int) -> int:
    """Returns whether an mbarrier, initialised and not invalidated, is at the location with key
    `key`."""
    entry = find_location(state, key, 0)
    return int(entry != 0 and state[entry + O_MBARRIER] != 0)


@jitable
def add_to_phase(state: Any, at: int, phase: int) -> None:
    """Adds what the current thread knows to a phase (modulo 4) of the mbarrier whose record is at
    index `at`: to the phase's vector clock and block set, if the thread is of the block that owns
    the mbarrier, else to the block set only, as a release."""
    set_at = at + G_SET + (phase & 1)
    if state[ME_OWNER] == state[ME_BLOCK]:
        add_to_clock(state, at + BARRIER_HEAD + (phase & 1) * state[CLOCK_WORDS])
        state[set_at] = join_sets(state, state[set_at], current_set(state))
        return
    release = allocate(state, RELEASE_WORDS)
    if release:
        write_release(state, release, CLUSTER)
        state[set_at] = join_sets(state, state[set_at], set_with_release(state, release))


@jitable
def complete_copy(state: Any, key: int, word: int) -> None:
    """Records that the bytes of the current thread's last copy have arrived at the mbarrier of key
    `key`, whose value is `word`, and that its next copy begins."""
    signal_mbarrier(state, key, word)
    state[state[ME_LANE_AT] + L_COPIES] += 1


@jitable
def signal_mbarrier(state: Any, key: int, word: int) -> None:
    """Records that the bytes of the current thread's last copy have arrived at the mbarrier of key
    `key`, whose value is `word`: its phase makes that copy known to threads that wait."""
    signal_for_agent(
        state, key, word, state[ME_THREAD], word_of_copy(state[state[ME_LANE_AT] + L_COPIES])
    )


@jitable
def signal_for_agent(state: Any, key: int, word: int, agent: int, copies: int) -> None:
    """Records that copies of an agent of the current block (`agent`: the index of its word), given
    as an agent word, complete at the mbarrier with key `key`, whose value is `word`; nothing if no
    operation on that mbarrier was recorded."""
    entry = find_location(state, key, 0)
    if entry and state[entry + O_CHAIN]:
        operate_mbarrier(state, key, word, 0)
        record_completion(state, state[entry + O_CHAIN], word >> PHASE_AT & 3, agent, copies)


@jitable
def record_completion(state: Any, at: int, phase: int, agent: int, copies: int) -> None:
    """Adds copies of an agent of the current block, given as an agent word, to what a phase of the
    mbarrier at index `at` makes known to the threads that wait for it: in the phase's clock, or in
    its block set if another block owns the mbarrier."""
    if state[ME_OWNER] != state[ME_BLOCK]:
        single_set, set_at = allocate(state, 1 + SET_WORDS), at + G_SET + (phase & 1)
        clock = allocate(state, state[CLOCK_WORDS])
        if single_set and clock:
            # A count of 1 and one entry: block, interval (0: agents have none), clock.
            state[single_set], state[single_set + 1], state[single_set + 1 + S_CLOCK] = (
                1,
                state[ME_BLOCK] + 1,
                clock,
            )
            state[clock + state[THREADS] + agent] = copies
            state[set_at] = join_sets(state, state[set_at], single_set)
        return
    agent_word = at + BARRIER_HEAD + (phase & 1) * state[CLOCK_WORDS] + state[THREADS] + agent
    state[agent_word] = join_agent_word(state[agent_word], copies)
