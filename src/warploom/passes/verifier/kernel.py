"""Checks a whole Warp IR: its program, options and blocks, and by the other modules of the package
registers, accesses and loops.

    block b4 ... branch=predicated          -> an error, if b4 has no predicated block
    plan=consecutive/cache/vector/list/...  -> an error, for the table has no such plan
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import chain

from warploom.analysis.predicated_blocks import if_bodies
from warploom.core.errors import WarploomError
from warploom.cost.device_rules import RULES
from warploom.ir.warp_ir import BasicBlock, BranchKind, WarpIR
from warploom.isa.kinds import OpKind
from warploom.passes.verifier.accesses import access_errors, plan_errors
from warploom.passes.verifier.loops import loop_errors
from warploom.passes.verifier.program import program_errors
from warploom.passes.verifier.registers import register_errors
from warploom.program.cfg import can_diverge


def verify(ir: WarpIR) -> None:
    """Raises WarploomError if an IR is not consistent, with the first reason."""
    for reason in chain(program_errors(ir.program), _errors(ir)):
        name = ir.program.name
        raise WarploomError(f"the Warp IR of kernel {name} is not valid: {reason}")


def _errors(ir: WarpIR) -> Iterator[str]:
    """Yields what is wrong with an IR whose program is valid: with its options; then, unless it
    lacks blocks, with registers, reconvergence, each block's branch and accesses, plans and
    loops."""
    yield from _option_errors(ir)
    if len(ir.blocks) != ir.program.exit:
        yield f"it describes {len(ir.blocks)} of {ir.program.exit} blocks"
        return
    yield from register_errors(ir)
    yield from _reconvergence_errors(ir)
    bodies = if_bodies(ir.program)
    for index, block in enumerate(ir.blocks):
        yield from (
            f"block b{index}: {error}" for error in _branch_errors(ir, index, block, bodies)
        )
        yield from (f"block b{index}: {error}" for error in access_errors(ir, index, block))
    yield from plan_errors(ir)
    yield from loop_errors(ir)


def _option_errors(ir: WarpIR) -> Iterator[str]:
    """Yields access rules that do not exist, a count layout for another layout of warps than the
    variant's, and shapes in a variant that stores all registers lane by lane."""
    rules = ir.layout.rules
    for name in (getattr(rules, field.name) for field in fields(rules) if field.name != "paths"):
        if name not in RULES:
            yield f"{name} is not an access rule"
    if ir.layout.warp_layout is not ir.variant.warp_layout:
        yield "its counts are for a different warp layout"
    if ir.variant.stores_lane_by_lane and ir.shapes:
        yield "its variant stores all registers lane by lane, but some registers have shapes"


def _reconvergence_errors(ir: WarpIR) -> Iterator[str]:
    """Yields branches (and the program's end) whose reconvergence point is not among the points,
    blocks that do not exist, and blocks to resume at in a kernel that never suspends a warp.
    Nothing if the pass has not run."""
    exit, facts = ir.program.exit, ir.reconvergence
    if not facts.points:  # the pass has not run
        return
    if exit not in facts.points:
        yield "lanes do not reconverge at the end of the program"
    named = {*facts.points, *chain(*facts.points.values()), *facts.diverged, *facts.resumable}
    if not all(0 <= block <= exit for block in named):
        yield "lanes reconverge, wait or resume at a block that does not exist"
    for block in ir.program.blocks:
        last = ir.program.instructions[block.stop - 1]
        point = ir.program.reconvergence[block.index]
        if can_diverge(last) and point not in facts.points:
            yield f"lanes do not reconverge in b{point}, after b{block.index}"
    if facts.resumable and not facts.suspends:
        yield "it lists blocks at which lanes resume, but its warps are never suspended"


def _branch_errors(
    ir: WarpIR, index: int, block: BasicBlock, bodies: dict[int, int]
) -> Iterator[str]:
    """Yields a kind on a block that does not end with a guarded `bra`, a kind other than the one
    that `passes.branches` gives, and a predicated block other than the one in `bodies` (the bodies
    of `if`s, by the block before). A missing kind or predicated block is no error."""
    last = ir.program.instructions[ir.program.blocks[index].stop - 1]
    is_guarded = last.operation.kind is OpKind.BRANCH and last.guard is not None
    if not is_guarded and block.branch is not None:
        yield "it has a branch kind, but does not end with a guarded branch"
    if block.predicated_block not in (None, bodies.get(index)):
        yield f"b{block.predicated_block} cannot be its predicated block"
    if block.branch is None:
        return
    # The order of `passes.branches`, from the weakest reason: each line overrides those before it.
    expected = BranchKind.SPLIT if block.predicated_block is None else BranchKind.PREDICATED
    if any(index in region.exits for region in ir.exits):
        expected = BranchKind.EXIT
    if last.guard is not None and last.guard.register in ir.uniformity.at(index):
        expected = BranchKind.UNIFORM
    if block.branch is not expected:
        yield f"its branch kind must be {expected.value}, not {block.branch.value}"
