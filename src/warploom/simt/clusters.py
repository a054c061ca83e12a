"""Runs clusters of thread blocks, for both machines: numbers their blocks, completes
`barrier.cluster`, and resolves addresses of distributed shared memory.

The blocks of a cluster occupy neighboring slots of the schedule, in the order of their ranks,
until the last of them has ended. Source: PTX ISA, "Cluster of Cooperative Thread Arrays",
"barrier.cluster", "mapa".
"""

from __future__ import annotations

from warploom.simt.address_windows import BLOCK_BITS
from warploom.simt.block_barriers import lanes_at_barrier
from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.records import Words
from warploom.simt.schedule_layout import (
    BARRIER_WAIT,
    CLUSTER_BARRIER,
    EMPTY_SLOT,
    ENDED,
    ENDED_BLOCK,
    FREED_SLOT,
    RUNNABLE,
    Plan,
    WarpState,
    table_of,
)
from warploom.simt.waiting_splits import waiting
from warploom.simt.warp_table import AT_BARRIER, READY, WarpTable, split_of

MOST_BLOCKS = 16
"""The largest number of blocks in a cluster, for kernels that allow non-portable sizes."""

NO_SUCH_BLOCK, BEYOND_BLOCK = -1, -2
"""Results of `cluster_offset` for faults: the block does not run, or the offset exceeds its shared
memory."""


@jitable
def first_slot(plan: Plan, slot: int) -> int:
    """Returns the slot of the block of rank 0 in the cluster that occupies `slot`."""
    return int(slot - slot % plan.cluster)


@jitable
def cluster_block(plan: Plan, cluster: int, rank: int) -> int:
    """Returns the grid index of the block at `rank` of cluster number `cluster`; grid indices,
    clusters and ranks all count x fastest, then y, then z."""
    cluster_width, cluster_height = plan.cluster_x, plan.cluster_y
    # Without a rest: along each axis, the grid is a multiple of the cluster.
    clusters_x, clusters_y = plan.grid_x // cluster_width, plan.grid_y // cluster_height
    cluster_depth = plan.cluster // (cluster_width * cluster_height)
    x = cluster % clusters_x * cluster_width + rank % cluster_width
    y = cluster // clusters_x % clusters_y * cluster_height + rank // cluster_width % cluster_height
    z = cluster // (clusters_x * clusters_y) * cluster_depth + rank // (
        cluster_width * cluster_height
    )
    return int(x + plan.grid_x * (y + plan.grid_y * z))


@jitable
def peer_block(plan: Plan, block: int, own: int, rank: int) -> int:
    """Returns the grid index of the block at `rank` of the cluster in which `block` has the rank
    `own`."""
    cluster_width, cluster_height = plan.cluster_x, plan.cluster_y
    # Both blocks are in one cluster, so they are as far apart in the grid as in it.
    x = rank % cluster_width - own % cluster_width
    y = rank // cluster_width % cluster_height - own // cluster_width % cluster_height
    z = rank // (cluster_width * cluster_height) - own // (cluster_width * cluster_height)
    return int(block + x + plan.grid_x * (y + plan.grid_y * z))


@jitable
def end_block(plan: Plan, slots: Words, slot: int) -> None:
    """Marks the block in a slot as ended (ENDED_BLOCK): it is no longer counted in `resident`, but
    in `held`, as other blocks of its cluster may still access its shared memory. Once all blocks of
    the cluster have ended, empties their slots, which are no longer held."""
    plan.resident -= 1
    slots[slot] = ENDED_BLOCK
    plan.held += 1
    first_of_cluster = first_slot(plan, slot)
    for cluster_slot in range(first_of_cluster, first_of_cluster + plan.cluster):
        if slots[cluster_slot] != ENDED_BLOCK:
            return
    # The value falls with each end: the greatest of the free slots has been free for longest
    # (`block_slots.first_free_slot`).
    freed = FREED_SLOT - plan.ended_clusters if plan.by_multiprocessor else EMPTY_SLOT
    for cluster_slot in range(first_of_cluster, first_of_cluster + plan.cluster):
        slots[cluster_slot] = freed
    plan.ended_clusters += 1
    plan.held -= plan.cluster


@jitable
def live_blocks(plan: Plan, slots: Words) -> int:
    """Returns a bit mask of the ranks of the current cluster's blocks that have begun and not
    ended."""
    first_of_cluster, ranks = first_slot(plan, plan.slot), 0
    for rank in range(plan.cluster):
        if slots[first_of_cluster + rank] >= 0:
            ranks |= 1 << rank
    return ranks


# ---- the barrier --------------------------------------------------------------------------------


@jitable
def all_arrived(
    plan: Plan, slots: Words, states: Words, tables: Words, own: int, own_live: int
) -> bool:
    """Returns whether all threads of the current cluster that have not exited have arrived at its
    barrier; False while a block of it has not begun. The live lanes of warp `own` (-1: of no warp)
    are `own_live`: the running warp may not have stored them in its table yet."""
    first_of_cluster = first_slot(plan, plan.slot)
    for slot in range(first_of_cluster, first_of_cluster + plan.cluster):
        # A block of the cluster that has not begun has threads that must still arrive.
        if slots[slot] < 0 and slots[slot] != ENDED_BLOCK:
            return False
        if slots[slot] != ENDED_BLOCK:
            for warp in range(slot * plan.warps, (slot + 1) * plan.warps):
                state = WarpState(states, 0, warp)
                if state.status != ENDED:
                    live = own_live if warp == own else table_of(plan, tables, warp).live
                    if live & ~state.cluster_arrived != 0:
                        return False
    return True


@jitable
def begin_phase(plan: Plan, states: Words) -> None:
    """Begins the next phase of the current cluster's barrier by clearing the arrived lanes. Resets
    the count of stuck blocks, as blocks that waited can run again."""
    plan.stuck_blocks = 0
    first_of_cluster = first_slot(plan, plan.slot)
    for warp in range(
        first_of_cluster * plan.warps, (first_of_cluster + plan.cluster) * plan.warps
    ):
        WarpState(states, 0, warp).cluster_arrived = 0


@jitable
def must_wait(
    plan: Plan, slots: Words, states: Words, tables: Words, own: int, own_live: int, mask: int
) -> bool:
    """Returns whether the lanes `mask` of warp `own` must wait at their cluster's barrier: they
    have arrived at the current phase, and others have not. False if they have not arrived at it, as
    the phase that they wait for is then complete. If all threads have arrived, begins the next
    phase and returns False; if lanes wait, sets `cluster_waits` in the schedule."""
    # Arrivals are cleared when a phase completes: lanes without one wait for a complete phase.
    if WarpState(states, 0, own).cluster_arrived & mask == 0:
        return False
    if all_arrived(plan, slots, states, tables, own, own_live):
        begin_phase(plan, states)
        return False
    plan.cluster_waits = 1
    return True


@jitable
def release_cluster_waits(
    plan: Plan, slots: Words, states: Words, tables: Words, first_warp: int
) -> int:
    """Makes the warps and splits of the current block runnable whose phase of the cluster's barrier
    is complete: those without a lane in `cluster_arrived`, which the beginning of the next phase
    clears; that begins here if all threads of the cluster have arrived. `first_warp` is the index
    of the block's first warp. Returns 1 if any were released, else 2 if some wait, else 0."""
    # -1, 0: no warp is running, so the table of each has its live lanes.
    if all_arrived(plan, slots, states, tables, -1, 0):
        begin_phase(plan, states)
    released, still_waiting = 0, 0
    for warp in range(first_warp, first_warp + plan.warps):
        state, table = WarpState(states, 0, warp), table_of(plan, tables, warp)
        arrived = state.cluster_arrived
        if state.status == BARRIER_WAIT:
            if state.barrier == CLUSTER_BARRIER:
                # Lanes in `arrived` wait for the current phase, the others for an earlier one.
                if table.mask & arrived == 0:
                    state.status = RUNNABLE
                    released = 1
                else:
                    still_waiting = 2
        elif state.status != ENDED and lanes_at_barrier(table, CLUSTER_BARRIER) > 0:
            if release_splits(table, arrived):
                state.status = RUNNABLE
                released = 1
            else:
                still_waiting = 2
    return released if released else still_waiting


@jitable
def release_splits(table: WarpTable, arrived: int) -> bool:
    """Makes the splits ready (status READY, both arguments 0) that are parked at the cluster's
    barrier and have no lane in `arrived`: lanes in it wait for the current, incomplete phase.
    Returns whether any were."""
    released = False
    left = waiting(table, AT_BARRIER, CLUSTER_BARRIER)
    while left != 0:
        record = split_of(table, first_lane(left))
        left &= left - 1
        if record.mask & arrived == 0:
            # The arguments of a ready split: it has used up no turn, and need not skip a wait.
            record.status = READY
            record.argument = 0
            record.argument_2 = 0
            released = True
    return released


# ---- shared memory ------------------------------------------------------------------------------


@jitable
def cluster_offset(
    address: int, size: int, own: int, live: int, shared_bytes: int, stride: int
) -> int:
    """Converts an address of the cluster's shared memory (`mapa`) to the byte offset from the start
    of the first block's shared memory; NO_SUCH_BLOCK or BEYOND_BLOCK if the `size` bytes there
    cannot be accessed. The bits of `address` from BLOCK_BITS on are 1 plus the block's rank, or 0
    for the executing block; those below are the offset in that block.

    `own` is the rank of the executing block, `live` the ranks of running blocks as bits,
    `shared_bytes` the size of a block's shared memory, `stride` the bytes from that of one block to
    the next."""
    rank, offset = address >> BLOCK_BITS, address & ((1 << BLOCK_BITS) - 1)
    block = own if rank == 0 else rank - 1
    if block >= MOST_BLOCKS or (live >> block) & 1 == 0:
        return NO_SUCH_BLOCK
    if offset + size > shared_bytes:
        return BEYOND_BLOCK
    return block * stride + offset
