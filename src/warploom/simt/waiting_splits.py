"""Parks splits (sets of lanes) of a warp in its table: suspends them until their turn, or for a
member mask or a barrier.

A parked split is a record in the warp's table (`simt.warp_table`): its lanes, the basic block at
which it resumes, and what it waits for.
"""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.warp_table import NONE, READY, WarpTable, split_of


@jitable
def park(
    table: WarpTable, block: int, mask: int, node: int, status: int, argument: int, argument_2: int
) -> int:
    """Parks the lanes `mask`, which resume at basic block `block` inside the SIMT stack node
    `node`: records them as a split in the warp's table, with the running split's `vote`, which is
    cleared. `status` is what they wait for: their turn (`argument`: 1 if they have used up one), a
    member mask (`argument`; `argument_2`: the instruction), or a barrier (`argument`; `argument_2`:
    the threads that it awaits). Returns the number of the split."""
    # Each split has a lane of its own, so a warp never has more splits than records.
    split = first_lane(~table.parked)
    table.parked |= 1 << split
    record = split_of(table, split)
    record.mask = mask
    record.block = block
    record.node = node
    record.status = status
    record.argument = argument
    record.argument_2 = argument_2
    record.order = table.sequence
    record.stuck = NONE
    record.vote = table.vote
    table.vote = 0
    table.sequence += 1
    return split


@jitable
def park_separately(table: WarpTable, block: int, mask: int, node: int) -> None:
    """Parks each lane of `mask` as a ready split of its own, at basic block `block` inside
    `node`."""
    while mask != 0:
        park(table, block, mask & -mask, node, READY, 0, 0)
        mask &= mask - 1


@jitable
def park_at_turn_end(table: WarpTable, digest: int, changes: int, waits_for_clock: bool) -> None:
    """Parks the running split (lanes that execute together) at the end of its turn as ready, with
    `argument` 1, and counts the turn (`slices`); marks the split as stuck (`stuck`: `changes`) if
    it makes no progress.

    `digest` is a hash of its registers, `changes` the number of changes of memory. If both equal
    those at the end of the last turn of its lowest lane, the split repeats the same instructions
    until another thread changes memory. A split that waits for the clock (`waits_for_clock`) counts
    as stuck, too.
    """
    mask = table.mask
    # The hash is recorded for the lowest lane, as the number of a split changes when it is parked.
    lane = first_lane(mask)
    record = split_of(table, lane)
    same = (table.hashed >> lane) & 1 and record.digest == digest and record.changes == changes
    table.hashed |= 1 << lane
    record.digest = digest
    record.changes = changes
    split = park(table, table.block, mask, table.top, READY, 1, 0)
    if same or waits_for_clock:
        split_of(table, split).stuck = changes
    table.slices += 1


@jitable
def parked(table: WarpTable, status: int) -> int:
    """Returns the parked splits (lanes that execute together) with a status (READY, AT_SYNC,
    AT_BARRIER) as a bit mask of their numbers."""
    splits = 0
    left = table.parked
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if split_of(table, split).status == status:
            splits |= 1 << split
    return splits


@jitable
def waiting(table: WarpTable, status: int, argument: int) -> int:
    """Returns, as a bit mask of their numbers, the parked splits (lanes that execute together) with
    a status whose `argument`, a barrier's number or a member mask, is `argument`."""
    splits = 0
    left = parked(table, status)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        if split_of(table, split).argument == argument:
            splits |= 1 << split
    return splits


@jitable
def has_ready(table: WarpTable) -> bool:
    """Returns whether some parked split (lanes that execute together) is ready to run."""
    return parked(table, READY) != 0


@jitable
def is_stuck(table: WarpTable, changes: int) -> bool:
    """Returns whether all ready splits (lanes that execute together) of a warp are stuck: they
    repeat the same instructions until another thread changes memory. True if none is ready.
    `changes` is the current number of changes."""
    left = parked(table, READY)
    while left != 0:
        # `stuck` has the number of changes when the split was parked: if memory has changed since,
        # it may get further in another turn.
        if split_of(table, first_lane(left)).stuck != changes:
            return False
        left &= left - 1
    return True
