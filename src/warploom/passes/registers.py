"""Passes that run the analyses of registers and put the result into the Warp IR: masked loops
and uniformity. What is computed, with examples, is in `analysis`."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.uniformity import shapes_of
from warploom.ir.warp_ir import WarpIR
from warploom.llvm.opt_level import is_long
from warploom.program.masked_loops import masked_regions


def find_masked_loops(ir: WarpIR) -> WarpIR:
    """Adds the regions that lanes may leave separately while others go on under a mask, as `exits`;
    none in code without uniformity analysis."""
    return replace(ir, exits=masked_regions(ir.program)) if _uses_uniformity(ir) else ir


def find_shapes(ir: WarpIR) -> WarpIR:
    """Adds the shapes of registers, and to each block the registers that are varying only there;
    retains of the masked regions those whose exits are not uniform. Changes nothing without
    uniformity analysis."""
    if not _uses_uniformity(ir):
        return ir
    register_shapes = shapes_of(ir.program, ir.variant.warp_layout, ir.exits)
    ir = replace(ir, shapes=register_shapes.by_register, exits=register_shapes.masked_regions)
    return ir.with_blocks(
        lambda index, block: replace(block, loose=register_shapes.becomes_varying(index))
    )


def _uses_uniformity(ir: WarpIR) -> bool:
    """Returns whether registers may have shapes: the variant does not store all of them lane by
    lane (`KernelVariant.plain`), and the kernel is not so large that the analysis would take too
    long."""
    return not (ir.variant.plain or is_long(ir.program))
