"""Finds branches and values that are the same for all threads of a block."""

from __future__ import annotations

from warploom.analysis.masked_loops import blocks_between
from warploom.analysis.shape_transfer import OperandShapes, WarpLayout, computes
from warploom.analysis.uniformity import shapes_of
from warploom.analysis.vector_shape import UNIFORM
from warploom.isa.ops.cluster import is_cluster_barrier
from warploom.isa.spec import Unit
from warploom.program.cfg import EXITS, can_diverge
from warploom.program.program import Program, ProgramBlock
from warploom.program.uses import is_reducing_barrier, member_mask, reads_clock, writes
from warploom.ptx.ir import Instruction, Register


def terminator(program: Program, block: ProgramBlock) -> Instruction:
    """Return the last instruction of a block."""
    return program.instructions[block.stop - 1]


def is_full_barrier(made: Instruction) -> bool:
    """Returns whether it is a barrier at which every thread of the block just waits."""
    barrier = made.operation.spec.unit is Unit.BARRIER and made.guard is None
    if is_cluster_barrier(made.operation):
        return False
    return barrier and "arrive" not in made.operation.modifiers and not is_reducing_barrier(made)


def is_unguarded_exit(made: Instruction) -> bool:
    """Returns whether every thread that comes to it ends there."""
    return made.operation.name in EXITS and made.guard is None


def is_uniform_branch(reading: OperandShapes, branch: Instruction) -> bool:
    """Returns whether all threads of the block go one way at a branch; `reading` is of the block's
    formation."""
    return branch.operation.name == "bra" and reading.guard(branch) == UNIFORM


def divergent_blocks(program: Program, reading: OperandShapes) -> set[int]:
    """Blocks to which some threads of a block may come more often than others."""
    found: set[int] = set()
    for block in program.blocks:
        last = terminator(program, block)
        if can_diverge(last) and not is_uniform_branch(reading, last):
            point = program.reconvergence[block.index]
            found |= blocks_between(program, block.successors, point)
    return found


def has_uniform_barriers(program: Program) -> bool:
    """Return whether the threads of a block come to its barriers in one order, whatever the launch:
    no branch that they may take differently decides about one. The program keeps the answer."""
    known = program.kept.get(has_uniform_barriers)
    if known is None:
        reading = OperandShapes(
            program, WarpLayout.BLOCK, shapes_of(program, WarpLayout.BLOCK).known
        )
        alone = divergent_blocks(program, reading)
        known = not any(
            _may_be_skipped(made) or (block.index in alone and _is_barrier(made))
            for block in program.blocks
            for made in program.instructions[block.start : block.stop]
        )
        program.kept[has_uniform_barriers] = known
    return bool(known)


def _is_barrier(made: Instruction) -> bool:
    return made.operation.spec.unit is Unit.BARRIER


def _may_be_skipped(made: Instruction) -> bool:
    """Return whether it is a barrier that not all lanes take part in, or a call, which may come to
    any."""
    return made.operation.name == "call" or (_is_barrier(made) and made.guard is not None)


def is_pure(made: Instruction) -> bool:
    """Returns whether it does nothing but compute, in every lane, and looks at no clock."""
    quiet = computes(made) or made.operation.name in ("mov", "cvta")
    return quiet and made.guard is None and member_mask(made) is None and not reads_clock([made])


def deciding_comparison(program: Program, block: ProgramBlock) -> Instruction | None:
    """Return the comparison in a block that decides the branch at its end, if its operands are then
    what they were."""
    guard = terminator(program, block).guard
    inside = program.instructions[block.start : block.stop - 1]
    places = [i for i, made in enumerate(inside) if guard and guard.register in writes(made)]
    if not places:
        return None
    made = inside[places[-1]]
    plain = made.operation.name == "setp" and len(made.operands) == 3 and made.guard is None
    later = {register for one in inside[places[-1] + 1 :] for register in writes(one)}
    same = plain and isinstance(made.operands[0], Register) and later.isdisjoint(made.operands)
    return made if same else None
