"""Processes barriers of a block and of a warp in the race detector: what threads know of each other
after them.

`bar.sync 0` of all threads begins an interval of the block, for which nothing else is written.
`bar.sync 1, 64` joins the vector clocks of the threads that arrive, in the barrier's record, and
each thread that leaves joins that. `bar.warp.sync` does the same for lanes of a warp; of all lanes,
a time (V_SYNCED) is enough.

Source: PTX ISA, "Parallel Synchronization and Communication: bar, barrier, bar.warp.sync".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.agents import block_agent_words, join_agent_words
from warploom.detector.clocks import (
    add_to_clock,
    current_clock,
    current_set,
    has_clock,
    join_clocks,
    learn_set,
)
from warploom.detector.cluster_barriers import learn_cluster_barrier
from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import (
    AGENTS,
    ALIGNED,
    B_BARRIER_LINE,
    B_INTERVAL,
    B_NEXT_SET,
    B_SET,
    BARRIER_HEAD,
    CLOCK_WORDS,
    E_COUNT,
    E_EXISTING,
    E_INSTRUCTION,
    E_LANES,
    E_NUMBER,
    E_WARP,
    EXACT,
    G_ARRIVED,
    G_GENERATION,
    G_SET,
    K_OTHER_BARRIER,
    L_AGENT_STAMP,
    L_GENERATION,
    L_SET_STAMP,
    L_WAITS,
    LOCKSTEP,
    ME_BLOCK,
    ME_HOLDER_AT,
    ME_INSTRUCTION,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_SLOT,
    ME_THREAD,
    ME_WARP_AT,
    NOT_ALIGNED,
    OF_ALL,
    OF_CLUSTER,
    SITE_LINE,
    SITE_WORDS,
    SITES_AT,
    SLOT_BARRIERS,
    SLOT_WARPS,
    SYNC,
    THREADS,
    TOOLS,
    V_ARRIVED,
    V_INTERVAL,
    V_PASSED,
    V_SYNCED,
    V_TIME,
    V_WAITING,
    WARP_WORDS,
    WARPS,
)
from warploom.detector.other_blocks import join_sets
from warploom.detector.pool import report
from warploom.detector.skips import report_skip, report_skips
from warploom.simt.lane_counts import count_lanes, first_lane, jitable


@jitable
def barrier_at(state: Any, number: int) -> int:
    """Returns the index in the state of the record of named barrier `number` of the current block:
    a head, then two vector clocks, for even and odd generations."""
    return int(
        state[ME_SLOT] + state[SLOT_BARRIERS] + number * (BARRIER_HEAD + 2 * state[CLOCK_WORDS])
    )


@jitable
def arrive_at_barrier(state: Any, event: Any, waits: int) -> None:
    """Processes the arrival of an event's lanes at `bar.sync` (`waits` 1: they are marked as
    waiting, and `leave_barrier` is called at their next event) or `bar.arrive` (0). What they know
    is added to the block, or to the record of a barrier of some threads; without EXACT (vector
    clocks) nothing is added, and a barrier that all threads execute (ALIGNED) is only counted.
    Advances the warp's time."""
    warp, lanes, awaited = event[E_WARP], event[E_LANES], event[E_COUNT]
    warp_at = state[ME_SLOT] + state[SLOT_WARPS] + warp * WARP_WORDS
    all_threads = awaited == 0 or awaited >= state[WARPS] * 32
    left = lanes
    if all_threads and waits and state[ALIGNED]:
        pass_aligned_barrier(state, event, warp_at)
        return
    if all_threads:
        count_arrivals(state, warp, lanes)
    if state[EXACT] == 0:
        # Nothing is joined without vector clocks: it is enough that the lanes wait.
        state[warp_at + V_WAITING] |= lanes * waits
        left = 0
    if not all_threads and state[barrier_at(state, event[E_NUMBER]) + G_ARRIVED] == 0:
        clear_generation(state, barrier_at(state, event[E_NUMBER]))
    while left:
        set_current_thread(state, (warp << 5) + first_lane(left))
        left &= left - 1
        if all_threads:
            arrive_at_block_barrier(state)
        else:
            arrive_at_named_barrier(state, event[E_NUMBER])
        if waits:
            state[warp_at + V_WAITING] |= 1 << (state[ME_THREAD] & 31)
            state[state[ME_LANE_AT] + L_WAITS] = 1 + (OF_ALL if all_threads else event[E_NUMBER])
    if awaited == 0:
        check_barrier_line(state, event)
    if not all_threads:
        # In lockstep a warp arrives as a whole, whichever lanes are on.
        arrived = 32 if state[LOCKSTEP] else count_lanes(lanes)
        count_named_arrivals(state, barrier_at(state, event[E_NUMBER]), arrived, awaited)
    state[warp_at + V_TIME] += 1


@jitable
def pass_aligned_barrier(state: Any, event: Any, warp_at: int) -> None:
    """Processes a barrier that all threads of the block execute (ALIGNED): collects the lanes of
    the warp that have arrived. When all live lanes have, counts the barrier as passed, which begins
    the warp's next interval."""
    state[warp_at + V_ARRIVED] |= event[E_LANES]
    if state[warp_at + V_ARRIVED] == event[E_EXISTING]:
        state[warp_at + V_ARRIVED] = 0
        state[warp_at + V_PASSED] += 1


@jitable
def count_arrivals(state: Any, warp: int, lanes: int) -> None:
    """Adds lanes of a warp to those that have arrived at the barrier of all threads in this
    interval (V_ARRIVED, emptied first if of an earlier one), which `report_skips` and
    `leave_barrier` read."""
    set_current_thread(state, (warp << 5) + first_lane(lanes))
    at = state[ME_WARP_AT]
    if state[at + V_INTERVAL] != state[ME_INTERVAL]:
        state[at + V_INTERVAL] = state[ME_INTERVAL]
        state[at + V_ARRIVED] = 0
    state[at + V_ARRIVED] |= lanes


@jitable
def check_barrier_line(state: Any, event: Any) -> None:
    """Records the instruction of a barrier of all threads for the first lanes that arrive; for
    later ones at another instruction, sets NOT_ALIGNED, and reports it (SYNC) if that is in another
    source line."""
    block = state[ME_SLOT]
    other = state[block + B_BARRIER_LINE]
    if other == 0:
        state[block + B_BARRIER_LINE] = event[E_INSTRUCTION] + 1
        return
    if other - 1 == event[E_INSTRUCTION]:
        return
    state[NOT_ALIGNED] = 1
    line = state[state[SITES_AT] + event[E_INSTRUCTION] * SITE_WORDS + SITE_LINE]
    if (
        state[TOOLS] & SYNC
        and state[state[SITES_AT] + (other - 1) * SITE_WORDS + SITE_LINE] != line
    ):
        state[ME_INSTRUCTION] = event[E_INSTRUCTION]
        # No other thread (-1), and no address, size or detail.
        report(state, K_OTHER_BARRIER, other - 1, -1, 0, 0, 0)


@jitable
def arrive_at_block_barrier(state: Any) -> None:
    """Processes the arrival of the current thread at a barrier of all threads: adds what it knows
    of other blocks and of agents to words of the block, which `begin_interval` makes known to all
    threads. Of the block's own threads nothing is needed: the interval orders them."""
    block, holder = state[ME_SLOT], state[ME_HOLDER_AT]
    state[state[ME_LANE_AT] + L_GENERATION] = state[ME_INTERVAL]
    if state[holder + L_SET_STAMP] == state[ME_INTERVAL] + 1:
        state[block + B_NEXT_SET] = join_sets(state, state[block + B_NEXT_SET], current_set(state))
    if state[holder + L_AGENT_STAMP]:
        join_agent_words(
            state, block_agent_words(state) + state[AGENTS], current_clock(state) + state[THREADS]
        )


@jitable
def arrive_at_named_barrier(state: Any, number: int) -> None:
    """Adds what the current thread knows to the record of a barrier of some threads: to the clock
    and block set of the present generation, whose number is stored in L_GENERATION for
    `leave_barrier`."""
    at = barrier_at(state, number)
    generation = state[at + G_GENERATION]
    state[state[ME_LANE_AT] + L_GENERATION] = generation
    add_to_clock(state, at + BARRIER_HEAD + (generation & 1) * state[CLOCK_WORDS])
    set_at = at + G_SET + (generation & 1)
    state[set_at] = join_sets(state, state[set_at], current_set(state))


@jitable
def count_named_arrivals(state: Any, at: int, arrived: int, awaited: int) -> None:
    """Counts `arrived` threads at a barrier of some threads, whose record is at index `at`. When
    `awaited` have arrived, sets the count to 0 and begins the next generation."""
    state[at + G_ARRIVED] += arrived
    if state[at + G_ARRIVED] >= awaited:
        state[at + G_ARRIVED] = 0
        state[at + G_GENERATION] += 1


@jitable
def clear_generation(state: Any, at: int) -> None:
    """Clears the clock and block set of the present generation in the barrier record at index `at`:
    an earlier generation of the same parity has left its values there."""
    odd = state[at + G_GENERATION] & 1
    state[at + G_SET + odd] = 0
    clock = at + BARRIER_HEAD + odd * state[CLOCK_WORDS]
    for word in range(state[CLOCK_WORDS]):
        state[clock + word] = 0


@jitable
def leave_barrier(state: Any, warp: int, lanes: int) -> None:
    """Lets lanes of a warp that waited at a barrier (V_WAITING) continue, at their next event. The
    first to leave a barrier of all threads begins the block's next interval; a lane that leaves a
    barrier of some threads, or of the cluster, learns what the others have added to it (only with
    EXACT)."""
    warp_at = state[ME_SLOT] + state[SLOT_WARPS] + warp * WARP_WORDS
    left = state[warp_at + V_WAITING] & lanes
    state[warp_at + V_WAITING] &= ~lanes
    if state[EXACT] == 0:
        interval = state[state[ME_SLOT] + B_INTERVAL]
        # The first warp to leave begins the interval; the others find it begun.
        if state[warp_at + V_INTERVAL] == interval and state[warp_at + V_ARRIVED] & left:
            begin_interval(state)
        return
    while left:
        set_current_thread(state, (warp << 5) + first_lane(left))
        left &= left - 1
        barrier = state[state[ME_LANE_AT] + L_WAITS] - 1
        generation = state[state[ME_LANE_AT] + L_GENERATION]
        if barrier == OF_ALL:
            if generation == state[ME_INTERVAL]:
                begin_interval(state)
        elif barrier == OF_CLUSTER:
            learn_cluster_barrier(state, generation)
        else:
            at = barrier_at(state, barrier)
            join_clocks(
                state,
                current_clock(state),
                at + BARRIER_HEAD + (generation & 1) * state[CLOCK_WORDS],
            )
            learn_set(state, state[at + G_SET + (generation & 1)])


@jitable
def begin_interval(state: Any) -> None:
    """Begins the block's next interval (stretch between barriers of all threads): reports barriers
    that threads have skipped, forgets the barrier's instruction (B_BARRIER_LINE), and, with EXACT,
    makes known to all threads what any of them knew of other blocks and of agents on arrival."""
    block = state[ME_SLOT]
    report_skips(state, block, state[ME_BLOCK])
    state[block + B_INTERVAL] += 1
    state[block + B_BARRIER_LINE] = 0
    if state[EXACT] == 0:
        return
    # What any thread knew of other blocks before the barrier, all threads know after it.
    state[block + B_SET] = join_sets(state, state[block + B_SET], state[block + B_NEXT_SET])
    state[block + B_NEXT_SET] = 0
    join_agent_words(state, block_agent_words(state), block_agent_words(state) + state[AGENTS])


@jitable
def sync_warp(state: Any, event: Any, masks: Any) -> None:
    """Processes `bar.warp.sync`: joins what lanes that name each other know, one group of lanes
    after the other; `masks` has the mask that each lane names. Reports a live lane that is named
    and does not execute the barrier, except in lockstep."""
    left = event[E_LANES]
    while left:
        named, lane = masks[first_lane(left)], left & -left
        # A lane that the mask names, and that does not execute the barrier, has skipped it.
        missing = named & event[E_EXISTING] & ~event[E_LANES]
        if missing and state[LOCKSTEP] == 0:
            report_skip(state, event[E_INSTRUCTION], (event[E_WARP] << 5) + first_lane(missing))
        join_lanes(state, event, named & left | lane, int(event[E_EXISTING] & ~named == 0))
        left &= ~(named | lane)


@jitable
def join_lanes(state: Any, event: Any, lanes: int, all_lanes: int) -> None:
    """Lets each of the lanes know what any of them knows, and advances the warp's time. If they are
    all live lanes of the warp (`all_lanes`), V_SYNCED becomes that time, which is enough if none
    knows more than barriers and warps imply (`any_clock`); else their clocks and block sets are
    joined."""
    first = event[E_WARP] << 5
    if all_lanes and not any_clock(state, first, lanes):
        set_current_thread(state, first)
        state[state[ME_WARP_AT] + V_TIME] += 1
        state[state[ME_WARP_AT] + V_SYNCED] = state[state[ME_WARP_AT] + V_TIME]
        return
    # A scratch record before those of the barriers.
    at = barrier_at(state, 0) - (BARRIER_HEAD + 2 * state[CLOCK_WORDS])
    for word in range(BARRIER_HEAD + state[CLOCK_WORDS]):
        state[at + word] = 0
    # First collects what all lanes know in the scratch record, then gives each lane the result.
    for part in range(2):
        left = lanes
        while left:
            set_current_thread(state, first + first_lane(left))
            left &= left - 1
            if part == 0:
                add_to_clock(state, at + BARRIER_HEAD)
                state[at + G_SET] = join_sets(state, state[at + G_SET], current_set(state))
            else:
                join_clocks(state, current_clock(state), at + BARRIER_HEAD)
                learn_set(state, state[at + G_SET])
    state[state[ME_WARP_AT] + V_TIME] += 1
    if all_lanes:
        state[state[ME_WARP_AT] + V_SYNCED] = state[state[ME_WARP_AT] + V_TIME]


@jitable
def any_clock(state: Any, first: int, lanes: int) -> int:
    """Returns whether a lane in the mask `lanes` knows more than follows from barriers and warps:
    it has a valid vector clock or block set; never without EXACT. `first` is the thread of the
    warp's lane 0."""
    if state[EXACT] == 0:
        return 0
    while lanes:
        set_current_thread(state, first + first_lane(lanes))
        lanes &= lanes - 1
        if has_clock(state) or state[state[ME_HOLDER_AT] + L_SET_STAMP] == state[ME_INTERVAL] + 1:
            return 1
    return 0
