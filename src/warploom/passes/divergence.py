"""Passes that add how the lanes of a warp diverge and reconverge: reconvergence points, predicated
blocks, the kind of each branch, and spills."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.divergence import DivergencePoints
from warploom.analysis.predicated_blocks import predicated_blocks
from warploom.ir.warp_ir import BasicBlock, BranchKind, Reconvergence, WarpIR
from warploom.isa.kinds import OpKind
from warploom.ptx.ir import Register


def divergence_points(ir: WarpIR) -> DivergencePoints:
    """Returns the divergence analysis of a kernel under the scheduling that its variant is compiled
    for."""
    variant = ir.variant
    return DivergencePoints(ir.program, variant.independent, variant.mixes, variant.chooses)


def find_reconvergence(ir: WarpIR) -> WarpIR:
    """Adds the blocks where diverged lanes reconverge, wait for their turn, and resume; the last
    only if warps can be suspended."""
    divergence = divergence_points(ir)
    points = {
        point: tuple(divergence.waiting_blocks[point])
        for point in sorted(divergence.reconvergence_points)
    }
    resumable = divergence.resumable if divergence.suspends else frozenset[int]()
    # Uniform and affine registers may lose that form anywhere, and then all lanes diverge.
    diverged = frozenset(range(ir.program.exit)) if ir.shapes else divergence.diverged
    reconvergence = Reconvergence(divergence.suspends, points, diverged, resumable)
    return replace(ir, reconvergence=reconvergence)


def find_predicated_blocks(ir: WarpIR) -> WarpIR:
    """Adds, to blocks that end with a branch, the block after it that can be executed under a mask
    (if-conversion); none without uniformity analysis."""
    if not ir.shapes:
        return ir
    found = predicated_blocks(ir.program, ir.variant.warp_layout, ir.uniformity)
    return ir.with_blocks(lambda index, block: replace(block, predicated_block=found.get(index)))


def find_branches(ir: WarpIR) -> WarpIR:
    """Adds to each block the kind of the guarded branch at its end in convergent code
    (`BranchKind`)."""
    return ir.with_blocks(lambda index, block: replace(block, branch=_branch(ir, index, block)))


def _branch(ir: WarpIR, index: int, block: BasicBlock) -> BranchKind | None:
    """Returns the kind of the guarded `bra` at the end of a block, the first that applies: uniform
    guard, exit of a masked region, predicated block, else a split of lanes; None if the block ends
    otherwise."""
    last = ir.program.instructions[ir.program.blocks[index].stop - 1]
    if last.operation.kind is not OpKind.BRANCH or last.guard is None:
        return None
    if last.guard.register in ir.uniformity.at(index):
        return BranchKind.UNIFORM
    if any(index in region.exits for region in ir.exits):
        # Exits come before predication: a block that leaves a masked region only narrows the
        # region's mask.
        return BranchKind.EXIT
    return BranchKind.SPLIT if block.predicated_block is None else BranchKind.PREDICATED


def spill_registers(ir: WarpIR) -> WarpIR:
    """Adds the registers that are stored to the context as soon as they are written, so that a
    barrier need not store them. Excluded are registers that masked regions merge, or that are
    varying in some blocks and not in others: they have no single representation to store."""
    if not (ir.reconvergence.suspends and ir.shapes):
        return ir
    shapes = ir.uniformity
    merged = frozenset[Register]().union(*(region.merged for region in shapes.masked_regions))
    excluded = merged | (shapes.by_register.keys() - shapes.lasting)
    return replace(ir, spilled=divergence_points(ir).spilled - excluded)
