"""The pass that finds the registers whose values are affine across the whole thread block: those of
the first warp give all others, which warp loops need.

    mov.u32 %r1, %tid.x;          %r1 .b32 affine<1>&0x3e0   ->   ... block=affine<1>
    mul.wide.u32 %rd1, %r1, 4;    %rd1 .b64 affine<4>        ->   ... block=affine<4>&-0x4

In a thread block along x the value of thread t is then that of thread 0 plus t times the stride, in
whichever warp t is. A register may have a stride in each warp, and none from one warp to the next
(`%tid.x & 31`): it is affine in a warp alone.

Not handled: blocks that are neither a line nor rows of 16 threads. It costs nothing in code."""

from __future__ import annotations

from dataclasses import replace

from warploom.abi.pieces import frame_pieces
from warploom.analysis.warp_loops import block_operand_shapes
from warploom.ir.warp_ir import WarpIR
from warploom.shapes.warp_layout import BLOCK_LAYOUT


def find_block_shapes(ir: WarpIR) -> WarpIR:
    """Adds the shapes of registers across the whole thread block (`block_shapes`), which warp loops
    need; changes nothing unless `can_run_warp_loops`."""
    if not can_run_warp_loops(ir):
        return ir
    return replace(ir, block_shapes=block_operand_shapes(ir.program, ir.variant.warp_layout).shapes)


def can_run_warp_loops(ir: WarpIR) -> bool:
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
        and not frame_pieces(ir.program)
    )
