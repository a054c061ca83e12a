"""Completes the barriers of a thread block, for the scheduler of both machines: counts arrived
threads and releases the waiting ones.

`bar.sync 1, 64` completes when 64 threads have arrived at barrier 1; without a thread count, when
all threads that have not exited have arrived. Before compute capability 7.0 an arrival counts for
the whole warp, whichever of its lanes are active (PTX ISA, bar).

A warp can wait in two forms. While its lanes are converged, its state has the status BARRIER_WAIT.
Once they have diverged, each waiting split is parked in the warp's table with the status AT_BARRIER
(`simt.waiting_splits`). Every function here handles both. Barriers of clusters: `simt.clusters`.
"""

from __future__ import annotations

from warploom.simt.lane_counts import count_lanes, first_lane, jitable
from warploom.simt.schedule_layout import (
    ARRIVALS,
    AWAITED,
    BARRIER,
    BARRIER_THREADS,
    BARRIER_WAIT,
    BARRIERS,
    BLOCKED,
    CLUSTER_BARRIER,
    ENDED,
    FROM_TABLE,
    GROUP_WARPS,
    INDEPENDENT,
    RESUME,
    RUNNABLE,
    STATUS,
    TURN_END,
    WARP_SIZE,
    WARPS,
    Words,
)
from warploom.simt.waiting_splits import waiting
from warploom.simt.warp_table import (
    AT_BARRIER,
    LIVE,
    MASK,
    NONE,
    PARKED,
    READY,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_MASK,
    S_STATUS,
    S_VOTE,
    Table,
    split_at,
)


@jitable
def complete_full_barriers(plan: Words, states: Words, tables: Words, first_warp: int) -> int:
    """Completes every barrier of a block, and of its warp groups, that has all the threads it
    awaits; looks at none if all live warps are RUNNABLE. `first_warp` is the index of the block's
    first warp in `states` and `tables`. Returns ENDED if all warps have ended, RUNNABLE if a
    barrier completed, TURN_END if none did and some warp is RUNNABLE, else BLOCKED."""
    live_warps, ready_warps, waiting_warps = 0, 0, 0
    barrier = NONE
    for warp in range(first_warp, first_warp + plan[WARPS]):
        state = states[warp]
        if state[STATUS] != ENDED:
            live_warps += 1
        if state[STATUS] == RUNNABLE:
            ready_warps += 1
        waits_for_all = state[STATUS] == BARRIER_WAIT and state[BARRIER_THREADS] == 0
        waits_for_all = waits_for_all and state[BARRIER] != CLUSTER_BARRIER
        if waits_for_all and barrier in (NONE, state[BARRIER]):
            waiting_warps += 1
            barrier = state[BARRIER]
    if live_warps == 0:
        return ENDED
    if ready_warps == live_warps:
        return TURN_END
    # Fast path of `__syncthreads`: whole warps wait at one barrier, so nothing need be counted.
    if waiting_warps == live_warps and all_warps_converged(plan, states, tables, first_warp):
        release(plan, states, tables, first_warp, barrier)
        return RUNNABLE
    released = 0
    for number in range(BARRIERS + plan[WARPS] // GROUP_WARPS):
        released += complete_barrier_if_full(plan, states, tables, first_warp, number)
    if released > 0:
        return RUNNABLE
    return TURN_END if ready_warps > 0 else BLOCKED


@jitable
def all_warps_converged(plan: Words, states: Words, tables: Words, first_warp: int) -> bool:
    """Returns whether every warp of a block with the status BARRIER_WAIT waits with all its live
    lanes; always before 7.0."""
    if not plan[INDEPENDENT]:
        return True
    for warp in range(first_warp, first_warp + plan[WARPS]):
        if states[warp][STATUS] == BARRIER_WAIT and tables[warp][MASK] != tables[warp][LIVE]:
            return False
    return True


@jitable
def count_threads(plan: Words, mask: int) -> int:
    """Returns the number of threads that the arrival of the lanes `mask` counts for at a barrier:
    the lanes from 7.0 on (INDEPENDENT), before that the whole warp (WARP_SIZE)."""
    return count_lanes(mask) if plan[INDEPENDENT] else plan[WARP_SIZE]


@jitable
def complete_barrier_if_full(
    plan: Words, states: Words, tables: Words, first_warp: int, barrier: int
) -> int:
    """Releases the threads at one barrier, and returns 1, if exactly as many have arrived (waiting,
    or by `bar.arrive`, also of warps that have ended since) as it awaits: the greatest thread count
    that an arrival named, else all live threads of the block. Returns 0 if not, or if none has
    arrived."""
    arrived, expected, live_threads = 0, 0, 0
    for warp in range(first_warp, first_warp + plan[WARPS]):
        state = states[warp]
        if state[STATUS] != ENDED:
            live_threads += count_threads(plan, tables[warp][LIVE])
        arrived += state[ARRIVALS + barrier]
        expected = max(expected, state[AWAITED + barrier])
        if state[STATUS] == BARRIER_WAIT:
            if state[BARRIER] == barrier:
                arrived += count_threads(plan, tables[warp][MASK])
                expected = max(expected, state[BARRIER_THREADS])
        elif state[STATUS] != ENDED:
            arrived += lanes_at_barrier(tables[warp], barrier)
            expected = max(expected, threads_awaited(tables[warp], barrier))
    if arrived == 0 or arrived != (expected if expected > 0 else live_threads):
        return 0
    release(plan, states, tables, first_warp, barrier)
    return 1


@jitable
def release(plan: Words, states: Words, tables: Words, first_warp: int, barrier: int) -> None:
    """Makes all warps and parked splits of a block that wait at barrier `barrier` runnable, and
    delivers the vote count of `bar.red` to them. Resets the barrier's count of arrivals by
    `bar.arrive` (ARRIVALS) and the thread count that these named (AWAITED) in all warps."""
    # Two passes: the vote count must be complete before the first warp receives it.
    votes = 0
    for warp in range(first_warp, first_warp + plan[WARPS]):
        state = states[warp]
        if state[STATUS] == BARRIER_WAIT and state[BARRIER] == barrier:
            votes += waiting_votes(state, tables[warp])
        elif state[STATUS] != ENDED:
            votes += votes_at_barrier(tables[warp], barrier)
    for warp in range(first_warp, first_warp + plan[WARPS]):
        state = states[warp]
        state[ARRIVALS + barrier] = 0
        state[AWAITED + barrier] = 0
        if state[STATUS] == BARRIER_WAIT:
            if state[BARRIER] == barrier:
                state[STATUS] = RUNNABLE
                if state[RESUME] == FROM_TABLE:
                    deliver_vote_counts(tables[warp], votes)
        elif state[STATUS] != ENDED and lanes_at_barrier(tables[warp], barrier) > 0:
            release_barrier(tables[warp], barrier, votes)
            state[STATUS] = RUNNABLE


@jitable
def waiting_votes(state: Words, table: Table) -> int:
    """Returns the number of lanes whose predicate of `bar.red` is true, of a warp that waits whole
    (status BARRIER_WAIT): the sum over its parked splits; 0 if it does not resume from its table
    (no split is parked), or waits in another barrier instruction."""
    count = 0
    if state[RESUME] == FROM_TABLE:
        left = table[PARKED]
        while left != 0:
            # S_VOTE is 1 plus the votes in `bar.red`, else 0.
            count += max(table[split_at(table, first_lane(left)) + S_VOTE] - 1, 0)
            left &= left - 1
    return count


@jitable
def deliver_vote_counts(table: Table, votes: int) -> None:
    """Stores a completed barrier's vote count in every parked split of a warp that waits in
    `bar.red` (its S_VOTE is not 0), and marks its wait as done (`deliver_vote_count`). The whole
    warp waited at that barrier (status BARRIER_WAIT)."""
    left = table[PARKED]
    while left != 0:
        deliver_vote_count(table, split_at(table, first_lane(left)), votes)
        left &= left - 1


@jitable
def lanes_at_barrier(table: Table, barrier: int) -> int:
    """Returns the number of lanes of a warp's parked splits that wait at a barrier."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        count += count_lanes(table[split_at(table, first_lane(left)) + S_MASK])
        left &= left - 1
    return count


@jitable
def threads_awaited(table: Table, barrier: int) -> int:
    """Returns the greatest thread count that the splits parked at a barrier name; 0 if they name
    none and await all threads."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        count = max(count, table[split_at(table, first_lane(left)) + S_ARGUMENT_2])
        left &= left - 1
    return count


@jitable
def votes_at_barrier(table: Table, barrier: int) -> int:
    """Returns the number of lanes of a warp's parked splits at a barrier whose predicate of
    `bar.red` is true."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        # As in `waiting_votes`: S_VOTE is 0, or 1 plus the votes.
        count += max(table[split_at(table, first_lane(left)) + S_VOTE] - 1, 0)
        left &= left - 1
    return count


@jitable
def deliver_vote_count(table: Table, at: int, votes: int) -> None:
    """Stores a barrier's vote count in the split at offset `at` of the table (S_VOTE: 1 plus the
    count), if it waits in `bar.red` (S_VOTE is not 0), and sets its S_ARGUMENT_2 to 1. That is
    loaded into SYNC_DONE when the split runs next, so the `bar.red` that it repeats does not wait
    again. Nothing for other splits."""
    if table[at + S_VOTE] != 0:
        table[at + S_VOTE] = 1 + votes
        table[at + S_ARGUMENT_2] = 1


@jitable
def release_barrier(table: Table, barrier: int, votes: int) -> None:
    """Makes the splits of a warp that are parked at a barrier ready (status READY, both arguments
    0), and passes `votes`, the barrier's vote count, to those that wait in `bar.red`."""
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        at = split_at(table, first_lane(left))
        left &= left - 1
        # The arguments of a ready split: it has used up no turn, and need not skip a wait.
        table[at + S_STATUS] = READY
        table[at + S_ARGUMENT] = 0
        table[at + S_ARGUMENT_2] = 0
        deliver_vote_count(table, at, votes)
