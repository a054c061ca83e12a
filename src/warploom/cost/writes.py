"""Counts the writes that memory makes of a warp's store, where several lanes name one address.

From compute capability 2.0 on, one lane writes to each address (CUDA C Programming Guide 4.2, F.4.2
and F.4.3). On 1.x, one lane of each half-warp writes to shared memory (F.3.3); what becomes of a
store to global memory the guide does not say, and every lane counts as a write. Which lane's value
lasts is undefined everywhere: `lasting` chooses.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import WRITES
from warploom.simt.lane_counts import (
    Addresses,
    Row,
    count_distinct,
    count_lanes,
    first_lane,
    jitable,
    without_segment,
)
from warploom.simt.schedule_layout import (
    POLICY,
    SEED,
)
from warploom.simt.split_policy import ADVERSARIAL, RANDOM, hash_pair


@jitable
def write_by_address(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Count one write for each address; all are multiples of the size, a power of 2."""
    bits = 0
    while 1 << bits + 1 <= size:
        bits += 1
    row[WRITES] += count_distinct(addresses, mask, bits)


@jitable
def write_by_halves(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Count one write for each address in each half-warp."""
    row[WRITES] += count_distinct(addresses, mask & 0xFFFF, 0)
    row[WRITES] += count_distinct(addresses, mask & 0xFFFF0000, 0)


@jitable
def write_by_lane(addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Count one write for each lane."""
    row[WRITES] += count_lanes(mask)


@jitable
def lasting(addresses: Addresses, mask: int, plan: Row, block: int) -> int:
    """Returns the lanes whose values last, one for each address, by the plan's policy
    (`simt.scheduling`): the highest, the lowest ("adversarial"), or any ("random").

    Lanes store in rising order, so that the highest needs no other lane to be left out.
    """
    policy = plan[POLICY]
    if policy != ADVERSARIAL and policy != RANDOM:
        return mask
    lasting_lanes = 0
    while mask != 0:
        leader = first_lane(mask)
        rest = without_segment(addresses, mask, 0, leader)
        same_address = mask ^ rest
        if policy == RANDOM:
            # Only what does not depend on where the host's memory lies.
            key = int(np.int64(addresses[leader])) % 4096 + 4096 * block
            for _ in range(hash_pair(plan[SEED], key) % count_lanes(same_address)):
                same_address &= same_address - 1
        lasting_lanes |= same_address & -same_address
        mask = rest
    return lasting_lanes
