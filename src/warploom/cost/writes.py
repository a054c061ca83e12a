"""Counts the writes that memory performs for a warp-wide store (a cost), and selects, for its
execution, which lane's value remains if several lanes store to one address.

From compute capability 2.0 on, one lane writes to each address (CUDA C Programming Guide 4.2, F.4.2
and F.4.3). On 1.x, one lane of each half-warp writes to shared memory (F.3.3); for stores to global
memory the guide specifies nothing, and every lane counts as a write. Which lane's value remains is
undefined on all devices; `lasting` selects it by the scheduling policy.

    32 lanes store to one address   ->   2.0 and later: 1 write; 1.x, shared: 2; 1.x, global: 32
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import (
    Addresses,
    Ints,
    count_distinct,
    count_lanes,
    first_lane,
    jitable,
    without_segment,
)
from warploom.simt.schedule_layout import Plan
from warploom.simt.split_policy import ADVERSARIAL, RANDOM, hash_pair


@jitable
def write_by_address(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds one write to `writes` for each distinct address; addresses are multiples of `size`, a
    power of 2."""
    bits = 0
    while 1 << bits + 1 <= size:
        bits += 1
    CostRecord(record, 0).writes += count_distinct(addresses, mask, bits)


@jitable
def write_by_halves(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds one write to `writes` for each distinct address of each half-warp; `size` is not
    needed."""
    costs = CostRecord(record, 0)
    costs.writes += count_distinct(addresses, mask & 0xFFFF, 0)
    costs.writes += count_distinct(addresses, mask & 0xFFFF0000, 0)


@jitable
def write_by_lane(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds one write to `writes` for each active lane; `addresses` and `size` are not needed."""
    CostRecord(record, 0).writes += count_lanes(mask)


@jitable
def lasting(addresses: Addresses, mask: int, schedule: Ints | Plan, block: int) -> int:
    """Returns the mask of lanes whose stores are executed, which decides whose value remains at an
    address that several lanes store to, by the launch's policy (`simt.split_policy`). ADVERSARIAL:
    for each address the lowest lane. RANDOM: for each address one lane, by a hash of seed, `block`
    and address. Any other: all of `mask`, as lanes store in rising order, so that the highest lane
    overwrites the others."""
    plan = Plan(schedule, 0)
    policy = plan.policy
    if policy != ADVERSARIAL and policy != RANDOM:
        return mask
    lasting_lanes = 0
    while mask != 0:
        leader = first_lane(mask)
        # Segments of one byte: exactly the lanes with the leader's address.
        other_lanes = without_segment(addresses, mask, 0, leader)
        same_address = mask ^ other_lanes
        if policy == RANDOM:
            # Only the bits within a page: the rest depends on where the host allocated the memory.
            key = int(np.int64(addresses[leader])) % 4096 + 4096 * block
            # Removes some of the lowest lanes; the lowest remaining one is selected.
            for _ in range(hash_pair(plan.seed, key) % count_lanes(same_address)):
                same_address &= same_address - 1
        lasting_lanes |= same_address & -same_address
        mask = other_lanes
    return lasting_lanes
