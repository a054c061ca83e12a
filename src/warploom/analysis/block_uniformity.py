"""Recognizes, by static analysis, branches and barriers that all threads of a thread block execute
alike, and instructions and comparisons that emitted code may move or repeat.

    setp.eq.u32 %p1, %ctaid.x, 0; @%p1 bra b4;   uniform: all threads follow the same path
    setp.eq.u32 %p2, %tid.x, 0;   @%p2 bra b4;   not: up to b4, threads may run different blocks"""

from __future__ import annotations

from warploom.analysis.uniformity import shapes_of
from warploom.isa.instruction import Instruction, Register
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import Unit
from warploom.program.cfg import ProgramBlock, can_diverge
from warploom.program.masked_loops import blocks_between
from warploom.program.program import Program
from warploom.program.uses import is_reducing_barrier, member_mask, reads_clock, writes
from warploom.shapes.operand_shapes import OperandShapes, computes
from warploom.shapes.vector_shape import UNIFORM
from warploom.shapes.warp_layout import WarpLayout


def is_waiting_barrier(instruction: Instruction) -> bool:
    """Returns whether an instruction is an unguarded barrier of the thread block (with or without a
    thread count) or of a warp group that neither only arrives (`arrive`) nor reduces (`red`). False
    for barriers of a cluster."""
    barrier = instruction.operation.spec.unit is Unit.BARRIER and instruction.guard is None
    if instruction.operation.kind is OpKind.CLUSTER_BARRIER:
        return False
    return (
        barrier
        and "arrive" not in instruction.operation.modifiers
        and not is_reducing_barrier(instruction)
    )


def is_unguarded_exit(instruction: Instruction) -> bool:
    """Returns whether an instruction ends each thread that executes it (`Effect.ENDS_THREAD`) and
    has no guard."""
    return instruction.operation.has(Effect.ENDS_THREAD) and instruction.guard is None


def is_uniform_branch(operand_shapes: OperandShapes, branch: Instruction) -> bool:
    """Returns whether an instruction is a `bra` at which all threads of the block follow the same
    path: it has no guard or one that is uniform in `operand_shapes`, those of a layout of the whole
    block."""
    return branch.operation.kind is OpKind.BRANCH and operand_shapes.guard(branch) == UNIFORM


def divergent_blocks(program: Program, operand_shapes: OperandShapes) -> set[int]:
    """Returns the basic blocks that some threads of a block may execute more often than others:
    those on paths from the successors of a branch that is not uniform in the thread block (any
    indexed one) up to its reconvergence point, without that point."""
    divergent: set[int] = set()
    for basic_block in program.blocks:
        last = program.terminator(basic_block)
        if can_diverge(last) and not is_uniform_branch(operand_shapes, last):
            # All threads that have not ended come to that point, however often each went around a
            # loop before it: behind it, this branch makes no difference.
            point = program.reconvergence[basic_block.index]
            divergent |= blocks_between(program, basic_block.successors, point)
    return divergent


def has_uniform_barriers(program: Program) -> bool:
    """Returns whether all threads of a block execute its barriers (also those of a cluster or warp
    group) in the same order in every launch. It holds if no barrier is guarded, none lies between a
    branch at which threads may differ and its reconvergence point, and there is no call. The answer
    is cached in the program."""
    uniform = program.cache.get(has_uniform_barriers)
    if uniform is None:
        operand_shapes = OperandShapes(
            program, WarpLayout.BLOCK, shapes_of(program, WarpLayout.BLOCK).by_register
        )
        divergent = divergent_blocks(program, operand_shapes)
        uniform = not any(
            _may_skip_barrier(instruction)
            or (block.index in divergent and _is_barrier(instruction))
            for block in program.blocks
            for instruction in program.instructions[block.start : block.stop]
        )
        program.cache[has_uniform_barriers] = uniform
    return bool(uniform)


def _is_barrier(instruction: Instruction) -> bool:
    """Returns whether an instruction is one of `Unit.BARRIER`, guarded or not, also one that only
    arrives, or a barrier of a cluster."""
    return instruction.operation.spec.unit is Unit.BARRIER


def _may_skip_barrier(instruction: Instruction) -> bool:
    """Returns whether an instruction is a guarded barrier, or any call: barriers of its callee are
    not followed."""
    return instruction.operation.kind is OpKind.CALL or (
        _is_barrier(instruction) and instruction.guard is not None
    )


def is_pure(instruction: Instruction) -> bool:
    """Returns whether an instruction only computes or moves values of its own lane, in every lane:
    it has no guard, accesses no memory, waits for no lanes, and reads no clock."""
    moves = instruction.operation.kind in (OpKind.MOVE, OpKind.CONVERT_ADDRESS)
    return (
        (moves or computes(instruction))
        and instruction.guard is None
        and member_mask(instruction) is None
        and not reads_clock([instruction])
    )


def deciding_comparison(program: Program, block: ProgramBlock) -> int | None:
    """Returns the number of the `setp` that decides the guarded branch at the end of a block, if
    emitted code can repeat it at the branch. It is the last writer of the guard in the block, is
    unguarded, has one destination and two sources, and no later instruction of the block writes one
    of its registers. None otherwise, or without a guard."""
    guard = program.terminator(block).guard
    inside = program.instructions[block.start : block.stop - 1]
    writers = [
        i for i, instruction in enumerate(inside) if guard and guard.register in writes(instruction)
    ]
    if not writers:
        return None
    instruction = inside[writers[-1]]
    plain = (
        instruction.operation.kind is OpKind.COMPARE
        and len(instruction.operands) == 3
        and instruction.guard is None
    )
    # Code that repeats the comparison at the end of the block reads the same registers: what is
    # written between must be none of them, nor the predicate.
    later = {
        register
        for later_instruction in inside[writers[-1] + 1 :]
        for register in writes(later_instruction)
    }
    unchanged = (
        plain
        and isinstance(instruction.operands[0], Register)
        and later.isdisjoint(instruction.operands)
    )
    return block.start + writers[-1] if unchanged else None
