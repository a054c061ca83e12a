"""The pass that finds where diverged lanes reconverge, where they wait for their turn, and where a
suspended warp resumes.

    b0: setp.eq.u32 %p1, %r2, 0; @%p1 bra b2;
    b1: mov.u32 %r3, 1; bra b3;
    b2: mov.u32 %r3, %r5;
    b3: st.global.u32 [%rd3], %r3; ret;
    ->   reconvergence diverged=b0,b1,b2,b3
           at b3 waiting=b2               lanes that branch wait at b2 while the others run b1
           at exit

In a kernel with barriers or loops the line also has `suspends=yes` and the blocks at which a warp
may resume: those after barriers, loop headers and reconvergence points (`resumable=b1,b3`).

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
