"""Passes that find how the warps of a block come from one barrier to the next."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.courses import course_of
from warploom.analysis.program import Program
from warploom.analysis.shapes import WHOLE
from warploom.analysis.sweeps import block_wide, sweeps
from warploom.codegen.passes import Pass
from warploom.codegen.pieces import frame_pieces
from warploom.codegen.warp_ir import WarpIR
from warploom.codegen.warp_ir_divergence import partings


def copy_for_rounds(ir: WarpIR) -> WarpIR:
    """Gives blocks between barriers a copy for warps in relay."""
    rounds = partings(ir).rounds if ir.shapes else frozenset[int]()
    return ir.with_blocks(lambda index, block: replace(block, in_rounds=index in rounds))


def find_block_shapes(ir: WarpIR) -> WarpIR:
    """Adds the shapes that registers have in a whole block of threads."""
    if not _can_sweep(ir):
        return ir
    return replace(ir, block_shapes=block_wide(ir.program, ir.variant.formation).shapes)


def find_sweeps(ir: WarpIR) -> WarpIR:
    """Adds the ways between barriers that all warps of a block may go at once."""
    if not _can_sweep(ir):
        return ir
    partly, formation = ir.asides.values(), ir.variant.formation
    found = sweeps(ir.program, ir.rounds(), partly, formation, ir.uniformity)
    return replace(ir, sweeps=tuple(sweep.path for sweep in found))


def find_course(ir: WarpIR) -> WarpIR:
    """Adds all that a block does, where that is known before it runs."""
    if not (_can_sweep(ir) and ir.variant.does(Pass.SWEEPS)):
        return ir
    formation, size = ir.variant.formation, ir.variant.size
    found = course_of(ir.program, formation, ir.uniformity, size)
    return replace(ir, course=tuple(sweep.path for sweep in found))


def _can_sweep(ir: WarpIR) -> bool:
    """Returns whether code may run all warps of a block at once: their accesses are inlined, no
    detector takes them, and no call passes parameters in the frame."""
    wanted = ir.variant.sanitizes
    taken = wanted is not None and bool(wanted.accesses)
    known = ir.variant.formation in WHOLE and bool(ir.shapes)
    return known and ir.access_facts.inlined and not taken and not _has_pieces(ir.program)


def _has_pieces(program: Program) -> bool:
    return bool(frame_pieces(program))
