"""The tree of a warp's nodes: which lies in which, and when one has nothing left to gather.

A node is worth keeping while lanes have arrived at it, while a side of its branch has not begun, or
while it holds at least two parts (parked splits and inner nodes) that can meet at its point. As
every lane is in one place, at most `lanes - 1` such nodes exist. Splits that join at a member mask,
and lanes that stop gathering, leave nodes that hold one part or none. These are removed, for a loop
that parts and joins its lanes would otherwise use up all nodes.
"""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.warp_table import (
    ARRIVED,
    EXPECTED,
    FREE,
    LANES,
    NONE,
    OTHER_MASK,
    PARENT,
    PARKED,
    S_MASK,
    S_NODE,
    Table,
    node_at,
    node_count,
    split_at,
)


@jitable
def is_inside(table: Table, node: int, outer: int) -> bool:
    """Returns whether a node is `outer` or lies in it."""
    while node != NONE:
        if node == outer:
            return True
        node = table[node_at(node) + PARENT]
    return False


@jitable
def leave_nodes(table: Table, into: int, at: int) -> None:
    """Moves two splits that join to the innermost node that both are in; the nodes that they leave
    no longer expect them. `into` and `at` are places of splits in the table."""
    common = table[into + S_NODE]
    while common != NONE and not is_inside(table, table[at + S_NODE], common):
        common = table[node_at(common) + PARENT]
    for split in (into, at):
        node = table[split + S_NODE]
        while node != common:
            table[node_at(node) + EXPECTED] &= ~table[split + S_MASK]
            node = table[node_at(node) + PARENT]
        table[split + S_NODE] = common


@jitable
def remove_redundant_nodes(table: Table) -> None:
    """Removes every node that gathers nothing. No split may be running: all are parked."""
    changed = True
    while changed:
        changed = False
        for node in range(node_count(table[LANES])):
            at = node_at(node)
            used = (table[FREE] >> node) & 1 == 0
            if used and table[at + ARRIVED] == 0 and table[at + OTHER_MASK] == 0:
                changed = remove_if_single(table, node) or changed


@jitable
def remove_if_single(table: Table, node: int) -> bool:
    """Removes a node that holds one part or none, which then lies in the node around it. Returns
    whether it did."""
    parts = 0
    place = 0
    for inner in range(node_count(table[LANES])):
        if (table[FREE] >> inner) & 1 == 0 and table[node_at(inner) + PARENT] == node:
            place = node_at(inner) + PARENT
            parts += 1
    left = table[PARKED]
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_NODE] == node:
            place = split_at(table, split) + S_NODE
            parts += 1
    if parts > 1:
        return False
    if parts == 1:
        table[place] = table[node_at(node) + PARENT]
    table[FREE] |= 1 << node
    return True
