"""Parks splits (sets of lanes) of a warp in its table: suspends them until their turn, or for a
member mask or a barrier.

A parked split is a record in the warp's table (`simt.warp_table`): its lanes, the basic block at
which it resumes, and what it waits for.
"""

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
    """Parks the lanes `mask`, which resume at basic block `block` inside the SIMT stack node
    `node`: records them as a split in the warp's table, with the running split's VOTE, which is
    cleared. `status` is what they wait for: their turn (`argument`: 1 if they have used up one), a
    member mask (`argument`; `argument_2`: the instruction), or a barrier (`argument`; `argument_2`:
    the threads that it awaits). Returns the number of the split."""
    # Each split has a lane of its own, so a warp never has more splits than records.
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
    """Parks each lane of `mask` as a ready split of its own, at basic block `block` inside
    `node`."""
    while mask != 0:
        park(table, block, mask & -mask, node, READY, 0, 0)
        mask &= mask - 1


@jitable
def park_at_turn_end(table: Table, digest: int, changes: int, waits_for_clock: bool) -> None:
    """Parks the running split at the end of its turn as ready, with S_ARGUMENT 1, and counts the
    turn (SLICES); marks the split as stuck (S_STUCK: `changes`) if it makes no progress.

    `digest` is a hash of its registers, `changes` the number of changes of memory. If both equal
    those at the end of the last turn of its lowest lane, the split repeats the same instructions
    until another thread changes memory. A split that waits for the clock (`waits_for_clock`) counts
    as stuck, too.
    """
    mask = table[MASK]
    # The hash is recorded for the lowest lane, as the number of a split changes when it is parked.
    lane = first_lane(mask)
    record = split_at(table, lane)
    same = (
        (table[HASHED] >> lane) & 1
        and table[record + L_DIGEST] == digest
        and table[record + L_CHANGES] == changes
    )
    table[HASHED] |= 1 << lane
    table[record + L_DIGEST] = digest
    table[record + L_CHANGES] = changes
    split = park(table, table[BLOCK], mask, table[TOP], READY, 1, 0)
    if same or waits_for_clock:
        table[split_at(table, split) + S_STUCK] = changes
    table[SLICES] += 1


@jitable
def parked(table: Table, status: int) -> int:
    """Returns the parked splits with a status (READY, AT_SYNC, AT_BARRIER) as a bit mask of their
    numbers."""
    splits = 0
    left = table[PARKED]
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_STATUS] == status:
            splits |= 1 << split
    return splits


@jitable
def waiting(table: Table, status: int, argument: int) -> int:
    """Returns, as a bit mask of their numbers, the parked splits with a status whose S_ARGUMENT, a
    barrier's number or a member mask, is `argument`."""
    splits = 0
    left = parked(table, status)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if table[split_at(table, split) + S_ARGUMENT] == argument:
            splits |= 1 << split
    return splits


@jitable
def has_ready(table: Table) -> bool:
    """Returns whether some split is ready to run."""
    return parked(table, READY) != 0


@jitable
def is_stuck(table: Table, changes: int) -> bool:
    """Returns whether all ready splits are stuck: none progresses unless another thread changes
    memory; also True if none is ready. `changes` is the current number of changes."""
    left = parked(table, READY)
    while left != 0:
        if table[split_at(table, first_lane(left)) + S_STUCK] != changes:
            return False
        left &= left - 1
    return True
