"""The pass that finds blocks which can run under a mask while the other lanes wait (if-conversion).

    b1: setp.lt.f32 %p2, %f3, 0f00000000; @%p2 bra b3;
    b2: add.f32 %f3, %f3, 0f3F800000;
    b3: ...                                ->   block b1 to=b3,b2 predicated=b2

Not handled: `if`s with an `else`, blocks of more than LONGEST_PREDICATED_BLOCK instructions, and
those with an instruction that waits for lanes or may leave the block
(`analysis.predicated_blocks`). Costs blends of the registers that the block writes; saves the
divergence of the warp."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.predicated_blocks import predicated_blocks
from warploom.ir.warp_ir import WarpIR


def find_predicated_blocks(ir: WarpIR) -> WarpIR:
    """Adds, to blocks that end with a branch, the block after it that can be executed under a mask
    (`predicated_block`); changes nothing if no register has a shape."""
    if not ir.shapes:
        return ir
    bodies = predicated_blocks(ir.program, ir.variant.warp_layout, ir.uniformity)
    return ir.with_blocks(lambda index, block: replace(block, predicated_block=bodies.get(index)))
