"""Counts the passes of a warp-wide atomic operation (a cost), and orders the lanes of its
execution.

Every lane's operation is performed; those on one address are serialized in an order that is
undefined (CUDA C++ Programming Guide 12.9, "SIMT Architecture", on lanes that update one location
atomically) and that `lane_order` chooses. So 32 lanes on one counter need 32 passes, on 32 counters
one. The rule of the state space counts the memory traffic.

    atom.shared.add.u32, 8 lanes at 0x100, 24 at 0x104   ->   24 passes
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import CostRecord
from warploom.cost.overlap import count_coinciding
from warploom.simt.lane_counts import Addresses, Ints, first_lane, jitable
from warploom.simt.schedule_layout import Plan
from warploom.simt.split_policy import ADVERSARIAL, RANDOM, hash_pair

WORD_BYTES = 4


@jitable
def count_passes(addresses: Addresses, mask: int, size: int, record: Ints) -> None:
    """Adds the passes of an atomic, the largest number of active lanes on one address, to the
    record's `passes`. Addresses are multiples of `size`."""
    CostRecord(record, 0).passes += count_most_on_one(addresses, mask, size)


@jitable
def count_most_on_one(addresses: Addresses, mask: int, size: int) -> int:
    """Returns the largest number of active lanes on one address; `mask` is not 0. While addresses
    rise from lane to lane, it is the longest run of equal ones, so one pass suffices; in any other
    order, `count_most_scattered` counts lanes in one segment of `size` bytes, rounded up to a power
    of two."""
    most = 0
    run = 0
    previous = addresses[first_lane(mask)]
    for lane in range(32):
        if (mask >> lane) & 1:
            # Where addresses fall once, equal ones may be apart: the runs so far decide nothing.
            if addresses[lane] < previous:
                return count_most_scattered(addresses, mask, size)
            run = run + 1 if addresses[lane] == previous else 1
            most = max(most, run)
            previous = addresses[lane]
    return most


@jitable
def count_most_scattered(addresses: Addresses, mask: int, size: int) -> int:
    """Returns the largest number of active lanes on one address, for lanes in any order:
    `count_coinciding` in segments of `size` bytes, rounded up to a power of two, of which addresses
    are multiples; if it cannot count them (0), compares the addresses of all pairs of lanes,
    branchless so that LLVM vectorizes it."""
    shift = 0
    while (1 << shift) < size:
        shift += 1
    most = count_coinciding(addresses, mask, shift)
    if most != 0:
        return int(most)
    for lane in range(32):
        same_address = 0
        for compared in range(32):
            same_address += ((mask >> compared) & 1) & (addresses[compared] == addresses[lane])
        most = max(most, same_address & -((mask >> lane) & 1))
    return int(most)


@jitable
def lane_order(addresses: Addresses, mask: int, schedule: Ints | Plan, block: int) -> int:
    """Returns the order in which lanes perform an atomic, by the launch's policy
    (`simt.split_policy`), packed as one number `order`: the k-th lane is (order + k * (order >> 5))
    % 32. Lanes rise by default and fall under ADVERSARIAL; under RANDOM, first lane and step (odd)
    are hashed from the seed, the block and the offset in its 4 KiB page of the first active lane's
    address."""
    plan = Plan(schedule, 0)
    if plan.policy == ADVERSARIAL:
        # Begins at lane 31 with the step 31, which is -1 modulo 32.
        return 31 + 32 * 31
    if plan.policy != RANDOM:
        return 32
    # Only the bits within a page: the rest depends on where the host allocated the memory, and a
    # seed must give the same order in every run.
    key = int(np.int64(addresses[first_lane(mask)])) % 4096 + 4096 * block
    hash_bits = hash_pair(plan.seed, key) % 512
    return hash_bits % 32 + 32 * (2 * (hash_bits // 32) + 1)  # an odd step visits every lane
