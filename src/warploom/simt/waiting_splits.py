"""Splits that are put aside: for their turn, for lanes that a member mask names, at a barrier."""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.warp_table import (
    BLOCK,
    HASHED,
    L_CHANGES,
    L_DIGEST,
    MASK,
    NONE,
    PARKED,
    READY,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_BLOCK,
    S_MASK,
    S_NODE,
    S_ORDER,
    S_STATUS,
    S_STUCK,
    S_VOTE,
    SEQUENCE,
    SLICES,
    TOP,
    VOTE,
    Table,
    split_at,
)


@jitable
def park(
    table: Table, block: int, mask: int, node: int, status: int, argument: int, argument_2: int
) -> int:
    """Put lanes aside that will go on at a block; gives the split's number."""
    split = first_lane(~table[PARKED])
    table[PARKED] |= 1 << split
    at = split_at(table, split)
    table[at + S_MASK] = mask
    table[at + S_BLOCK] = block
    table[at + S_NODE] = node
    table[at + S_STATUS] = status
    table[at + S_ARGUMENT] = argument
    table[at + S_ARGUMENT_2] = argument_2
    table[at + S_ORDER] = table[SEQUENCE]
    table[at + S_STUCK] = NONE
    table[at + S_VOTE] = table[VOTE]
    table[VOTE] = 0
    table[SEQUENCE] += 1
    return split


@jitable
def park_separately(table: Table, block: int, mask: int, node: int) -> None:
    """Put lanes aside one by one."""
    while mask != 0:
        park(table, block, mask & -mask, node, READY, 0, 0)
        mask &= mask - 1


@jitable
def park_at_turn_end(table: Table, digest: int, changes: int, idle: bool) -> None:
    """Park the running split, which has used up its turn. `digest` stands for its registers,
    `changes` for all of memory: if both are as at its last turn's end, it goes round without
    getting anywhere. So it does for now where it is `idle`: it waits for the clock."""
    mask = table[MASK]
    lane = first_lane(mask)
    row = split_at(table, lane)
    same = (
        (table[HASHED] >> lane) & 1
        and table[row + L_DIGEST] == digest
        and table[row + L_CHANGES] == changes
    )
    table[HASHED] |= 1 << lane
    table[row + L_DIGEST] = digest
    table[row + L_CHANGES] = changes
    split = park(table, table[BLOCK], mask, table[TOP], READY, 1, 0)
    if same or idle:
        table[split_at(table, split) + S_STUCK] = changes
    table[SLICES] += 1


@jitable
def parked(table: Table, status: int) -> int:
    """Return the splits, a bit each, that are put aside with a status."""
    found = 0
    left = table[PARKED]
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_STATUS] == status:
            found |= 1 << split
    return found


@jitable
def waiting(table: Table, status: int, argument: int) -> int:
    """Return the splits, a bit each, that wait at a barrier or for a member mask."""
    found = 0
    left = parked(table, status)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_ARGUMENT] == argument:
            found |= 1 << split
    return found


@jitable
def has_ready(table: Table) -> bool:
    """Returns whether some split only waits for its turn."""
    return parked(table, READY) != 0


@jitable
def is_stuck(table: Table, changes: int) -> bool:
    """Returns whether no split that is ready, if any, gets anywhere unless somebody changes
    memory."""
    left = parked(table, READY)
    while left != 0:
        if table[split_at(table, first_lane(left)) + S_STUCK] != changes:
            return False
        left &= left - 1
    return True
