"""The order in which the blocks of a launch begin, and work of blocks that others take over.

Sources: PTX ISA, "clusterlaunchcontrol.try_cancel"; the order is a policy's choice.
"""

from __future__ import annotations

from warploom.simt.clusters import cluster_block
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import (
    BLOCKS,
    CANCELED,
    CLUSTER,
    GIVES_WAY,
    HELD,
    NEXT_BLOCK,
    POLICY,
    RESIDENT,
    SEED,
    SLOTS,
    Words,
)
from warploom.simt.split_policy import ADVERSARIAL, RANDOM, scrambled


@jitable
def block_at(plan: Words, place: int) -> int:
    """Return the block at a place of the order: in order, backwards, or by a stride that misses
    none; cluster by cluster, where there are clusters of several blocks."""
    size = plan[CLUSTER]
    if size == 1:
        return turn_of(plan, place, plan[BLOCKS])
    cluster = turn_of(plan, place // size, plan[BLOCKS] // size)
    return cluster_block(plan, cluster, place % size)


@jitable
def turn_of(plan: Words, number: int, blocks: int) -> int:
    """Return which of so many blocks, or clusters, begins as the one of that number."""
    if plan[POLICY] == ADVERSARIAL:
        return blocks - 1 - number
    if plan[POLICY] != RANDOM:
        return number
    return permuted(plan[SEED], number, blocks)


@jitable
def permuted(seed: int, number: int, count: int) -> int:
    """Return where a permutation of the numbers below `count` takes one of them: a Feistel network
    over the next power of 4, gone through again until the number is below `count`."""
    half = 1
    while 1 << 2 * half < count:
        half += 1
    low = (1 << half) - 1
    value = number
    while True:
        for turn in range(4):
            left, right = value >> half, value & low
            value = right << half | (left ^ (scrambled(seed, 8 * right + turn) & low))
        if value < count:
            return value


# ---- work that is taken over --------------------------------------------------------------------


@jitable
def last_block(plan: Words) -> int:
    """Return behind which place of the order no block begins: the others' work was taken over."""
    return int(plan[BLOCKS] - plan[CANCELED] * plan[CLUSTER])


@jitable
def cancel_cluster(plan: Words) -> int:
    """Cancel the last cluster that has not begun and return its first block, or -1 where there is
    none.

    In the default order all blocks that the device holds at once begin first, as hardware begins
    them; under the policies that mix blocks any block that has not begun can be cancelled.
    """
    free = 0 if plan[POLICY] in (RANDOM, ADVERSARIAL) else plan[SLOTS] - plan[RESIDENT] - plan[HELD]
    begun = plan[NEXT_BLOCK] + free
    whole = (begun + plan[CLUSTER] - 1) // plan[CLUSTER] * plan[CLUSTER]
    plan[GIVES_WAY] = 1
    if whole >= last_block(plan):
        return -1
    plan[CANCELED] += 1
    return block_at(plan, last_block(plan))
