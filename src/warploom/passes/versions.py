"""The pass that selects blocks with many accesses guarded by the range cache, which get a fast
version, in which all lanes are on and each group has hit its range cache.

    accesses                                                        accesses fast_version=yes
      load global .f32 lanes=affine<4> members=5+0,6+1024,7+2048 ->   (the same groups)
      store global .f32 lanes=affine<4> members=11+0

Not handled: warps of more than MOST_RUNS runs. Costs a second copy of the block, 5 % of the time to
compile in the mean; saves masks, and the tests of each access on its own (docs/passes.md)."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.access_plans import Guard
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, WarpIR
from warploom.shapes.warp_layout import RUNS

LEAST_FOR_FAST_VERSION = 4
"""The accesses of a block in groups guarded by the range cache, from which on the block has a fast
version: fewer do not pay for the second copy of its code."""

MOST_RUNS = 8
"""The lane runs of a warp up to which blocks have fast versions. With more runs, many warps of a
grid have inactive lanes at its edges and would leave the fast version."""


def make_fast_versions(ir: WarpIR) -> WarpIR:
    """Marks blocks with at least LEAST_FOR_FAST_VERSION (4) accesses in groups guarded by the range
    cache to have a fast version; none in launches whose warps have more than MOST_RUNS (8) runs."""
    if RUNS.get(ir.variant.warp_layout, 1) > MOST_RUNS:
        return ir

    def with_fast_version(_: int, block: BasicBlock) -> BasicBlock:
        """Returns a block marked to have a fast version, if enough of its accesses are guarded by
        the range cache."""
        groups = block.accesses.groups
        cached = (group for group in groups if group.plan.guard is Guard.CACHE)
        # A block with batches of stores has a fast version in any case, and stays as it is.
        if sum(len(group.members) for group in cached) < LEAST_FOR_FAST_VERSION:
            return block
        return replace(block, accesses=BlockAccesses(groups, has_fast_version=True))

    return ir.with_blocks(with_fast_version)
