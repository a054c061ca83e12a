"""Decides, by the launch's policy, whether asynchronous operations (groups of `wgmma` products, and
copies) complete at issue or at the wait for them; limits the incomplete products of a warp.

`wgmma.mma_async` may complete at any time from its issue to the wait for its group (PTX ISA,
"wgmma.wait_group"). By default it completes at issue. Under the policy ADVERSARIAL it completes as
late as allowed: registers and shared memory are read, and results are written, only then, which
exposes missing waits. Under RANDOM the seed chooses per warp. Asynchronous copies follow the same
choice (`warploom.asynchronous`).
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.simt.schedule_layout import Plan
from warploom.simt.split_policy import ADVERSARIAL, RANDOM

CAPACITY = 256
"""The largest number of incomplete products of a warp; one more is a fault."""


@jitable
def completes_late(plan: Plan, block: int, warp: int) -> bool:
    """Returns whether a warp's asynchronous operations complete only at its wait for them: always
    under ADVERSARIAL; under RANDOM if the sum of seed, `block` (grid index) and `warp` (number in
    the block) is odd; never under other policies."""
    if plan.policy == ADVERSARIAL:
        return True
    return plan.policy == RANDOM and (plan.seed + block + warp) % 2 == 1
