"""The pass that selects the blocks between barriers which get a region version, a copy in which
converged warps run one after the other without a return to the scheduler.

    b0: ...; b1: bar.sync 0; b2: ...; @%p1 bra b1; b3: bar.sync 0; b4: ret;
    ->   block b0 to=b1 ... region_version=yes, and so for b1, b2, b3 and b4

Not handled: kernels without barriers, and regions of more than MOST_IN_REGION_VERSIONS instructions
(`analysis.divergence`). Costs a copy of each block, 8 % of the time to compile in the mean; saves
nothing where all warps go through these blocks in one loop (`passes.warp_loops`), whose checks fail
for few thread blocks: such kernels get none."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.warp_ir import WarpIR
from warploom.passes.reconvergence import barrier_regions


def mark_region_versions(ir: WarpIR) -> WarpIR:
    """Marks the blocks between barriers (`barrier_regions`) that are also emitted as a region
    version (`in_region_version`), a copy in which converged warps run in warp order without a
    return to the scheduler: all, or none if each is on the path of a warp loop."""
    paths = (*ir.along(ir.warp_loops), *ir.along(ir.static_schedule))
    in_loops = {block for path in paths for block in (*path.blocks, *path.body_blocks)}
    regions = barrier_regions(ir)
    marked = frozenset[int]() if regions <= in_loops else regions
    return ir.with_blocks(lambda index, block: replace(block, in_region_version=index in marked))
