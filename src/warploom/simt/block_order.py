"""Orders the blocks of a launch for its scheduler, and cancels clusters that have not begun.

By default blocks begin in grid order. The policy ADVERSARIAL reverses it, RANDOM permutes it by the
seed. `clusterlaunchcontrol.try_cancel` removes clusters from the end of the order (PTX ISA).

    4 blocks   ->   CONVERGE and FAIR: 0 1 2 3, ADVERSARIAL: 3 2 1 0
"""

from __future__ import annotations

from warploom.simt.clusters import cluster_block
from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import Plan
from warploom.simt.split_policy import ADVERSARIAL, RANDOM, hash_pair


@jitable
def block_at(plan: Plan, position: int) -> int:
    """Returns the grid index of the block that begins as number `position` of the launch, by the
    policy (`index_in_order`). With clusters, whole clusters are ordered; the blocks of a cluster
    follow each other by rank."""
    size = plan.cluster
    if size == 1:
        return index_in_order(plan, position, plan.blocks)
    cluster = index_in_order(plan, position // size, plan.blocks // size)
    return cluster_block(plan, cluster, position % size)


@jitable
def index_in_order(plan: Plan, number: int, blocks: int) -> int:
    """Returns which of `blocks` blocks (or clusters) begins as number `number`: the same number,
    the last first under ADVERSARIAL, or a pseudo-random one under RANDOM."""
    if plan.policy == ADVERSARIAL:
        return blocks - 1 - number
    if plan.policy != RANDOM:
        return number
    return permute(plan.seed, number, blocks)


@jitable
def permute(seed: int, number: int, count: int) -> int:
    """Maps `number` by a pseudo-random permutation of the numbers below `count`: a Feistel network
    over the next power of 4, applied again until the result is below `count`."""
    half = 1
    while 1 << 2 * half < count:
        half += 1
    low = (1 << half) - 1
    value = number
    # Cycle walking: iterating a permutation until it is in range permutes the numbers in range.
    while True:
        for turn in range(4):
            left, right = value >> half, value & low
            value = right << half | (left ^ (hash_pair(seed, 8 * right + turn) & low))
        if value < count:
            return value


# ---- cancelled clusters -------------------------------------------------------------------------


@jitable
def last_block(plan: Plan) -> int:
    """Returns the number of blocks in the order that begin: those at the end of it were
    cancelled."""
    return int(plan.blocks - plan.canceled * plan.cluster)


@jitable
def cancel_cluster(plan: Plan) -> int:
    """Cancels the last cluster in the order that has not begun, and returns the grid index of its
    first block, or -1 if there is none. In either case the current block then yields its turn
    (`yields_slot`).

    By default the blocks that still fit on the device cannot be cancelled, as hardware would have
    begun them already; under RANDOM and ADVERSARIAL every block that has not begun can be.
    """
    free_slots = (
        0 if plan.policy in (RANDOM, ADVERSARIAL) else plan.available - plan.resident - plan.held
    )
    begun_blocks = plan.next_block + free_slots
    # Rounds up: a cluster of which any block has begun cannot be cancelled.
    first_free = (begun_blocks + plan.cluster - 1) // plan.cluster * plan.cluster
    # Other blocks run next, so that they can cancel clusters, too.
    plan.yields_slot = 1
    if first_free >= last_block(plan):
        return -1
    plan.canceled += 1
    return block_at(plan, last_block(plan))
