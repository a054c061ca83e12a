"""Parts lanes that go more than two ways, as at an indexed branch.

It is as if they parted two ways again and again: each time the lanes that go where the lowest lane
of the rest goes wait, and the last that are left run first. One node inside the other then gathers
them; the outermost counts for the branch. Both machines call these functions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.simt.convergence import push
from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.warp_table import (
    ARGUMENT,
    ARRIVED,
    LEVEL,
    MASK,
    NONE,
    POINT,
    TOP,
    Table,
    node_at,
)

Words = npt.NDArray[np.int64]


@jitable
def take_indexed_branch(
    table: Table,
    goals: Words,
    on: int,
    ways: Words,
    count: int,
    following: int,
    point: int,
    branch: int,
    level: int,
) -> int:
    """Send the lanes of `on` each to the block of `ways` that its index in `goals` chooses, the
    other running lanes to `following`; gives the block of those that run first.

    NONE where an index chooses none: ARGUMENT then names the lane.
    """
    left = table[MASK]
    while left != 0:
        lane = first_lane(left)
        left &= left - 1
        if (on >> lane) & 1 == 0:
            goals[lane] = following
        elif goals[lane] < count and ways[goals[lane]] != NONE:
            goals[lane] = ways[goals[lane]]
        else:
            table[ARGUMENT] = lane
            return NONE
    return split_targets(table, goals, point, branch, level)


@jitable
def split_targets(table: Table, goals: Words, point: int, branch: int, level: int) -> int:
    """Part the running lanes, which go to the blocks `goals`; gives the block of those that run
    first, which are then the running ones."""
    rest = table[MASK]
    waiting = lanes_to(goals, rest, point)
    if waiting == rest:
        return point
    if waiting != 0:
        top = table[TOP]
        outer = top != NONE and table[node_at(top) + POINT] == point
        if not outer or table[node_at(top) + LEVEL] != level:
            push(table, point, rest, 0, 0, branch, level)
            branch = NONE
        table[node_at(table[TOP]) + ARRIVED] |= waiting
        rest &= ~waiting
    while True:
        block = goals[first_lane(rest)]
        side = lanes_to(goals, rest, block)
        if side == rest:
            table[MASK] = rest
            return block
        push(table, point, rest, block, side, branch, level)
        branch = NONE
        rest &= ~side


@jitable
def lanes_to(goals: Words, mask: int, block: int) -> int:
    """Return the lanes of `mask` that go to a block."""
    lanes = 0
    while mask != 0:
        if goals[first_lane(mask)] == block:
            lanes |= mask & -mask
        mask &= mask - 1
    return lanes
