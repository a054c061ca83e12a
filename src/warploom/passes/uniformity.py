"""The pass that stores in the IR which registers are uniform or affine, as `analysis.uniformity`
finds, so that they are stored in one value for each run of lanes.

    mov.u32 %r2, %ctaid.x;                 %r2 .b32 uniform
    mov.u32 %r3, %ntid.x;                  %r3 .b32 uniform&0x7e0
    mov.u32 %r4, %tid.x;              ->   %r4 .b32 affine<1>&0x3e0
    mad.lo.s32 %r5, %r2, %r3, %r4;         %r5 .b32 affine<1>&-0x20
    mul.wide.s32 %rd3, %r5, 4;             %rd3 .b64 affine<4>&-0x80
    ld.global.u32 %r6, [%rd4];             %r6 .b32: varying

The mask after `&` has the bits that may be 1 in the first lane: a warp's first %tid.x is a multiple
of 32 below 1024.

Not handled: kernels too large to be optimized, and variants that store registers lane by lane
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
    # A region whose exits are uniform needs no mask: all lanes leave it at once, by a scalar
    # branch.
    ir = replace(ir, shapes=register_shapes.by_register, exits=register_shapes.masked_regions)
    return ir.with_blocks(
        lambda index, block: replace(block, varying=register_shapes.becomes_varying(index))
    )
