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


def is_full_barrier(instruction: Instruction) -> bool:
    """Returns whether it is a barrier at which every thread of the block just waits."""
    barrier = instruction.operation.spec.unit is Unit.BARRIER and instruction.guard is None
    if is_cluster_barrier(instruction.operation):
        return False
    return (
        barrier
        and "arrive" not in instruction.operation.modifiers
        and not is_reducing_barrier(instruction)
    )


def is_unguarded_exit(instruction: Instruction) -> bool:
    """Returns whether every thread that comes to it ends there."""
    return instruction.operation.name in EXITS and instruction.guard is None


def is_uniform_branch(operand_shapes: OperandShapes, branch: Instruction) -> bool:
    """Returns whether all threads of the block go one way at a branch; `operand_shapes` is of the block's
    formation."""
    return branch.operation.name == "bra" and operand_shapes.guard(branch) == UNIFORM


def divergent_blocks(program: Program, operand_shapes: OperandShapes) -> set[int]:
    """Blocks to which some threads of a block may come more often than others."""
    found: set[int] = set()
    for block in program.blocks:
        last = terminator(program, block)
        if can_diverge(last) and not is_uniform_branch(operand_shapes, last):
            point = program.reconvergence[block.index]
            found |= blocks_between(program, block.successors, point)
    return found


def has_uniform_barriers(program: Program) -> bool:
    """Return whether the threads of a block come to its barriers in one order, whatever the launch:
    no branch that they may take differently decides about one. The program keeps the answer."""
    uniform = program.kept.get(has_uniform_barriers)
    if uniform is None:
        operand_shapes = OperandShapes(
            program, WarpLayout.BLOCK, shapes_of(program, WarpLayout.BLOCK).known
        )
        divergent = divergent_blocks(program, operand_shapes)
        uniform = not any(
            _may_skip_barrier(instruction)
            or (block.index in divergent and _is_barrier(instruction))
            for block in program.blocks
            for instruction in program.instructions[block.start : block.stop]
        )
        program.kept[has_uniform_barriers] = uniform
    return bool(uniform)


def _is_barrier(instruction: Instruction) -> bool:
    return instruction.operation.spec.unit is Unit.BARRIER


def _may_skip_barrier(instruction: Instruction) -> bool:
    """Return whether it is a barrier that not all lanes take part in, or a call, which may come to
    any."""
    return instruction.operation.name == "call" or (
        _is_barrier(instruction) and instruction.guard is not None
    )


def is_pure(instruction: Instruction) -> bool:
    """Returns whether it does nothing but compute, in every lane, and looks at no clock."""
    quiet = computes(instruction) or instruction.operation.name in ("mov", "cvta")
    return (
        quiet
        and instruction.guard is None
        and member_mask(instruction) is None
        and not reads_clock([instruction])
    )


def deciding_comparison(program: Program, block: ProgramBlock) -> Instruction | None:
    """Return the comparison in a block that decides the branch at its end, if its operands are then
    what they were."""
    guard = terminator(program, block).guard
    inside = program.instructions[block.start : block.stop - 1]
    writers = [
        i for i, instruction in enumerate(inside) if guard and guard.register in writes(instruction)
    ]
    if not writers:
        return None
    instruction = inside[writers[-1]]
    plain = (
        instruction.operation.name == "setp"
        and len(instruction.operands) == 3
        and instruction.guard is None
    )
    later = {register for one in inside[writers[-1] + 1 :] for register in writes(one)}
    same = (
        plain
        and isinstance(instruction.operands[0], Register)
        and later.isdisjoint(instruction.operands)
    )
    return instruction if same else None
