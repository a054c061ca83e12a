"""The pass that selects the blocks between barriers which get a region version, a copy in which
converged warps run one after the other without a return to the scheduler.

    b0: ...; bar.sync 0;  b1: ...; bar.sync 0;   ->   block b1 region_version=yes

Not handled: kernels without barriers, and regions of more than MOST_IN_REGION_VERSIONS instructions
(`analysis.divergence`). Costs a copy of each block, 8 % of the time to compile in the mean."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.warp_ir import WarpIR
from warploom.passes.reconvergence import divergence_points


def mark_region_versions(ir: WarpIR) -> WarpIR:
    """Marks the blocks between barriers that are also emitted as a region version
    (`in_region_version`), a copy in which converged warps run in warp order without a return to the
    scheduler. These are the blocks between the entry or a barrier and the next barrier, unless they
    have too many instructions (`DivergencePoints.region_versions`); none without barriers, or if no
    register has a shape."""
    region_versions = divergence_points(ir).region_versions if ir.shapes else frozenset[int]()
    return ir.with_blocks(
        lambda index, block: replace(block, in_region_version=index in region_versions)
    )
