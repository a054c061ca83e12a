"""The pass that finds where diverged lanes reconverge, where they wait for their turn, and where a
suspended warp resumes.

    @%p bra b5; ...; b6: ...   ->   reconvergence diverged=b4,b5
                                      at b6 waiting=b5

Not handled: nothing; each branch has a reconvergence point, the end of the program at last.
Costs one LLVM block for each point."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.divergence import DivergencePoints
from warploom.ir.warp_ir import Reconvergence, WarpIR


def divergence_points(ir: WarpIR) -> DivergencePoints:
    """Returns the divergence analysis of a kernel for launches of its variant: whether lanes are
    scheduled independently, whether paths are interleaved, and whether a policy orders them."""
    variant = ir.variant
    return DivergencePoints(
        ir.program, variant.independent, variant.interleaves_paths, variant.policy_orders_paths
    )


def barrier_regions(ir: WarpIR) -> frozenset[int]:
    """Returns the blocks between the entry or a barrier and the next barrier, unless they have too
    many instructions (`DivergencePoints.region_versions`); none without barriers, or if no register
    has a shape."""
    return divergence_points(ir).region_versions if ir.shapes else frozenset()


def find_reconvergence(ir: WarpIR) -> WarpIR:
    """Adds, as `reconvergence`, whether the warp can be suspended, the blocks that diverged lanes
    can execute (all, if registers have shapes), and those where they reconverge, wait for their
    turn, and resume (none unless the warp can be suspended)."""
    divergence = divergence_points(ir)
    points = {
        point: tuple(divergence.waiting_blocks[point])
        for point in sorted(divergence.reconvergence_points)
    }
    resumable = divergence.resumable if divergence.suspends else frozenset[int]()
    # Uniform and affine registers may lose that form anywhere, and then all lanes diverge.
    diverged = frozenset(range(ir.program.exit)) if ir.shapes else divergence.diverged
    reconvergence = Reconvergence(divergence.suspends, points, diverged, resumable)
    return replace(ir, reconvergence=reconvergence)
