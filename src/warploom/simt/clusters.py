"""Clusters of blocks: which blocks they are, their barrier, and the shared memory of others.

A cluster's blocks have neighbouring slots of the schedule, in the order of their ranks, until the
last of them has ended. Source: PTX ISA, "Cluster of Cooperative Thread Arrays", "barrier.cluster",
"mapa".
"""

from __future__ import annotations

from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.block_barriers import lanes_at_barrier
from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.schedule_layout import (
    BARRIER,
    BARRIER_WAIT,
    CLUSTER,
    CLUSTER_ARRIVED,
    CLUSTER_BARRIER,
    CLUSTER_WAITS,
    CLUSTER_X,
    CLUSTER_Y,
    ENDED,
    ENDED_BLOCK,
    GRID_X,
    GRID_Y,
    HELD,
    HOPELESS,
    NONE_BEGUN,
    RESIDENT,
    RUNNABLE,
    SLOT,
    STATUS,
    WARPS,
    Words,
)
from warploom.simt.waiting_splits import waiting
from warploom.simt.warp_table import (
    AT_BARRIER,
    LIVE,
    MASK,
    READY,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_MASK,
    S_STATUS,
    Table,
    split_at,
)

MOST_BLOCKS = 16
"""Blocks of a cluster at most, where a kernel allows sizes that are not portable."""

NO_SUCH_BLOCK, BEYOND_BLOCK = -1, -2
"""Answers of `cluster_offset` beside an offset."""


@jitable
def first_slot(plan: Words, slot: int) -> int:
    """Return the slot of the first block of the cluster to which a slot belongs."""
    return int(slot - slot % plan[CLUSTER])


@jitable
def cluster_block(plan: Words, cluster: int, rank: int) -> int:
    """Return the number in the grid of a block of a cluster; clusters and ranks count x fastest."""
    wide, high = plan[CLUSTER_X], plan[CLUSTER_Y]
    across, down = plan[GRID_X] // wide, plan[GRID_Y] // high
    deep = plan[CLUSTER] // (wide * high)
    x = cluster % across * wide + rank % wide
    y = cluster // across % down * high + rank // wide % high
    z = cluster // (across * down) * deep + rank // (wide * high)
    return int(x + plan[GRID_X] * (y + plan[GRID_Y] * z))


@jitable
def peer_block(plan: Words, block: int, own: int, rank: int) -> int:
    """Return the number in the grid of the block at `rank` of a cluster in which `block` is the one
    at `own`."""
    wide, high = plan[CLUSTER_X], plan[CLUSTER_Y]
    x = rank % wide - own % wide
    y = rank // wide % high - own // wide % high
    z = rank // (wide * high) - own // (wide * high)
    return int(block + x + plan[GRID_X] * (y + plan[GRID_Y] * z))


@jitable
def end_block(plan: Words, slots: Words, slot: int) -> None:
    """Note that the block in a slot has ended; its slot is free when its whole cluster has."""
    plan[RESIDENT] -= 1
    slots[slot] = ENDED_BLOCK
    plan[HELD] += 1
    first = first_slot(plan, slot)
    for other in range(first, first + plan[CLUSTER]):
        if slots[other] != ENDED_BLOCK:
            return
    for other in range(first, first + plan[CLUSTER]):
        slots[other] = NONE_BEGUN
    plan[HELD] -= plan[CLUSTER]


@jitable
def live_blocks(plan: Words, slots: Words) -> int:
    """Return the blocks of the current cluster that have begun and have not ended, a bit each."""
    first, found = first_slot(plan, plan[SLOT]), 0
    for rank in range(plan[CLUSTER]):
        if slots[first + rank] >= 0:
            found |= 1 << rank
    return found


# ---- the barrier --------------------------------------------------------------------------------


@jitable
def all_arrived(
    plan: Words, slots: Words, states: Words, tables: Words, own: int, own_live: int
) -> bool:
    """Return whether all threads of the current cluster that have not exited have arrived at its
    barrier. Of warp `own`, `own_live` are the lanes that live; its table may be older."""
    first = first_slot(plan, plan[SLOT])
    for slot in range(first, first + plan[CLUSTER]):
        if slots[slot] == NONE_BEGUN:
            return False
        if slots[slot] != ENDED_BLOCK:
            for warp in range(slot * plan[WARPS], (slot + 1) * plan[WARPS]):
                if states[warp][STATUS] != ENDED:
                    live = own_live if warp == own else tables[warp][LIVE]
                    if live & ~states[warp][CLUSTER_ARRIVED] != 0:
                        return False
    return True


@jitable
def begin_phase(plan: Words, states: Words) -> None:
    """Begin the next phase of the barrier of the current cluster: nobody has arrived. Blocks that
    waited get somewhere when it is their turn."""
    plan[HOPELESS] = 0
    first = first_slot(plan, plan[SLOT])
    for warp in range(first * plan[WARPS], (first + plan[CLUSTER]) * plan[WARPS]):
        states[warp][CLUSTER_ARRIVED] = 0


@jitable
def must_wait(
    plan: Words, slots: Words, states: Words, tables: Words, own: int, own_live: int, mask: int
) -> bool:
    """Return whether lanes of warp `own` must wait at the barrier of their cluster for others."""
    if states[own][CLUSTER_ARRIVED] & mask == 0:
        return False
    if all_arrived(plan, slots, states, tables, own, own_live):
        begin_phase(plan, states)
        return False
    plan[CLUSTER_WAITS] = 1
    return True


@jitable
def settle_cluster(plan: Words, slots: Words, states: Words, tables: Words, first: int) -> int:
    """Let lanes of the current block, whose first warp is `first`, go on whose phase of the
    cluster's barrier is complete. Answers 1 if there are any, 2 if some wait, 0 if none do."""
    if all_arrived(plan, slots, states, tables, -1, 0):
        begin_phase(plan, states)
    released, kept = 0, 0
    for warp in range(first, first + plan[WARPS]):
        state = states[warp]
        arrived = state[CLUSTER_ARRIVED]
        if state[STATUS] == BARRIER_WAIT:
            if state[BARRIER] == CLUSTER_BARRIER:
                if tables[warp][MASK] & arrived == 0:
                    state[STATUS] = RUNNABLE
                    released = 1
                else:
                    kept = 2
        elif state[STATUS] != ENDED and lanes_at_barrier(tables[warp], CLUSTER_BARRIER) > 0:
            if release_splits(tables[warp], arrived):
                state[STATUS] = RUNNABLE
                released = 1
            else:
                kept = 2
    return released if released else kept


@jitable
def release_splits(table: Table, arrived: int) -> bool:
    """Let the parked splits go on that wait at the cluster's barrier, but those of lanes that have
    arrived at the phase which is not complete. Answers whether there are any."""
    released = False
    left = waiting(table, AT_BARRIER, CLUSTER_BARRIER)
    while left != 0:
        at = split_at(table, first_lane(left))
        left &= left - 1
        if table[at + S_MASK] & arrived == 0:
            table[at + S_STATUS] = READY
            table[at + S_ARGUMENT] = 0
            table[at + S_ARGUMENT_2] = 0
            released = True
    return released


# ---- shared memory ------------------------------------------------------------------------------


@jitable
def cluster_offset(
    address: int, size: int, own: int, live: int, shared_bytes: int, stride: int
) -> int:
    """Return how far an address of shared memory is behind the beginning of the shared memory of
    the cluster's first block; NO_SUCH_BLOCK, BEYOND_BLOCK. `own` is the rank of the block, `live`
    are those that can be reached, as bits."""
    rank, offset = address >> BLOCK_BITS, address & ((1 << BLOCK_BITS) - 1)
    block = own if rank == 0 else rank - 1
    if block >= MOST_BLOCKS or (live >> block) & 1 == 0:
        return NO_SUCH_BLOCK
    if offset + size > shared_bytes:
        return BEYOND_BLOCK
    return block * stride + offset
