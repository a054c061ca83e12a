"""The pass that forms the groups of accesses of each basic block from one base register, each with
one guard and the plan of `ir.access_plans`.

    11: ld.global.f32 %f1, [%rd4];        accesses
    12: ld.global.f32 %f2, [%rd4+4];   ->   load global .f32 lanes=affine<4> members=11+0,12+4 ...
    18: st.global.f32 [%rd4+128], %f3;      store global .f32 lanes=affine<4> members=18+128 ...

One look-up in the range cache bounds both loads. The store is a group of its own though its base is
the same: members of a group have one access type, and the operation is part of that.

Not handled: accesses of diverged lanes, of kernels with more than MOST_INLINED access records, and
those whose plan is general. Costs 15 host instructions a group and inlined code for each access, 35
% of the time to compile in the mean; saves a call for each access (docs/passes.md)."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.access_groups import find_groups
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, WarpIR
from warploom.isa.instruction import Register


def group_accesses(ir: WarpIR) -> WarpIR:
    """Adds the groups of accesses of each block in code for converged lanes
    (`BasicBlock.accesses`); for a predicated block, also those of its copy under a mask (`masked`).
    Changes nothing for code of one copy, or if accesses are not inlined."""
    if ir.variant.has_one_copy or not ir.accesses.facts.inlined:
        return ir
    accesses, masks = ir.accesses, _mask_registers(ir)

    def block_accesses(index: int, mask: Register | None = None) -> BlockAccesses:
        """Returns the groups of a block that runs under `mask` (None: for all lanes)."""
        operand_shapes, block = ir.operand_shapes(index), ir.program.blocks[index]
        return BlockAccesses(tuple(find_groups(accesses, operand_shapes, block, mask)))

    def grouped(index: int, block: BasicBlock) -> BasicBlock:
        """Returns a block with its groups for all lanes, and, if it is predicated, under a mask."""
        # A block that can run under a mask has plans for both kinds of code.
        masked = block_accesses(index, masks[index]) if index in masks else block.masked
        return replace(block, accesses=block_accesses(index), masked=masked)

    return ir.with_blocks(grouped)


def _mask_registers(ir: WarpIR) -> dict[int, Register | None]:
    """Returns, by predicated block, the predicate register in the guard of the branch before it, on
    which the mask that it runs under depends (negated or not); None if the branch has no guard."""
    ends = (
        (predicated_block, ir.program.blocks[index].stop - 1)
        for index, predicated_block in ir.predicated_blocks.items()
    )
    guards = (
        (predicated_block, ir.program.instructions[end].guard) for predicated_block, end in ends
    )
    return {
        predicated_block: None if guard is None else guard.register
        for predicated_block, guard in guards
    }
