"""Counts the rounds of a warp-wide atomic operation, and orders its lanes.

Every lane's operation is performed, those on one address one after the other, in an order that is
undefined (CUDA C++ Programming Guide 12.9, "SIMT Architecture", on lanes that update one location
atomically): `lane_order` chooses. The memory traffic is for the rule of the space.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import PASSES
from warploom.cost.overlap import count_coinciding
from warploom.simt.lane_counts import Addresses, Row, first_lane, jitable
from warploom.simt.schedule_layout import (
    POLICY,
    SEED,
)
from warploom.simt.split_policy import ADVERSARIAL, RANDOM, scrambled

WORD_BYTES = 4


@jitable
def count_passes(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Adds the largest number of lanes on one address, aligned to `size`."""
    row[PASSES] += count_most_on_one(addresses, mask, size)


@jitable
def count_most_on_one(addresses: Addresses, mask: int, size: int) -> int:
    """Return the longest run of equal addresses, where lanes are in rising order of address."""
    most = 0
    run = 0
    previous = addresses[first_lane(mask)]
    for lane in range(32):
        if (mask >> lane) & 1:
            if addresses[lane] < previous:
                return count_most_scattered(addresses, mask, size)
            run = run + 1 if addresses[lane] == previous else 1
            most = max(most, run)
            previous = addresses[lane]
    return most


@jitable
def count_most_scattered(addresses: Addresses, mask: int, size: int) -> int:
    """Return the same for lanes in any order. Where they are far apart it compares all pairs,
    without a branch, so that it becomes vector code."""
    shift = 0
    while (1 << shift) < size:
        shift += 1
    most = count_coinciding(addresses, mask, shift)
    if most != 0:
        return int(most)
    for lane in range(32):
        alike = 0
        for other in range(32):
            alike += ((mask >> other) & 1) & (addresses[other] == addresses[lane])
        most = max(most, alike & -((mask >> lane) & 1))
    return int(most)


@jitable
def lane_order(addresses: Addresses, mask: int, plan: Row, block: int) -> int:
    """Return the order in which lanes have their turn, by the plan's policy (`simt.scheduling`):
    turn k is lane (order + k * (order >> 5)) % 32. Rising, falling ("adversarial"), or any
    ("random")."""
    if plan[POLICY] == ADVERSARIAL:
        return 31 + 32 * 31
    if plan[POLICY] != RANDOM:
        return 32
    # Only what does not depend on where the host's memory lies.
    place = int(np.int64(addresses[first_lane(mask)])) % 4096 + 4096 * block
    choice = scrambled(plan[SEED], place) % 512
    return choice % 32 + 32 * (2 * (choice // 32) + 1)  # an odd step comes to every lane
