"""The pass that finds kernels whose barrier regions are known in number and order before the
launch, so that one call runs a block through all of them, each as a warp loop.

    part[t] = a[t];
    for (s = 128; s > 0; s /= 2) { __syncthreads(); if (t < s) part[t] += part[t + s]; }
    __syncthreads(); if (t == 0) c[blockIdx.x] = part[0];
    ->   ten lines scheduled_loop: up to the first barrier, eight iterations, and from the last
         barrier to the end

Not handled: loop bounds from parameters or memory (`analysis.static_schedule`). Costs the checks of
all loops before the first; saves the context of each warp at each barrier."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.static_schedule import static_schedule_of
from warploom.ir.loops import StepKind, WarpLoop
from warploom.ir.options import Pass
from warploom.ir.warp_ir import WarpIR
from warploom.passes.block_shapes import can_run_warp_loops
from warploom.passes.warp_loop_accesses import planned_warp_loop

MOST_ACCESSES = 12
"""Accesses of a warp loop in a static schedule of several, at most. The addresses of all are looked
up before the first warp loop begins, and stored until it runs: more than the host has registers for
cost as much as a static schedule saves at a barrier, where no warp stores its registers in its
context. A moving mean of 16 loads executed 1.06 times the instructions in a static schedule."""


def find_static_schedule(ir: WarpIR) -> WarpIR:
    """Adds the sequence of warp loops from begin to end of the kernel, with their access groups, as
    `static_schedule`. Adds none if the sequence is not known at compile time, if one of several
    loops has more than MOST_ACCESSES (12) accesses, or if a loop's accesses cannot be planned; nor
    without the pass `warp-loops`, or unless `can_run_warp_loops`."""
    if not (can_run_warp_loops(ir) and ir.variant.does(Pass.WARP_LOOPS)):
        return ir
    warp_layout, size = ir.variant.warp_layout, ir.variant.size
    schedule = static_schedule_of(ir.program, warp_layout, ir.uniformity, size)
    if len(schedule) > 1 and max(map(_accesses_of, schedule)) > MOST_ACCESSES:
        return ir
    planned = [planned_warp_loop(ir, warp_loop) for warp_loop in schedule]
    paths = tuple(path for path in planned if path is not None)
    # All or none: one call runs a block from its begin to its end, and cannot leave a region in
    # between to the scheduler.
    return replace(ir, static_schedule=paths if len(paths) == len(planned) else ())


def _accesses_of(warp_loop: WarpLoop) -> int:
    """Returns how many accesses a warp loop has."""
    return sum(kind is StepKind.ACCESS for kind in warp_loop.kinds.values())
