"""The pass that finds paths from one barrier to the next which run as one loop over the warps of a
thread block, with the accesses that follow from the first warp's.

    b1: bar.sync 0;
    b2: 8: ld.shared.f32 %f1, [%r7]; 9: ld.shared.f32 %f2, [%r7+1024]; 10: add.f32 %f3, %f1, %f2;
        11: st.shared.f32 [%r7], %f3; 12: add.s32 %r8, %r8, 1; 13: setp...; 14: @%p1 bra b1;
    ->   warp_loop site=b1 before=b2,b1 taken=14 shaped=12,13 computed=10 access=8,9,11
           full load shared .f32 lanes=affine<4> members=8+0,9+1024 ...
           full store shared .f32 lanes=affine<4> members=11+0 ...

Not handled: paths with two branches that depend on the thread, atomics, votes, guarded instructions
or loops (`analysis.warp_loops`), and accesses of other forms (`passes.warp_loop_accesses`). Nor are
kernels with a static schedule, which runs all their paths: the loops of single paths would only
serve the few blocks for which it cannot run. Costs checks for the first and last warp; saves a
switch of warps, and for each warp the checks and counts."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.warp_loops import warp_loops
from warploom.ir.warp_ir import WarpIR
from warploom.passes.block_shapes import can_run_warp_loops
from warploom.passes.reconvergence import barrier_regions
from warploom.passes.warp_loop_accesses import planned_warp_loop


def find_warp_loops(ir: WarpIR) -> WarpIR:
    """Adds the paths between barriers that can run as one loop over the warps of a thread block,
    through `barrier_regions`, with their access groups (`warp_loops`): the first path from the
    entry and from each barrier. One with accesses that cannot be planned
    (`planned_warp_loop`) is dropped; changes nothing if the kernel has a static schedule, or
    unless `can_run_warp_loops`."""
    if ir.static_schedule or not can_run_warp_loops(ir):
        return ir
    predicated_bodies, warp_layout = ir.predicated_blocks.values(), ir.variant.warp_layout
    candidates = warp_loops(
        ir.program, barrier_regions(ir), predicated_bodies, warp_layout, ir.uniformity
    )
    planned = (planned_warp_loop(ir, warp_loop) for warp_loop in candidates)
    return replace(ir, warp_loops=tuple(path for path in planned if path is not None))
