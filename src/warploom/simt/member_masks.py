"""Merges splits of a warp that wait for the lanes of a member mask, as in `__syncwarp(mask)`; the
scheduler of both machines calls it.

From compute capability 7.0 on, `bar.warp.sync`, `shfl.sync` and others suspend a split until all
live lanes of their member mask have arrived (PTX ISA, bar.warp.sync).

    split A: lanes 0-15, AT_SYNC, mask 0xffffffff, block b4
    split B: lanes 16-31, AT_SYNC, mask 0xffffffff, block b4   ->   one split, lanes 0-31, READY
"""

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
    """Releases the parked splits (lanes that execute together) whose member mask is complete: all
    its live lanes wait for it. Those in the basic block of the lowest-numbered one merge with
    it; the others only become ready. If any were released, removes SIMT stack nodes that became
    redundant."""
    merged = False
    left = parked(table, AT_SYNC)
    while left != 0:
        split = first_lane(left)
        members = table[split_at(table, split) + S_ARGUMENT]
        # A member mask is decided once, for all splits that wait for it.
        left &= ~waiting(table, AT_SYNC, members)
        if members & table[LIVE] & ~synced_lanes(table, members) == 0:
            merge_synced(table, split, members)
            merged = True
    if merged:
        remove_redundant_nodes(table)


@jitable
def synced_lanes(table: Table, members: int) -> int:
    """Returns the mask of the lanes of all parked splits that wait for the member mask
    `members`."""
    lanes = 0
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        lanes |= table[split_at(table, first_lane(left)) + S_MASK]
        left &= left - 1
    return lanes


@jitable
def merge_synced(table: Table, target: int, members: int) -> None:
    """Makes all splits that wait for the member mask `members` ready, and merges those in the same
    basic block as split `target` into it, in their common SIMT stack node. S_ARGUMENT_2 of
    each marks that it need not wait again at its instruction."""
    into = split_at(table, target)
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        at = split_at(table, split)
        table[at + S_STATUS] = READY
        table[at + S_ARGUMENT] = 0
        table[at + S_ARGUMENT_2] = 1
        if split != target and table[at + S_BLOCK] == table[into + S_BLOCK]:
            leave_nodes(table, into, at)
            table[into + S_MASK] |= table[at + S_MASK]
            table[PARKED] &= ~(1 << split)
