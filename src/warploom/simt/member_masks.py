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
from warploom.simt.warp_table import AT_SYNC, READY, WarpTable, split_of


@jitable
def join_synced(table: WarpTable) -> None:
    """For each member mask for which parked splits (lanes that execute together) wait: releases
    them if the mask is complete, that is, if all of its lanes that have not exited wait for it. Of
    the splits of one mask, those in the basic block of the lowest-numbered one merge with it; the
    others only become ready. If any were released, removes SIMT stack nodes that became
    redundant."""
    merged = False
    left = parked(table, AT_SYNC)
    while left != 0:
        split = first_lane(left)
        members = split_of(table, split).argument
        # A member mask is decided once, for all splits that wait for it.
        left &= ~waiting(table, AT_SYNC, members)
        if members & table.live & ~synced_lanes(table, members) == 0:
            merge_synced(table, split, members)
            merged = True
    if merged:
        remove_redundant_nodes(table)


@jitable
def synced_lanes(table: WarpTable, members: int) -> int:
    """Returns the mask of the lanes of all parked splits that wait for the member mask
    `members`."""
    lanes = 0
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        lanes |= split_of(table, first_lane(left)).mask
        left &= left - 1
    return lanes


@jitable
def merge_synced(table: WarpTable, target: int, members: int) -> None:
    """Makes all splits that wait for the member mask `members` ready, and merges those in the same
    basic block as split `target` into it, in their common SIMT stack node. `argument_2` of
    each marks that it need not wait again at its instruction."""
    into = split_of(table, target)
    left = waiting(table, AT_SYNC, members)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        record = split_of(table, split)
        record.status = READY
        record.argument = 0
        record.argument_2 = 1
        if split != target and record.block == into.block:
            leave_nodes(table, into, record)
            into.mask |= record.mask
            table.parked &= ~(1 << split)
