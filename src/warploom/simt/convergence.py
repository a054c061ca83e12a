"""Keeps track of how the lanes of a warp part, wait for each other and meet again.

A warp's table says it all (`simt.warp_table`): the lanes that live; the split that runs; the
splits that are parked; and the nodes at which lanes that parted will gather. A node is made where a
branch sends lanes both ways: its lanes are expected at the branch's immediate post-dominator. With
one split at a time and no parked ones, the nodes are the reconvergence stack of compute
capabilities below 7.0; from 7.0 on a split that cannot go on is parked and another goes on in its
place (CUDA C++ Programming Guide, "SIMT Architecture").

Compiled code does `push` and `arrive` itself, in the same way; everything rarer is done here.
"""

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
    PASS,
    POINT,
    READY,
    SEQUENCE,
    SLICES,
    TOP,
    VOTE,
    Table,
    node_at,
    node_count,
)

PATIENCE = 64
"""Turns that a warp may use up before lanes that gather stop waiting for the others."""


@jitable
def begin(table: Table, live: int, lanes: int, policy: int) -> int:
    """Begin a warp. Answers whether its lanes begin parked."""
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
    table[PASS] = 0
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
    """Make a node for lanes that part, inside that of the running split."""
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
    """Unmake a node whose lanes are all there; the running split goes on inside its parent."""
    table[FREE] |= 1 << node
    table[TOP] = table[node_at(node) + PARENT]


@jitable
def start_other_sides(table: Table) -> int:
    """Park every side that has not begun as ready. Answers how many."""
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
def release_gatherings(table: Table, exit: int) -> int:
    """Let lanes that gather go on without the others. Answers how many nodes they leave.

    A node that nobody is expected at any more, or only by lanes of its own split, stays until they
    arrive.
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
def finish_nodes(table: Table, exit: int) -> int:
    """Let lanes go on that are all there, where the last ones that were awaited have left."""
    count = 0
    for node in range(node_count(table[LANES])):
        if (table[FREE] >> node) & 1 == 0:
            at = node_at(node)
            there = table[at + ARRIVED]
            if (
                table[at + EXPECTED] == there
                and table[at + OTHER_MASK] == 0
                and table[at + POINT] != exit
            ):
                table[FREE] |= 1 << node
                if there != 0:
                    park(table, table[at + POINT], there, table[at + PARENT], READY, 0, 0)
                    count += 1
    return count


@jitable
def find_more(table: Table, changes: int, exit: int) -> None:
    """Let more lanes run where those that can do not get anywhere: sides that have not begun, else
    lanes that wait for the others to gather."""
    join_synced(table)
    impatient = table[SLICES] > PATIENCE or is_stuck(table, changes)
    if impatient and start_other_sides(table) == 0:
        release_gatherings(table, exit)
        finish_nodes(table, exit)
        remove_redundant_nodes(table)
        join_synced(table)
