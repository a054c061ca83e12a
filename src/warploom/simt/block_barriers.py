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
from warploom.simt.records import Words
from warploom.simt.register_pool import grant_request
from warploom.simt.schedule_layout import (
    BARRIER_WAIT,
    BARRIERS,
    BLOCKED,
    CLUSTER_BARRIER,
    ENDED,
    FROM_TABLE,
    GROUP_WARPS,
    REGISTER_WAIT,
    RUNNABLE,
    TURN_END,
    Plan,
    WarpState,
    table_of,
)
from warploom.simt.waiting_splits import waiting
from warploom.simt.warp_table import AT_BARRIER, NONE, READY, Split, WarpTable, split_of


@jitable
def complete_full_barriers(plan: Plan, states: Words, tables: Words, first_warp: int) -> int:
    """Completes every barrier of a block, and of its warp groups, that has all the threads it
    awaits, and releases warps whose registers are there; looks at no barrier if all live warps are
    RUNNABLE. `first_warp` is the index of the block's first warp in `states` and `tables`. Returns
    ENDED if all warps have ended, RUNNABLE if a barrier completed or a warp was released, TURN_END
    if none was and some warp is RUNNABLE, else BLOCKED."""
    live_warps, ready_warps, waiting_warps = 0, 0, 0
    barrier = NONE
    for warp in range(first_warp, first_warp + plan.warps):
        state = WarpState(states, 0, warp)
        if state.status != ENDED:
            live_warps += 1
        if state.status == RUNNABLE:
            ready_warps += 1
        waits_for_all = state.status == BARRIER_WAIT and state.barrier_threads == 0
        waits_for_all = waits_for_all and state.barrier != CLUSTER_BARRIER
        if waits_for_all and barrier in (NONE, state.barrier):
            waiting_warps += 1
            barrier = state.barrier
    if live_warps == 0:
        return ENDED
    # A warp with diverged lanes is RUNNABLE while some of them wait for registers.
    released = 0
    if plan.launch_registers > 0:
        released = release_with_registers(plan, states, tables, first_warp)
    if ready_warps == live_warps:
        return RUNNABLE if released > 0 else TURN_END
    # Fast path of `__syncthreads`: whole warps wait at one barrier, so nothing need be counted.
    if waiting_warps == live_warps and all_warps_converged(plan, states, tables, first_warp):
        release(plan, states, tables, first_warp, barrier)
        return RUNNABLE
    for number in range(BARRIERS + plan.warps // GROUP_WARPS):
        released += complete_barrier_if_full(plan, states, tables, first_warp, number)
    if released > 0:
        return RUNNABLE
    return TURN_END if ready_warps > 0 else BLOCKED


@jitable
def release_with_registers(plan: Plan, states: Words, tables: Words, first_warp: int) -> int:
    """Makes those warps of a block runnable that wait for registers (`setmaxnreg.inc`) which other
    warps have released, in the order of their numbers; returns how many."""
    released = 0
    for warp in range(first_warp, first_warp + plan.warps):
        state, table = WarpState(states, 0, warp), table_of(plan, tables, warp)
        as_a_whole = state.status == BARRIER_WAIT and state.barrier == REGISTER_WAIT
        waits = as_a_whole
        if state.status not in (BARRIER_WAIT, ENDED):
            waits = lanes_at_barrier(table, REGISTER_WAIT) > 0
        if waits and grant_request(plan, states, first_warp, warp):
            if not as_a_whole:
                release_barrier(table, REGISTER_WAIT, 0)
            state.status = RUNNABLE
            released += 1
    return released


@jitable
def all_warps_converged(plan: Plan, states: Words, tables: Words, first_warp: int) -> bool:
    """Returns whether every warp of a block with the status BARRIER_WAIT waits with all its live
    lanes; always before 7.0."""
    if not plan.independent:
        return True
    for warp in range(first_warp, first_warp + plan.warps):
        table = table_of(plan, tables, warp)
        if WarpState(states, 0, warp).status == BARRIER_WAIT and table.mask != table.live:
            return False
    return True


@jitable
def count_threads(plan: Plan, mask: int) -> int:
    """Returns the number of threads that the arrival of the lanes `mask` counts for at a barrier:
    the lanes from 7.0 on (`independent`), before that the whole warp (`warp_size`)."""
    return count_lanes(mask) if plan.independent else plan.warp_size


@jitable
def complete_barrier_if_full(
    plan: Plan, states: Words, tables: Words, first_warp: int, barrier: int
) -> int:
    """Releases the threads at one barrier, and returns 1, if exactly as many have arrived (waiting,
    or by `bar.arrive`, also of warps that have ended since) as it awaits: the greatest thread count
    that an arrival named, else all live threads of the block. Returns 0 if not, or if none has
    arrived. Of REGISTER_WAIT it releases the warps whose registers are there
    (`release_with_registers`)."""
    if barrier == REGISTER_WAIT:
        return release_with_registers(plan, states, tables, first_warp)
    arrived, expected, live_threads = 0, 0, 0
    for warp in range(first_warp, first_warp + plan.warps):
        state, table = WarpState(states, 0, warp), table_of(plan, tables, warp)
        if state.status != ENDED:
            live_threads += count_threads(plan, table.live)
        arrived += state.arrivals[barrier]
        expected = max(expected, state.awaited[barrier])
        if state.status == BARRIER_WAIT:
            if state.barrier == barrier:
                arrived += count_threads(plan, table.mask)
                expected = max(expected, state.barrier_threads)
        elif state.status != ENDED:
            arrived += lanes_at_barrier(table, barrier)
            expected = max(expected, threads_awaited(table, barrier))
    if arrived == 0 or arrived != (expected if expected > 0 else live_threads):
        return 0
    release(plan, states, tables, first_warp, barrier)
    return 1


@jitable
def release(plan: Plan, states: Words, tables: Words, first_warp: int, barrier: int) -> None:
    """Makes all warps and parked splits of a block that wait at barrier `barrier` runnable, and
    delivers the vote count of `bar.red` to them. Resets the barrier's count of arrivals by
    `bar.arrive` (`arrivals`) and the thread count that these named (`awaited`) in all warps."""
    # Two passes: the vote count must be complete before the first warp receives it.
    votes = 0
    for warp in range(first_warp, first_warp + plan.warps):
        state, table = WarpState(states, 0, warp), table_of(plan, tables, warp)
        if state.status == BARRIER_WAIT and state.barrier == barrier:
            votes += waiting_votes(state, table)
        elif state.status != ENDED:
            votes += votes_at_barrier(table, barrier)
    for warp in range(first_warp, first_warp + plan.warps):
        state, table = WarpState(states, 0, warp), table_of(plan, tables, warp)
        state.arrivals[barrier] = 0
        state.awaited[barrier] = 0
        if state.status == BARRIER_WAIT:
            if state.barrier == barrier:
                state.status = RUNNABLE
                if state.resume == FROM_TABLE:
                    deliver_vote_counts(table, votes)
        elif state.status != ENDED and lanes_at_barrier(table, barrier) > 0:
            release_barrier(table, barrier, votes)
            state.status = RUNNABLE


@jitable
def waiting_votes(state: WarpState, table: WarpTable) -> int:
    """Returns the votes of a warp that waits in `bar.red` as a whole (status BARRIER_WAIT): the
    number of lanes whose predicate is true (for `and`: false), summed over its parked splits.
    Returns 0 if it does not resume from its table (no split is parked), or waits in another barrier
    instruction."""
    count = 0
    if state.resume == FROM_TABLE:
        left = table.parked
        while left != 0:
            # `vote` is 1 plus the votes in `bar.red`, else 0.
            count += max(split_of(table, first_lane(left)).vote - 1, 0)
            left &= left - 1
    return count


@jitable
def deliver_vote_counts(table: WarpTable, votes: int) -> None:
    """Stores a completed barrier's vote count in every parked split of a warp that waits in
    `bar.red` (its `vote` is not 0), and marks its wait as done (`deliver_vote_count`). The whole
    warp waited at that barrier (status BARRIER_WAIT)."""
    left = table.parked
    while left != 0:
        deliver_vote_count(split_of(table, first_lane(left)), votes)
        left &= left - 1


@jitable
def lanes_at_barrier(table: WarpTable, barrier: int) -> int:
    """Returns the number of lanes of a warp's parked splits that wait at a barrier."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        count += count_lanes(split_of(table, first_lane(left)).mask)
        left &= left - 1
    return count


@jitable
def threads_awaited(table: WarpTable, barrier: int) -> int:
    """Returns the thread count of a barrier at which splits of a warp are parked: the greatest
    count that one of them states; 0 if none does, which means all threads of the block."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        count = max(count, split_of(table, first_lane(left)).argument_2)
        left &= left - 1
    return count


@jitable
def votes_at_barrier(table: WarpTable, barrier: int) -> int:
    """Returns the votes of a warp's splits that are parked at a barrier: the number of lanes whose
    predicate of `bar.red` is true (for `and`: false); 0 for other barrier instructions."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        # As in `waiting_votes`: `vote` is 0, or 1 plus the votes.
        count += max(split_of(table, first_lane(left)).vote - 1, 0)
        left &= left - 1
    return count


@jitable
def deliver_vote_count(record: Split, votes: int) -> None:
    """Stores a barrier's vote count in the record of a parked split (`vote`: 1 plus the count), if
    it waits in `bar.red` (`vote` is not 0), and sets its `argument_2` to 1. That is
    loaded into `sync_done` when the split runs next, so the `bar.red` that it repeats does not wait
    again. Nothing for other splits."""
    if record.vote != 0:
        record.vote = 1 + votes
        record.argument_2 = 1


@jitable
def release_barrier(table: WarpTable, barrier: int, votes: int) -> None:
    """Makes the splits of a warp that are parked at a barrier ready (status READY, both arguments
    0), and passes `votes`, the barrier's vote count, to those that wait in `bar.red`."""
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        record = split_of(table, first_lane(left))
        left &= left - 1
        # The arguments of a ready split: it has used up no turn, and need not skip a wait.
        record.status = READY
        record.argument = 0
        record.argument_2 = 0
        deliver_vote_count(record, votes)
