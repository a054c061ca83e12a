"""Splits that wait for the lanes of a member mask, and join."""

from __future__ import annotations

from warploom.rules.distinct import first_lane, jitable
from warploom.rules.parking import parked, waiting
from warploom.rules.warp_table import (
    AT_SYNC,
    EXPECTED,
    LIVE,
    NONE,
    PARENT,
    PARKED,
    READY,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_BLOCK,
    S_MASK,
    S_NODE,
    S_STATUS,
    Table,
    node_at,
    split_at,
)


@jitable
def join_synced(table: Table) -> None:
    """Merge the splits that wait at one instruction for the lanes of one member mask, where all of
    these that live are there; lanes that wait at different instructions only stop waiting."""
    left = parked(table, AT_SYNC)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        # Splits that an earlier one has taken along are none any more.
        if (parked(table, AT_SYNC) >> split) & 1:
            members = table[split_at(table, split) + S_ARGUMENT]
            if members & table[LIVE] & ~synced_lanes(table, members) == 0:
                merge_synced(table, split, members)


@jitable
def synced_lanes(table: Table, members: int) -> int:
    """The lanes that wait for this member mask."""
    lanes = 0
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        lanes |= table[split_at(table, first_lane(left)) + S_MASK]
        left &= left - 1
    return lanes


@jitable
def merge_synced(table: Table, first: int, members: int) -> None:
    """All that wait for a member mask are ready; those at one block with split `first` join it."""
    into = split_at(table, first)
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        at = split_at(table, split)
        table[at + S_STATUS] = READY
        table[at + S_ARGUMENT] = 0
        table[at + S_ARGUMENT_2] = 1
        if split != first and table[at + S_BLOCK] == table[into + S_BLOCK]:
            leave_nodes(table, into, at)
            table[into + S_MASK] |= table[at + S_MASK]
            table[PARKED] &= ~(1 << split)


@jitable
def leave_nodes(table: Table, into: int, at: int) -> None:
    """Two splits that join go on inside the innermost node that both are in; what they leave no
    longer expects them."""
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
def is_inside(table: Table, node: int, outer: int) -> bool:
    """Whether a node is another or lies in it."""
    while node != NONE:
        if node == outer:
            return True
        node = table[node_at(node) + PARENT]
    return False
