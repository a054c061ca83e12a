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
    NONE,
    Split,
    StackNode,
    WarpTable,
    node_count,
    node_of,
    split_of,
)


@jitable
def is_inside(table: WarpTable, node: int, outer: int) -> bool:
    """Returns whether a node (SIMT stack entry) is `outer` or one of its descendants; False if
    `node` is NONE."""
    while node != NONE:
        if node == outer:
            return True
        node = node_of(table, node).parent
    return False


@jitable
def leave_nodes(table: WarpTable, into: Split, left_split: Split) -> None:
    """Moves two splits (sets of lanes) that merge to their innermost common node (SIMT stack entry;
    NONE if they share none); the nodes that they leave no longer expect their lanes."""
    common = into.node
    while common != NONE and not is_inside(table, left_split.node, common):
        common = node_of(table, common).parent
    for split in (into, left_split):
        node = split.node
        while node != common:
            node_of(table, node).expected &= ~split.mask
            node = node_of(table, node).parent
        split.node = common


@jitable
def remove_redundant_nodes(table: WarpTable) -> None:
    """Removes all redundant nodes: no lane has arrived, no other side is pending, and at most one
    child is left. All splits must be parked, as children are counted among them. Repeats until
    nothing changes, since a removal can make the parent redundant."""
    changed = True
    while changed:
        changed = False
        for node in range(node_count(table.lanes)):
            entry = node_of(table, node)
            used = (table.free >> node) & 1 == 0
            if used and entry.arrived == 0 and entry.other_mask == 0:
                changed = remove_if_single(table, node) or changed


@jitable
def remove_if_single(table: WarpTable, node: int) -> bool:
    """Removes a node that has at most one child (parked split or inner node): the child moves to
    the node's parent, and the node becomes free. Returns whether it did. `top` is not changed."""
    parts = 0
    parent_index = 0
    for inner in range(node_count(table.lanes)):
        entry = node_of(table, inner)
        if (table.free >> inner) & 1 == 0 and entry.parent == node:
            parent_index = entry.at + StackNode.parent
            parts += 1
    # `parent_index` is the word that names `node` as the parent of its last child found.
    left = table.parked
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if split_of(table, split).node == node:
            parent_index = split_of(table, split).at + Split.node
            parts += 1
    if parts > 1:
        return False
    if parts == 1:
        table.words[parent_index] = node_of(table, node).parent
    table.free |= 1 << node
    return True
