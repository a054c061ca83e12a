"""Executes divergent branches with more than two targets (`brx.idx`) on a warp's table.

They work like a sequence of two-way branches: each step splits off the lanes with the same target
as the lowest remaining lane, which wait in a node of their own; the last group runs first. Only the
outermost node counts as a divergent branch in the counters. Both machines call these functions.

    targets of lanes 0-3: b5 b7 b5 b9
    nodes, outermost first: other_block=b5 other_mask=0b0101, other_block=b7 other_mask=0b0010
    running: b9 mask=0b1000
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.simt.convergence import push
from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.warp_table import NONE, WarpTable, node_of

Words = npt.NDArray[np.int64]


@jitable
def diverge_by_index(
    table: WarpTable,
    lane_targets: Words,
    on: int,
    branch_targets: Words,
    count: int,
    following: int,
    point: int,
    branch: int,
    level: int,
) -> int:
    """Executes `brx.idx`: branches the lanes `on` to the basic blocks that their indices select,
    and the other running lanes to the block `following`. All but one group of lanes with one target
    wait in nodes of the SIMT stack. Returns the block of the lanes that run first.

    `lane_targets` holds the index of each lane, and is overwritten with its target block;
    `branch_targets` are the `count` blocks of the instruction. Returns NONE if an index has no
    target, with the lane in `argument`. `point`, `branch`, `level` as in `push`."""
    left = table.mask
    while left != 0:
        lane = first_lane(left)
        left &= left - 1
        if (on >> lane) & 1 == 0:
            lane_targets[lane] = following
        elif lane_targets[lane] < count and branch_targets[lane_targets[lane]] != NONE:
            lane_targets[lane] = branch_targets[lane_targets[lane]]
        else:
            table.argument = lane
            return NONE
    return split_targets(table, lane_targets, point, branch, level)


@jitable
def split_targets(
    table: WarpTable, lane_targets: Words, point: int, branch: int, level: int
) -> int:
    """Splits the running lanes by the target block of each lane (`lane_targets`): pushes a node for
    each target but the last. Lanes that branch to the reconvergence point `point` are marked as
    arrived: in the top node if that has this point and `level`, else in a new one. Only the first
    node pushed has `branch`, the others NONE. Makes the lanes with the last target the running
    split, and returns their block; if all branch to `point`, returns that and changes nothing."""
    remaining = table.mask
    # Lanes that branch to the reconvergence point have nothing to execute: they have arrived.
    arriving = lanes_to(lane_targets, remaining, point)
    if arriving == remaining:
        return point
    if arriving != 0:
        # In a loop the enclosing node may have the same point: reusing it keeps the stack flat.
        top = table.top
        outer = top != NONE and node_of(table, top).point == point
        if not outer or node_of(table, top).level != level:
            push(table, point, remaining, 0, 0, branch, level)
            # Only the first node pushed names the branch, so that it counts as one divergent
            # branch.
            branch = NONE
        node_of(table, table.top).arrived |= arriving
        remaining &= ~arriving
    while True:
        block = lane_targets[first_lane(remaining)]
        group = lanes_to(lane_targets, remaining, block)
        if group == remaining:
            table.mask = remaining
            return block
        push(table, point, remaining, block, group, branch, level)
        branch = NONE
        remaining &= ~group


@jitable
def lanes_to(lane_targets: Words, mask: int, block: int) -> int:
    """Returns the lanes of `mask` whose target is `block`."""
    lanes = 0
    while mask != 0:
        if lane_targets[first_lane(mask)] == block:
            lanes |= mask & -mask
        mask &= mask - 1
    return lanes
