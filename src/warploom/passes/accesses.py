"""Passes that choose how the memory accesses of each block are done: groups with a common guard,
batches of stores, and fast versions of blocks.

    ld.global.f32 %f1, [%rd1];       one group, base %rd1, offsets 0, 4 and 128: one look-up in the
    ld.global.f32 %f2, [%rd1+4];     range cache bounds all three
    st.global.f32 [%rd1+128], %f3;

Not handled: accesses in code of diverged lanes, which get a plan each as they are emitted."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.scattered import scattered_registers
from warploom.ir.access_groups import by_instruction, find_groups
from warploom.ir.access_plans import Guard
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, WarpIR
from warploom.passes.store_batching import find_store_batches
from warploom.ptx.ir import Register
from warploom.shapes.operand_shapes import RUNS, OperandShapes

LEAST_FOR_FAST_VERSION = 4
"""The accesses of a block in groups guarded by the range cache, from which on the block has a fast
version: fewer do not pay for the second copy of its code."""

MOST_RUNS = 8
"""The lane runs of a warp up to which blocks have fast versions. With more runs, many warps of a
grid have inactive lanes at its edges and would leave the fast version."""


def find_scattered_registers(ir: WarpIR) -> WarpIR:
    """Adds to the IR the registers whose lanes hold unrelated values: plans for addresses made of
    them have no check for a stride. Changes nothing for baseline code, if accesses are not inlined,
    or without the pass `steps`."""
    if ir.variant.baseline or not (ir.accesses.facts.inlined and ir.accesses.facts.steps):
        return ir
    lasting = {r: s for r, s in ir.shapes.items() if r in ir.uniformity.lasting}
    found = scattered_registers(ir.program, ir.variant.warp_layout, lasting)
    return replace(ir, scattered=found)


def group_accesses(ir: WarpIR) -> WarpIR:
    """Adds the groups of accesses of each block in code for converged lanes; for a predicated
    block, also those of its copy under a mask. Changes nothing for baseline code, or if accesses
    are not inlined."""
    if ir.variant.baseline or not ir.accesses.facts.inlined:
        return ir
    accesses, masks = ir.accesses, _mask_registers(ir)

    def block_accesses(index: int, mask: Register | None = None) -> BlockAccesses:
        """Returns the groups of a block that runs under `mask` (None: for all lanes)."""
        operand_shapes, block = _operand_shapes(ir, index), ir.program.blocks[index]
        return BlockAccesses(tuple(find_groups(accesses, operand_shapes, block, mask)))

    def grouped(index: int, block: BasicBlock) -> BasicBlock:
        # A block that can run under a mask has plans for both kinds of code.
        masked = block_accesses(index, masks[index]) if index in masks else block.masked
        return replace(block, accesses=block_accesses(index), masked=masked)

    return ir.with_blocks(grouped)


def _mask_registers(ir: WarpIR) -> dict[int, Register | None]:
    """Returns, by predicated block, the guard register of the branch before it, which is the mask
    that it runs under; None if the branch has no guard."""
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


def _operand_shapes(ir: WarpIR, index: int) -> OperandShapes:
    return OperandShapes(ir.program, ir.variant.warp_layout, ir.uniformity.at(index))


def batch_stores(ir: WarpIR) -> WarpIR:
    """Adds batches of strided stores, which emitted code defers to the last one of their batch in a
    fast version of the block; a block with a batch always has one. Stores in a batch are removed
    from other groups. Changes nothing in an IR without shapes."""
    if not ir.shapes:
        return ir
    accesses = ir.accesses

    def with_batches(index: int, block: BasicBlock) -> BasicBlock:
        """Returns a block with its batches of stores among its access groups, and a fast version if
        it has any."""
        groups = block.accesses.groups
        cached = by_instruction(group for group in groups if group.plan.guard is Guard.CACHE)
        batches = find_store_batches(
            accesses, _operand_shapes(ir, index), ir.program.blocks[index], cached
        )
        stores = by_instruction(batches).keys()
        # A store may be in one group only: those that a batch takes over are removed from the
        # others.
        rest = (one for one in groups if stores.isdisjoint(i for i, _ in one.members))
        stored = BlockAccesses((*rest, *batches), has_fast_version=True)
        return replace(block, accesses=stored) if batches else block

    return ir.with_blocks(with_batches)


def make_fast_versions(ir: WarpIR) -> WarpIR:
    """Marks blocks with at least LEAST_FOR_FAST_VERSION accesses guarded by the range cache to have
    a fast version; none in launches whose warps have more than MOST_RUNS runs."""
    if RUNS.get(ir.variant.warp_layout, 1) > MOST_RUNS:
        return ir

    def with_fast_version(_: int, block: BasicBlock) -> BasicBlock:
        """Returns a block marked to have a fast version, if enough of its accesses are guarded by
        the range cache."""
        groups = block.accesses.groups
        cached = (group for group in groups if group.plan.guard is Guard.CACHE)
        if sum(len(group.members) for group in cached) < LEAST_FOR_FAST_VERSION:
            return block
        return replace(block, accesses=BlockAccesses(groups, has_fast_version=True))

    return ir.with_blocks(with_fast_version)


def fit_plans(ir: WarpIR) -> WarpIR:
    """Adapts the plans of accesses to blocks without a fast version: a failed guard then takes the
    general path of that access, for there is no slow version to jump to."""

    def fitted(accesses: BlockAccesses) -> BlockAccesses:
        """Returns access groups whose plans have no exit to a slow version, if the block has no
        fast version."""
        if accesses.has_fast_version or not accesses.groups:
            return accesses
        return BlockAccesses(
            tuple(replace(group, plan=group.plan.in_one_version()) for group in accesses.groups)
        )

    return ir.with_blocks(
        lambda _, block: replace(
            block, accesses=fitted(block.accesses), masked=fitted(block.masked)
        ),
    )
