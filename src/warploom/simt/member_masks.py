"""Splits that wait for the lanes of a member mask, and join."""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.simt_stack import leave_nodes, remove_redundant_nodes
from warploom.simt.waiting_splits import parked, waiting
from warploom.simt.warp_table import (
    AT_SYNC,
    LIVE,
    PARKED,
    READY,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_BLOCK,
    S_MASK,
    S_STATUS,
    Table,
    split_at,
)


@jitable
def join_synced(table: Table) -> None:
    """Merge the splits that wait at one instruction for the lanes of one member mask, where all of
    these that live are there; lanes that wait at different instructions only stop waiting."""
    merged = False
    left = parked(table, AT_SYNC)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        # Splits that an earlier one has taken along are none any more.
        if (parked(table, AT_SYNC) >> split) & 1:
            members = table[split_at(table, split) + S_ARGUMENT]
            if members & table[LIVE] & ~synced_lanes(table, members) == 0:
                merge_synced(table, split, members)
                merged = True
    if merged:
        remove_redundant_nodes(table)


@jitable
def synced_lanes(table: Table, members: int) -> int:
    """Return the lanes that wait for this member mask."""
    lanes = 0
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        lanes |= table[split_at(table, first_lane(left)) + S_MASK]
        left &= left - 1
    return lanes


@jitable
def merge_synced(table: Table, first: int, members: int) -> None:
    """Make all ready that wait for a member mask; those at one block with split `first` join it."""
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
