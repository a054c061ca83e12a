"""Plans the accesses of a warp loop. Accesses whose addresses in all warps follow from the first
warp's become its groups. For a body that a partial warp runs, it has the groups of the predicated
block: the range cache has entries for these, as they are filled wherever the block runs under a
mask.

    part[tid] = a[tid];   ->   full load global .f32 lanes=affine<4> members=6+0 ...
                               full store shared .f32 lanes=affine<4> members=10+0 ...
    if (tid < n) part[tid] += part[tid + n];
                          ->   three lines `full`, for warps of which all lanes run the body, and
                               the same three `partial`, for the one of which n % 32 lanes do

Not handled: loops with an access of another form, and bodies whose threads are not the first ones
of the block; such a loop is dropped, and its warps run one after the other."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.access_groups import AccessGroup, by_instruction, find_groups
from warploom.ir.access_plans import Guard, Move
from warploom.ir.loops import StepKind, WarpLoop, WarpLoopPath
from warploom.ir.warp_ir import WarpIR
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.prefix_comparisons import holds_in_prefix
from warploom.shapes.warp_layout import BLOCK_LAYOUT

WORD = 4
"""Bytes from which on consecutive elements of all warps have equal costs: 32 lanes then access
whole lines."""

ONE_ADDRESS_OR_VECTOR = (Move.SCALAR, Move.VECTOR, Move.ROWS)
"""The moves of uniform addresses and of consecutive elements."""


def planned_warp_loop(ir: WarpIR, warp_loop: WarpLoop) -> WarpLoopPath | None:
    """Returns the path of a warp loop with the groups of its accesses (`groups`, `partial`). None
    if the threads of its body are not the first ones of the block, or an access outside of the body
    is not extrapolated from the first warp. Accesses in the body have to be extrapolated if only
    whole warps may run it; else each has to fit a partial warp (`_fits_partial_warp`), and one that
    is not extrapolated is done by that warp alone."""
    if warp_loop.condition is not None and not _runs_first_threads(ir, warp_loop):
        return None
    # Without a partial warp nothing but extrapolation can do an access: one that does not fit drops
    # the whole loop.
    planned = replace(warp_loop, groups=_extrapolated_groups(ir, warp_loop))
    if warp_loop.body is None or not warp_loop.allows_partial_warp:
        return planned.path if planned.handles_full_warps else None
    partial = ir.blocks[warp_loop.body].masked.groups
    accesses = set(_accesses(warp_loop, warp_loop.body_blocks))
    fit = accesses <= by_instruction(partial).keys() and all(map(_fits_partial_warp, partial))
    # Accesses of the body that are not extrapolated are left to the partial warp: the loop then
    # runs only where no full warp enters the body.
    outside = set(_accesses(warp_loop, warp_loop.blocks))
    if not outside <= planned.extrapolated or not fit:
        return None
    groups = (replace(group, plan=group.plan.in_one_version()) for group in partial)
    return replace(planned, partial=tuple(groups)).path


def _accesses(warp_loop: WarpLoop, blocks: tuple[int, ...]) -> list[int]:
    """Returns the instructions of kind ACCESS in some blocks of a warp loop."""
    steps = warp_loop.steps(blocks)
    return [index for index in steps if warp_loop.kinds[index] is StepKind.ACCESS]


def _runs_first_threads(ir: WarpIR, warp_loop: WarpLoop) -> bool:
    """Returns whether the condition of a warp loop, which must have one, holds in the first threads
    of the block; where a partial warp may run the body, also if it holds in the first thread
    alone."""
    assert warp_loop.condition is not None
    operand_shapes = OperandShapes(
        ir.program, BLOCK_LAYOUT[ir.variant.warp_layout], ir.block_shapes
    )
    condition = ir.program.instructions[warp_loop.condition]
    return holds_in_prefix(
        operand_shapes,
        condition,
        opposite=warp_loop.condition_is_negated,
        one=warp_loop.allows_partial_warp,
    )


def _extrapolated_groups(ir: WarpIR, warp_loop: WarpLoop) -> tuple[AccessGroup, ...]:
    """Returns the access groups of a warp loop, its body included, whose accesses by full warps are
    extrapolated from the first warp, each with the plan that it has in a block of one version."""
    return tuple(
        replace(group, plan=group.plan.in_one_version())
        for block in (*warp_loop.blocks, *warp_loop.body_blocks)
        for group in find_groups(ir.accesses, ir.operand_shapes(block), ir.program.blocks[block])
        if _extrapolates(group)
    )


def _fits_partial_warp(group: AccessGroup) -> bool:
    """Returns whether the partial warp of a warp loop, of which only some lanes run the body, can
    perform an access group. Its guard has to be the range cache, each lane has to access one
    element, and the addresses have to be equal or consecutive in a single lane run (`base.runs` is
    1)."""
    is_narrow = group.shape.parts == 1 and group.base.runs == 1
    return (
        is_narrow and group.plan.guard is Guard.CACHE and group.plan.move in ONE_ADDRESS_OR_VECTOR
    )


def _extrapolates(group: AccessGroup) -> bool:
    """Returns whether the addresses of the block's first and last warp determine those of all
    others, so that one look-up in the range cache covers a group in all warps. The group has to be
    guarded by that cache, and either move one element of 4 bytes or more in each lane,
    consecutively, or load at one address for each lane run."""
    if group.plan.guard is not Guard.CACHE:
        return False
    # Costs: 32 consecutive elements of 4 bytes or more fill whole lines of 128 bytes, so that all
    # warps touch as many sectors and lines as the first. Shorter elements do not.
    if group.plan.move is Move.VECTOR:
        return group.shape.parts == 1 and group.shape.size >= WORD
    return group.plan.move in (Move.SCALAR, Move.ROWS) and group.shape.op == "load"
