"""The pass that finds loops whose accesses one check serves for a batch of iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.analysis.shapes import Reading
from warploom.analysis.strided_loops import StridedLoop, chain_loops, strided_loop
from warploom.codegen.access_groups import AccessGroup
from warploom.codegen.access_table import Guard
from warploom.codegen.warp_ir import WarpIR


def find_strided_loops(ir: WarpIR) -> WarpIR:
    """Adds the loops of which code checks and counts accesses for a batch of iterations at once.

    Not in code that shows each access or instruction to a log, an observer, a detector or a
    debugger. A loop is worth it if most of its accesses take part: each of the others has a check
    of its own in every iteration, while a fast version of the block has one for several.
    """
    variant = ir.variant
    shown = variant.is_watched or variant.sanitizes is not None or variant.debugging is not None
    if shown or not ir.shapes or not ir.access_facts.inlined:
        return ir
    found = [_strided_loop(ir, blocks) for blocks in chain_loops(ir.program, ir.uniformity)]
    return replace(ir, strided_loops=tuple(loop for loop in found if loop is not None))


def _strided_loop(ir: WarpIR, blocks: tuple[int, ...]) -> StridedLoop | None:
    """Returns the strided loop of some blocks, if it is worth it."""
    if any(ir.blocks[block].accesses.defers for block in blocks):
        return None
    readings = {
        block: Reading(ir.program, ir.variant.formation, ir.uniformity.at(block))
        for block in blocks
    }
    groups = [group for block in blocks for group in ir.blocks[block].accesses.groups]
    firsts = [group.members[0][0] for group in groups if _may_advance(ir, group)]
    loop = strided_loop(ir.program, readings, blocks, firsts)
    if loop is None:
        return None
    taking_part = sum(len(group.members) for group in advancing_groups(ir, loop))
    return loop if 2 * taking_part >= sum(len(group.members) for group in groups) else None


def _may_advance(ir: WarpIR, group: AccessGroup) -> bool:
    """Returns whether a check of a group at the first of some iterations can serve all of them."""
    guarded = any(ir.program.instructions[index].guard is not None for index, _ in group.members)
    return group.plan.guard is Guard.CACHE and not guarded


def advancing_groups(ir: WarpIR, loop: StridedLoop) -> Iterator[AccessGroup]:
    """Yields the groups of accesses of a loop that take part."""
    for block in loop.blocks:
        for group in ir.blocks[block].accesses.groups:
            if group.members[0][0] in loop.accesses:
                yield group
