"""The pass that stores in the IR which registers are uniform or affine, as `analysis.uniformity`
finds, so that they are stored in one value for each run of lanes.

    mad.lo.u32 %r4, %ctaid.x, %ntid.x, %tid.x;   ->   %r4 .b32 affine<1>

Not handled: kernels too large to be optimised, and variants that store registers lane by lane
(`KernelVariant.stores_lane_by_lane`). Costs 15 to 20 % of the time to compile; it is what most
other passes begin with (`analysis.uniformity`, docs/passes.md)."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.uniformity import shapes_of
from warploom.ir.warp_ir import WarpIR


def find_shapes(ir: WarpIR) -> WarpIR:
    """Adds the shapes of registers (`shapes`), and to each block the registers that are varying
    only there (`varying`); retains of the masked regions (`exits`) those whose exits are not
    uniform. Changes nothing unless registers may have shapes (`has_shapes`)."""
    if not ir.has_shapes:
        return ir
    register_shapes = shapes_of(ir.program, ir.variant.warp_layout, ir.exits)
    ir = replace(ir, shapes=register_shapes.by_register, exits=register_shapes.masked_regions)
    return ir.with_blocks(
        lambda index, block: replace(block, varying=register_shapes.becomes_varying(index))
    )
