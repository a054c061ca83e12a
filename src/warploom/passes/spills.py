"""The pass that selects registers, with one writer and live after a barrier, which are stored to
the warp's context as soon as they are written, so that a barrier need not store them.

    mov.u32 %r4, %tid.x;  ...  bar.sync 0;  ... %r4 ...   ->   %r4 .b32 affine<1>&0x3e0 spilled
    mov.u32 %r8, 128;  LOOP: bar.sync 0; ...; shr.u32 %r8, %r8, 1;   ->   unchanged: two writers

Not handled: registers with several writers, and those that masked regions merge or that have
several representations. Costs one store for each write; a barrier saves as many."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.warp_ir import WarpIR
from warploom.isa.instruction import Register
from warploom.passes.reconvergence import divergence_points


def spill_registers(ir: WarpIR) -> WarpIR:
    """Adds, as `spilled`, the registers that are stored to the context as soon as they are written,
    so that a barrier need not store them: those live after a barrier with one writer
    (`DivergencePoints.spilled`). Excluded are registers that masked regions merge, or that are
    varying in some blocks and not in others: they have no single representation to store. Changes
    nothing without shapes, or if warps are never suspended."""
    if not (ir.reconvergence.suspends and ir.shapes):
        return ir
    shapes = ir.uniformity
    merged = frozenset[Register]().union(*(region.merged for region in shapes.masked_regions))
    excluded = merged | (shapes.by_register.keys() - shapes.lasting)
    return replace(ir, spilled=divergence_points(ir).spilled - excluded)
