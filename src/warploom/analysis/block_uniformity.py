"""Finds branches and values that are the same for all threads of a block."""

from __future__ import annotations

from warploom.analysis.masked_loops import between
from warploom.analysis.shape_transfer import Reading, WarpLayout, computes
from warploom.analysis.uniformity import shapes_of
from warploom.analysis.vector_shape import UNIFORM
from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.spec import Unit
from warploom.program.cfg import LEAVES, splits
from warploom.program.program import Block, Program
from warploom.program.uses import member_mask, reads_clock, votes, writes
from warploom.ptx.ir import Instruction, Register


def last_of(program: Program, block: Block) -> Instruction:
    """Return the last instruction of a block."""
    return program.instructions[block.stop - 1]


def waits_for_all(made: Instruction) -> bool:
    """Returns whether it is a barrier at which every thread of the block just waits."""
    barrier = made.operation.spec.unit is Unit.BARRIER and made.guard is None
    if is_cluster_barrier(made.operation):
        return False
    return barrier and "arrive" not in made.operation.modifiers and not votes(made)


def leaves_all(made: Instruction) -> bool:
    """Returns whether every thread that comes to it ends there."""
    return made.operation.name in LEAVES and made.guard is None


def agrees(reading: Reading, branch: Instruction) -> bool:
    """Returns whether all threads of the block go one way at a branch; `reading` is of the block's
    formation."""
    return branch.operation.name == "bra" and reading.guard(branch) == UNIFORM


def disagreeing_blocks(program: Program, reading: Reading) -> set[int]:
    """Blocks to which some threads of a block may come more often than others."""
    found: set[int] = set()
    for block in program.blocks:
        last = last_of(program, block)
        if splits(last) and not agrees(reading, last):
            point = program.reconvergence[block.index]
            found |= between(program, block.successors, point)
    return found


def comes_to_barriers_together(program: Program) -> bool:
    """Return whether the threads of a block come to its barriers in one order, whatever the launch:
    no branch that they may take differently decides about one. The program keeps the answer."""
    known = program.kept.get(comes_to_barriers_together)
    if known is None:
        reading = Reading(program, WarpLayout.BLOCK, shapes_of(program, WarpLayout.BLOCK).known)
        alone = disagreeing_blocks(program, reading)
        known = not any(
            _may_be_skipped(made) or (block.index in alone and _is_barrier(made))
            for block in program.blocks
            for made in program.instructions[block.start : block.stop]
        )
        program.kept[comes_to_barriers_together] = known
    return bool(known)


def _is_barrier(made: Instruction) -> bool:
    return made.operation.spec.unit is Unit.BARRIER


def _may_be_skipped(made: Instruction) -> bool:
    """Return whether it is a barrier that not all lanes take part in, or a call, which may come to
    any."""
    return made.operation.name == "call" or (_is_barrier(made) and made.guard is not None)


def is_quiet(made: Instruction) -> bool:
    """Returns whether it does nothing but compute, in every lane, and looks at no clock."""
    quiet = computes(made) or made.operation.name in ("mov", "cvta")
    return quiet and made.guard is None and member_mask(made) is None and not reads_clock([made])


def comparison_of(program: Program, block: Block) -> Instruction | None:
    """Return the comparison in a block that decides the branch at its end, if its operands are then
    what they were."""
    guard = last_of(program, block).guard
    inside = program.instructions[block.start : block.stop - 1]
    places = [i for i, made in enumerate(inside) if guard and guard.register in writes(made)]
    if not places:
        return None
    made = inside[places[-1]]
    plain = made.operation.name == "setp" and len(made.operands) == 3 and made.guard is None
    later = {register for one in inside[places[-1] + 1 :] for register in writes(one)}
    same = plain and isinstance(made.operands[0], Register) and later.isdisjoint(made.operands)
    return made if same else None
