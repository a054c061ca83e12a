"""The pass that chooses how each guarded branch is done in convergent code (`BranchKind`).

    setp.ne.u32 %p2, %r8, 0; @%p2 bra LOOP;      %p2 uniform             ->   branch=uniform
    setp.ge.u32 %p1, %r4, %r8; @%p1 bra SKIP;    b3 up to SKIP is short  ->   branch=predicated
    setp.ge.s32 %p1, %r7, %r6; @%p1 bra DONE;    leaves a masked loop    ->   branch=exit

Not handled: indexed branches, which split lanes always. It costs nothing."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.warp_ir import BasicBlock, BranchKind, WarpIR
from warploom.isa.kinds import OpKind


def find_branches(ir: WarpIR) -> WarpIR:
    """Adds to each block the kind of the guarded branch at its end in convergent code
    (`BasicBlock.branch`)."""
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
