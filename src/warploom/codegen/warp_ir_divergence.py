"""Passes that find how the lanes of a warp diverge and reconverge."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.asides import asides
from warploom.analysis.partings import Partings
from warploom.codegen.warp_ir import BasicBlock, BranchKind, Reconvergence, WarpIR
from warploom.ptx.ir import Register


def partings(ir: WarpIR) -> Partings:
    """Returns where the lanes of a kernel diverge, under the scheduling of its variant."""
    variant = ir.variant
    return Partings(ir.program, variant.independent, variant.mixes, variant.chooses)


def find_reconvergence(ir: WarpIR) -> WarpIR:
    """Adds where diverged lanes reconverge, wait, and are taken up again."""
    found = partings(ir)
    points = {point: tuple(found.others[point]) for point in sorted(found.joins)}
    resumable = found.resumable if found.suspends else frozenset[int]()
    reconvergence = Reconvergence(found.suspends, points, found.parted, resumable)
    return replace(ir, reconvergence=reconvergence)


def find_asides(ir: WarpIR) -> WarpIR:
    """Adds the blocks behind branches that can be run under a mask."""
    if not ir.shapes:
        return ir
    found = asides(ir.program, ir.variant.formation, ir.uniformity)
    return ir.with_blocks(lambda index, block: replace(block, aside=found.get(index)))


def find_branches(ir: WarpIR) -> WarpIR:
    """Adds what lanes do at each guarded branch to which they come together."""
    return ir.with_blocks(lambda index, block: replace(block, branch=_branch(ir, index, block)))


def _branch(ir: WarpIR, index: int, block: BasicBlock) -> BranchKind | None:
    last = ir.program.instructions[ir.program.blocks[index].stop - 1]
    if last.operation.name != "bra" or last.guard is None:
        return None
    if last.guard.register in ir.uniformity.at(index):
        return BranchKind.UNIFORM
    if any(index in region.exits for region in ir.exits):
        return BranchKind.EXIT
    return BranchKind.SPLIT if block.aside is None else BranchKind.PREDICATED


def store_steady_registers(ir: WarpIR) -> WarpIR:
    """Adds the registers that are stored as soon as they are written: those of which what is
    written last is what all lanes hold, and that are kept alike everywhere."""
    if not (ir.reconvergence.suspends and ir.shapes):
        return ir
    shapes = ir.uniformity
    kept = frozenset[Register]().union(*(region.kept for region in shapes.left))
    other = kept | (shapes.known.keys() - shapes.lasting)
    return replace(ir, steady=partings(ir).steady - other)
