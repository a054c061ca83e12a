"""Passes that add how the warps of a thread block get from one barrier to the next: region
versions, warp loops, and static schedules."""

from __future__ import annotations

from dataclasses import replace

from warploom.abi.pieces import frame_pieces
from warploom.analysis.static_schedule import static_schedule_of
from warploom.analysis.warp_loops import block_operand_shapes, warp_loops
from warploom.ir.loops import StepKind, WarpLoop
from warploom.ir.options import Pass
from warploom.ir.warp_ir import WarpIR
from warploom.passes.divergence import divergence_points
from warploom.passes.warp_loop_accesses import planned_warp_loop
from warploom.program.program import Program
from warploom.shapes.operand_shapes import BLOCK_LAYOUT

MOST_ACCESSES = 12
"""Accesses of a warp loop in a static schedule of several, at most. The addresses of all are looked
up before the first warp loop begins, and kept until it runs: more than the host has registers for
cost as much as a static schedule saves at a barrier, where no warp stores its registers in its
context. A moving mean of 16 loads took 1.06 times the instructions in a static schedule."""


def mark_region_versions(ir: WarpIR) -> WarpIR:
    """Marks the blocks between barriers that are also emitted as a region version, a copy in which
    converged warps run in warp order without a return to the scheduler; none without uniformity
    analysis."""
    region_versions = divergence_points(ir).region_versions if ir.shapes else frozenset[int]()
    return ir.with_blocks(
        lambda index, block: replace(block, in_region_version=index in region_versions)
    )


def find_block_shapes(ir: WarpIR) -> WarpIR:
    """Adds the shapes of registers across the whole thread block (`block_shapes`), which warp loops
    need; changes nothing where code cannot run warp loops."""
    if not _can_run_warp_loops(ir):
        return ir
    return replace(ir, block_shapes=block_operand_shapes(ir.program, ir.variant.warp_layout).shapes)


def find_warp_loops(ir: WarpIR) -> WarpIR:
    """Adds the paths between barriers that can run as one loop over the warps of a thread block,
    through blocks that have a region version."""
    if not _can_run_warp_loops(ir):
        return ir
    partly, warp_layout = ir.predicated_blocks.values(), ir.variant.warp_layout
    found = warp_loops(ir.program, ir.region_versions(), partly, warp_layout, ir.uniformity)
    planned = (planned_warp_loop(ir, warp_loop) for warp_loop in found)
    return replace(ir, warp_loops=tuple(path for path in planned if path is not None))


def find_static_schedule(ir: WarpIR) -> WarpIR:
    """Adds the sequence of warp loops from begin to end of the kernel, if it is known at compile
    time and none of several has more than MOST_ACCESSES accesses."""
    if not (_can_run_warp_loops(ir) and ir.variant.does(Pass.WARP_LOOPS)):
        return ir
    warp_layout, size = ir.variant.warp_layout, ir.variant.size
    found = static_schedule_of(ir.program, warp_layout, ir.uniformity, size)
    if len(found) > 1 and max(map(_accesses_of, found)) > MOST_ACCESSES:
        return ir
    planned = [planned_warp_loop(ir, warp_loop) for warp_loop in found]
    paths = tuple(path for path in planned if path is not None)
    return replace(ir, static_schedule=paths if len(paths) == len(planned) else ())


def _accesses_of(warp_loop: WarpLoop) -> int:
    """Returns how many accesses a warp loop has."""
    return sum(kind is StepKind.ACCESS for kind in warp_loop.kinds.values())


def _can_run_warp_loops(ir: WarpIR) -> bool:
    """Returns whether code may run all warps of a thread block in a loop: threads lie along x or in
    rows of 16, registers have shapes, accesses are inlined and not seen by a detector, and no call
    passes parameters in the frame."""
    sanitizer = ir.variant.sanitizes
    observes_accesses = sanitizer is not None and bool(sanitizer.accesses)
    has_layout = ir.variant.warp_layout in BLOCK_LAYOUT and bool(ir.shapes)
    return (
        has_layout
        and ir.accesses.facts.inlined
        and not observes_accesses
        and not _passes_parameters_in_frame(ir.program)
    )


def _passes_parameters_in_frame(program: Program) -> bool:
    return bool(frame_pieces(program))
