"""Says when the products of a warp group are complete: `wgmma.mma_async` (PTX ISA,
"wgmma.wait_group").

They may complete at any time from when they are issued until a wait for their group ends. By
default they do at once. Where the policy is "adversarial" they do as late as they may: what they
read of registers and shared memory is read then, and their sums are there only then. Where it is
"random" the seed chooses for each warp between the two.
"""

from __future__ import annotations

from warploom.simt.lane_counts import Row, jitable
from warploom.simt.schedule_layout import POLICY, SEED
from warploom.simt.split_policy import ADVERSARIAL, RANDOM

CAPACITY = 256
"""How many products of one warp are kept for later; one more is a fault."""


@jitable
def completes_late(plan: Row, block: int, warp: int) -> bool:
    """Returns whether a warp's products complete only where it waits for them."""
    if plan[POLICY] == ADVERSARIAL:
        return True
    return plan[POLICY] == RANDOM and (plan[SEED] + block + warp) % 2 == 1
