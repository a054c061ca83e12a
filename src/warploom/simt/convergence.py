"""Tracks how the lanes of a warp diverge and reconverge: functions on a warp's table that both
machines call.

A *split* is a set of lanes that execute together. The warp's table (`simt.warp_table`) holds the
live lanes, the running split, the parked splits, and *nodes*: entries of the SIMT stack. A
divergent branch pushes a node; its lanes are expected at the branch's immediate post-dominator
(`point`), where they reconverge. While no split is parked, the nodes form the reconvergence stack
of compute capabilities below 7.0. From 7.0 on, a split that cannot continue is parked and another
runs instead, so the nodes form a tree (CUDA C++ Programming Guide, "SIMT Architecture";
`simt.simt_stack`).

    @p bra ELSE;   lanes 0-31, p true in 0-7; ELSE reconverges at JOIN
    node:          point=JOIN expected=0xffffffff arrived=0 other_block=ELSE other_mask=0xff
    running:       mask=0xffffff00, which arrives at JOIN: arrived=0xffffff00, ELSE runs next

Compiled code does `push` and the arrival at a node inline, in the same way; it calls this module
for the rarer operations."""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.member_masks import join_synced
from warploom.simt.simt_stack import remove_redundant_nodes
from warploom.simt.split_policy import ADVERSARIAL
from warploom.simt.waiting_splits import is_stuck, park, park_separately
from warploom.simt.warp_table import NONE, READY, WarpTable, node_count, node_of

TURN_LIMIT = 64
"""Turns that a warp may use before its reconverging lanes stop waiting for the other lanes. Before
that they wait, as code is faster when lanes execute together."""


@jitable
def begin(table: WarpTable, live: int, lanes: int, policy: int) -> int:
    """Initializes the table of a warp with the live lanes `live` of `lanes`: all run together from
    basic block 0, with an empty SIMT stack. Returns 1 if they begin as parked splits of one lane
    each instead (policy ADVERSARIAL), else 0."""
    table.lanes = lanes
    table.live = live
    table.mask = live
    table.block = 0
    table.top = NONE
    table.free = (1 << node_count(lanes)) - 1
    table.parked = 0
    table.sequence = 0
    table.hashed = 0
    table.slices = 0
    table.sync_done = 0
    table.vote = 0
    table.divergences = 0
    if policy != ADVERSARIAL:
        return 0
    park_separately(table, 0, live, NONE)
    return 1


@jitable
def push(
    table: WarpTable,
    point: int,
    expected: int,
    other_block: int,
    other_mask: int,
    branch: int,
    level: int,
) -> None:
    """Pushes a node (SIMT stack entry) for the running lanes, which diverge: the lanes `expected`
    reconverge at basic block `point`; the lanes `other_mask` are to run from `other_block` later
    (0: the node has no other side). `branch` is the branch instruction, `level` the depth of calls.
    The node gets the lowest free number and becomes `top`, the old `top` its parent; no lane has
    arrived at it. Leaves `mask`, the running lanes, to the caller."""
    # Some node is free: a table has one for each way in which lanes can be apart
    # (`simt.warp_table.node_count`), and redundant nodes are removed.
    node = first_lane(table.free)
    table.free &= ~(1 << node)
    entry = node_of(table, node)
    entry.point = point
    entry.expected = expected
    entry.arrived = 0
    entry.other_block = other_block
    entry.other_mask = other_mask
    entry.branch = branch
    entry.level = level
    entry.parent = table.top
    table.top = node


@jitable
def pop(table: WarpTable, node: int) -> None:
    """Frees a node (SIMT stack entry) at which all lanes have reconverged; its parent becomes the
    innermost node (`top`)."""
    table.free |= 1 << node
    table.top = node_of(table, node).parent


@jitable
def start_other_sides(table: WarpTable) -> int:
    """Parks the side that has not begun (`other_mask`, which it clears) of every divergent branch
    as a ready split at OTHER_BLOCK, for a scheduler that runs the sides in turns; the nodes stay.
    Returns the number of splits."""
    count = 0
    for node in range(node_count(table.lanes)):
        if (table.free >> node) & 1 == 0:
            entry = node_of(table, node)
            if entry.other_mask != 0:
                park(table, entry.other_block, entry.other_mask, node, READY, 0, 0)
                entry.other_mask = 0
                count += 1
    return count


@jitable
def release_reconverging_lanes(table: WarpTable, exit: int) -> int:
    """Lets the lanes that wait for reconvergence continue without the missing lanes: parks those of
    each node (SIMT stack entry) at its `point` as a ready split inside the parent node, no longer
    expects them, and restarts the count of turns used (`slices`). Returns the number of splits.

    Lanes at the exit of the kernel (block `exit`) stay there, as nothing follows. The nodes
    themselves stay until the missing lanes arrive, or `remove_redundant_nodes` removes them.
    """
    count = 0
    for node in range(node_count(table.lanes)):
        if (table.free >> node) & 1 == 0:
            entry = node_of(table, node)
            waiting = entry.arrived
            if waiting != 0 and entry.point != exit:
                entry.expected &= ~waiting
                entry.arrived = 0
                park(table, entry.point, waiting, entry.parent, READY, 0, 0)
                count += 1
    table.slices = 0
    return count


@jitable
def remove_complete_nodes(table: WarpTable, exit: int) -> int:
    """Frees the nodes (SIMT stack entries) at which all lanes that are still expected have arrived;
    parks these, if any, as a ready split inside the parent node. Leaves nodes whose other side has
    yet to run, and those at the program's end (block `exit`). Returns the number of splits."""
    count = 0
    for node in range(node_count(table.lanes)):
        if (table.free >> node) & 1 == 0:
            entry = node_of(table, node)
            arrived = entry.arrived
            if entry.expected == arrived and entry.other_mask == 0 and entry.point != exit:
                table.free |= 1 << node
                # Without arrived lanes, all lanes of the node have exited.
                if arrived != 0:
                    park(table, entry.point, arrived, entry.parent, READY, 0, 0)
                    count += 1
    return count


@jitable
def release_more_lanes(table: WarpTable, changes: int, exit: int) -> None:
    """Releases the lanes of complete member masks (`join_synced`). Then, if the ready splits spin
    without progress (`is_stuck`) or more than TURN_LIMIT turns are used up (`slices`), makes more
    lanes ready: pending sides of branches, or, if there are none, lanes that wait for reconvergence
    at a block other than `exit`. Frees the nodes that are complete or redundant after that.

    Independent thread scheduling promises this: a lane that spins on a flag must not prevent the
    lane that sets it, on the other side of a branch, from running. `changes` counts changes of
    memory.
    """
    join_synced(table)
    # Pending sides come first: lanes released from reconvergence run separately from the others.
    impatient = table.slices > TURN_LIMIT or is_stuck(table, changes)
    if impatient and start_other_sides(table) == 0:
        release_reconverging_lanes(table, exit)
        remove_complete_nodes(table, exit)
        remove_redundant_nodes(table)
        join_synced(table)
