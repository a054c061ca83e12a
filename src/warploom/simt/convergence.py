"""Tracks how the lanes of a warp diverge and reconverge: functions on a warp's table that both
machines call.

A *split* is a set of lanes that execute together. The warp's table (`simt.warp_table`) holds the
live lanes, the running split, the parked splits, and *nodes*: entries of the SIMT stack. A
divergent branch pushes a node; its lanes are expected at the branch's immediate post-dominator
(POINT), where they reconverge. While no split is parked, the nodes form the reconvergence stack of
compute capabilities below 7.0. From 7.0 on, a split that cannot continue is parked and another runs
in its place, so the nodes form a tree (CUDA C++ Programming Guide, "SIMT Architecture";
`simt.simt_stack`).

    @p bra ELSE;   lanes 0-31, p true in 0-7; ELSE reconverges at JOIN
    node:          POINT=JOIN EXPECTED=0xffffffff ARRIVED=0 OTHER_BLOCK=ELSE OTHER_MASK=0xff
    running:       MASK=0xffffff00, which arrives at JOIN: ARRIVED=0xffffff00, ELSE runs next

Compiled code does `push` and the arrival at a node inline, in the same way; it calls this module
for the rarer operations."""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.member_masks import join_synced
from warploom.simt.simt_stack import remove_redundant_nodes
from warploom.simt.split_policy import ADVERSARIAL
from warploom.simt.waiting_splits import is_stuck, park, park_separately
from warploom.simt.warp_table import (
    ARRIVED,
    BLOCK,
    BRANCH,
    DIVERGENCES,
    EXPECTED,
    FREE,
    HASHED,
    LANES,
    LEVEL,
    LIVE,
    MASK,
    NONE,
    OTHER_BLOCK,
    OTHER_MASK,
    PARENT,
    PARKED,
    POINT,
    READY,
    SEQUENCE,
    SLICES,
    SYNC_DONE,
    TOP,
    VOTE,
    Table,
    node_at,
    node_count,
)

TURN_LIMIT = 64
"""Turns that a warp may use before its reconverging lanes stop waiting for the other lanes. Before
that they wait, as code is faster when lanes execute together."""


@jitable
def begin(table: Table, live: int, lanes: int, policy: int) -> int:
    """Initialises the table of a warp with the live lanes `live` of `lanes`: all run together from
    basic block 0, with an empty SIMT stack. Returns 1 if they begin as parked splits of one lane
    each instead (policy ADVERSARIAL), else 0."""
    table[LANES] = lanes
    table[LIVE] = live
    table[MASK] = live
    table[BLOCK] = 0
    table[TOP] = NONE
    table[FREE] = (1 << node_count(lanes)) - 1
    table[PARKED] = 0
    table[SEQUENCE] = 0
    table[HASHED] = 0
    table[SLICES] = 0
    table[SYNC_DONE] = 0
    table[VOTE] = 0
    table[DIVERGENCES] = 0
    if policy != ADVERSARIAL:
        return 0
    park_separately(table, 0, live, NONE)
    return 1


@jitable
def push(
    table: Table,
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
    The node takes the lowest free number and becomes TOP, the old TOP its parent; no lane has
    arrived at it. Leaves MASK, the running lanes, to the caller."""
    node = first_lane(table[FREE])
    table[FREE] &= ~(1 << node)
    at = node_at(node)
    table[at + POINT] = point
    table[at + EXPECTED] = expected
    table[at + ARRIVED] = 0
    table[at + OTHER_BLOCK] = other_block
    table[at + OTHER_MASK] = other_mask
    table[at + BRANCH] = branch
    table[at + LEVEL] = level
    table[at + PARENT] = table[TOP]
    table[TOP] = node


@jitable
def pop(table: Table, node: int) -> None:
    """Frees a node (SIMT stack entry) at which all lanes have reconverged; its parent becomes the
    innermost node (TOP)."""
    table[FREE] |= 1 << node
    table[TOP] = table[node_at(node) + PARENT]


@jitable
def start_other_sides(table: Table) -> int:
    """Parks the side that has not begun (OTHER_MASK, which it clears) of every divergent branch as
    a ready split at OTHER_BLOCK, for a scheduler that runs the sides in turns; the nodes stay.
    Returns the number of splits."""
    count = 0
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            if table[at + OTHER_MASK] != 0:
                park(table, table[at + OTHER_BLOCK], table[at + OTHER_MASK], node, READY, 0, 0)
                table[at + OTHER_MASK] = 0
                count += 1
    return count


@jitable
def release_reconverging_lanes(table: Table, exit: int) -> int:
    """Lets the lanes that wait for reconvergence continue without the missing lanes: parks those of
    each node (SIMT stack entry) at its POINT as a ready split inside the parent node, no longer
    expects them, and restarts the count of turns used (SLICES). Returns the number of splits.

    Lanes at the exit of the kernel (block `exit`) stay there, as nothing follows. The nodes
    themselves stay until the missing lanes arrive, or `remove_redundant_nodes` removes them.
    """
    count = 0
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            waiting = table[at + ARRIVED]
            if waiting != 0 and table[at + POINT] != exit:
                table[at + EXPECTED] &= ~waiting
                table[at + ARRIVED] = 0
                park(table, table[at + POINT], waiting, table[at + PARENT], READY, 0, 0)
                count += 1
    table[SLICES] = 0
    return count


@jitable
def remove_complete_nodes(table: Table, exit: int) -> int:
    """Frees the nodes (SIMT stack entries) at which all lanes that are still expected have arrived;
    parks these, if any, as a ready split inside the parent node. Leaves nodes whose other side has
    yet to run, and those at the program's end (block `exit`). Returns the number of splits."""
    count = 0
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            arrived = table[at + ARRIVED]
            if (
                table[at + EXPECTED] == arrived
                and table[at + OTHER_MASK] == 0
                and table[at + POINT] != exit
            ):
                table[FREE] |= 1 << node
                # Without arrived lanes, all lanes of the node have exited.
                if arrived != 0:
                    park(table, table[at + POINT], arrived, table[at + PARENT], READY, 0, 0)
                    count += 1
    return count


@jitable
def release_more_lanes(table: Table, changes: int, exit: int) -> None:
    """Releases the lanes of complete member masks (`join_synced`); then, if the ready splits spin
    without progress (`is_stuck`) or more than TURN_LIMIT turns are used up (SLICES), makes more
    lanes ready: pending sides of branches, or, if there are none, lanes that wait for reconvergence
    at a block other than `exit`; nodes that are complete or redundant then are freed.

    Independent thread scheduling promises this: a lane that spins on a flag must not keep the lane
    that sets it, on the other side of a branch, from running. `changes` counts changes of memory.
    """
    join_synced(table)
    # Pending sides come first: lanes released from reconvergence run separately from the others.
    impatient = table[SLICES] > TURN_LIMIT or is_stuck(table, changes)
    if impatient and start_other_sides(table) == 0:
        release_reconverging_lanes(table, exit)
        remove_complete_nodes(table, exit)
        remove_redundant_nodes(table)
        join_synced(table)
