"""Maintains the tree of reconvergence nodes in a warp's table, and removes nodes that are
redundant.

A node is needed while lanes have arrived at it, while the other side of its branch is pending, or
while at least two children (parked splits and inner nodes) can reconverge at it. As every lane is
in one split, at most `lanes - 1` such nodes exist. Splits that merge at a member mask
(`simt.member_masks`), and lanes that stop waiting for reconvergence, leave nodes with one child or
none. These are removed, since a loop that diverges and merges would otherwise use up all nodes.

    node A > node B > split 1   with nothing else in B   ->   node A > split 1
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
    """Returns whether a node (SIMT stack entry) is `outer` or one of its descendants; False if
    `node` is NONE."""
    while node != NONE:
        if node == outer:
            return True
        node = table[node_at(node) + PARENT]
    return False


@jitable
def leave_nodes(table: Table, into: int, at: int) -> None:
    """Moves two splits that merge to their innermost common node (SIMT stack entry; NONE if they
    share none); the nodes that they leave no longer expect their lanes. `into` and `at` are the
    indices of the splits' records in the table."""
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
    """Removes all redundant nodes: no lane has arrived, no other side is pending, and at most one
    child is left. All splits must be parked, as children are counted among them. Repeats until
    nothing changes, since a removal can make the parent redundant."""
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
    """Removes a node that has at most one child (parked split or inner node): the child moves to
    the node's parent, and the node becomes free. Returns whether it did. TOP is not changed."""
    parts = 0
    parent_index = 0
    for inner in range(node_count(table[LANES])):
        if (table[FREE] >> inner) & 1 == 0 and table[node_at(inner) + PARENT] == node:
            parent_index = node_at(inner) + PARENT
            parts += 1
    # `parent_index` is the word that names `node` as the parent of its last child found.
    left = table[PARKED]
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_NODE] == node:
            parent_index = split_at(table, split) + S_NODE
            parts += 1
    if parts > 1:
        return False
    if parts == 1:
        table[parent_index] = table[node_at(node) + PARENT]
    table[FREE] |= 1 << node
    return True
