"""The barriers of a block: who waits at which, when one is full, and who goes on then.

A barrier completes when as many threads have come as it awaits: the number that it names, or all
threads that have not exited. Before 7.0 a warp counts whole, whichever of its lanes came (PTX ISA,
bar).
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
def settle(plan: Words, states: Words, tables: Words, first: int) -> int:
    """Complete the barriers of a block after a round of its warps.

    Answers ENDED, RUNNABLE where some are let go, TURN_END where some warp can go on
    anyway, else BLOCKED.
    """
    living, ready, whole = 0, 0, 0
    barrier = NONE
    for warp in range(first, first + plan[WARPS]):
        state = states[warp]
        if state[STATUS] != ENDED:
            living += 1
        if state[STATUS] == RUNNABLE:
            ready += 1
        of_all = state[STATUS] == BARRIER_WAIT and state[BARRIER_THREADS] == 0
        of_all = of_all and state[BARRIER] != CLUSTER_BARRIER
        if of_all and barrier in (NONE, state[BARRIER]):
            whole += 1
            barrier = state[BARRIER]
    if living == 0:
        return ENDED
    if ready == living:
        return TURN_END
    if whole == living and all_alone(plan, states, tables, first):
        release(plan, states, tables, first, barrier)
        return RUNNABLE
    released = 0
    for number in range(BARRIERS + plan[WARPS] // GROUP_WARPS):
        released += settle_one(plan, states, tables, first, number)
    if released > 0:
        return RUNNABLE
    return TURN_END if ready > 0 else BLOCKED


@jitable
def all_alone(plan: Words, states: Words, tables: Words, first: int) -> bool:
    """Returns whether every warp that waits as a whole has no other splits that could make it
    wait."""
    if not plan[INDEPENDENT]:
        return True
    for warp in range(first, first + plan[WARPS]):
        if states[warp][STATUS] == BARRIER_WAIT and tables[warp][MASK] != tables[warp][LIVE]:
            return False
    return True


@jitable
def threads_of(plan: Words, mask: int) -> int:
    """Return the threads that lanes which come to a barrier stand for: before 7.0, all of their
    warp."""
    return count_lanes(mask) if plan[INDEPENDENT] else plan[WARP_SIZE]


@jitable
def settle_one(plan: Words, states: Words, tables: Words, first: int, barrier: int) -> int:
    """Complete one barrier if it is full. Answers 1 if it was."""
    arrived, expected, everyone = 0, 0, 0
    for warp in range(first, first + plan[WARPS]):
        state = states[warp]
        if state[STATUS] != ENDED:
            everyone += threads_of(plan, tables[warp][LIVE])
        arrived += state[ARRIVALS + barrier]
        expected = max(expected, state[AWAITED + barrier])
        if state[STATUS] == BARRIER_WAIT:
            if state[BARRIER] == barrier:
                arrived += threads_of(plan, tables[warp][MASK])
                expected = max(expected, state[BARRIER_THREADS])
        elif state[STATUS] != ENDED:
            arrived += lanes_at_barrier(tables[warp], barrier)
            expected = max(expected, threads_awaited(tables[warp], barrier))
    if arrived == 0 or arrived != (expected if expected > 0 else everyone):
        return 0
    release(plan, states, tables, first, barrier)
    return 1


@jitable
def release(plan: Words, states: Words, tables: Words, first: int, barrier: int) -> None:
    """Let all that wait at a barrier go on, and tell them what it has counted."""
    votes = 0
    for warp in range(first, first + plan[WARPS]):
        state = states[warp]
        if state[STATUS] == BARRIER_WAIT and state[BARRIER] == barrier:
            votes += waiting_votes(state, tables[warp])
        elif state[STATUS] != ENDED:
            votes += votes_at_barrier(tables[warp], barrier)
    for warp in range(first, first + plan[WARPS]):
        state = states[warp]
        state[ARRIVALS + barrier] = 0
        state[AWAITED + barrier] = 0
        if state[STATUS] == BARRIER_WAIT:
            if state[BARRIER] == barrier:
                state[STATUS] = RUNNABLE
                if state[RESUME] == FROM_TABLE:
                    give_sums(tables[warp], votes)
        elif state[STATUS] != ENDED and lanes_at_barrier(tables[warp], barrier) > 0:
            release_barrier(tables[warp], barrier, votes)
            state[STATUS] = RUNNABLE


@jitable
def waiting_votes(state: Words, table: Table) -> int:
    """Return the lanes that a warp which waits as a whole adds up."""
    count = 0
    if state[RESUME] == FROM_TABLE:
        left = table[PARKED]
        while left != 0:
            count += max(table[split_at(table, first_lane(left)) + S_VOTE] - 1, 0)
            left &= left - 1
    return count


@jitable
def give_sums(table: Table, votes: int) -> None:
    """Tell a warp that waited as a whole what the barrier has counted."""
    left = table[PARKED]
    while left != 0:
        give_sum(table, split_at(table, first_lane(left)), votes)
        left &= left - 1


@jitable
def lanes_at_barrier(table: Table, barrier: int) -> int:
    """Returns how many lanes of parked splits wait at a barrier."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        count += count_lanes(table[split_at(table, first_lane(left)) + S_MASK])
        left &= left - 1
    return count


@jitable
def threads_awaited(table: Table, barrier: int) -> int:
    """Returns how many threads a barrier awaits by what its waiting splits say; 0 where they name
    none."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        count = max(count, table[split_at(table, first_lane(left)) + S_ARGUMENT_2])
        left &= left - 1
    return count


@jitable
def votes_at_barrier(table: Table, barrier: int) -> int:
    """Return the lanes that parked splits add up at a barrier."""
    count = 0
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        count += max(table[split_at(table, first_lane(left)) + S_VOTE] - 1, 0)
        left &= left - 1
    return count


@jitable
def give_sum(table: Table, at: int, votes: int) -> None:
    """Tell a split what a barrier has counted, if it asked."""
    if table[at + S_VOTE] != 0:
        table[at + S_VOTE] = 1 + votes
        table[at + S_ARGUMENT_2] = 1


@jitable
def release_barrier(table: Table, barrier: int, votes: int) -> None:
    """Let the splits that wait at a barrier go on; `votes` is what it has counted."""
    left = waiting(table, AT_BARRIER, barrier)
    while left != 0:
        at = split_at(table, first_lane(left))
        left &= left - 1
        table[at + S_STATUS] = READY
        table[at + S_ARGUMENT] = 0
        table[at + S_ARGUMENT_2] = 0
        give_sum(table, at, votes)
