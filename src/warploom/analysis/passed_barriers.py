"""Finds the barriers that every thread has certainly passed once it executes something with an
effect that all threads execute. The race detector gets them as a flag of the instruction
(`PASSED_BY_ALL`).

    bar.sync 0;           every thread passes it: block 3 post-dominates it and the entry,
    @%p bra 3; ...        and stores
    3: st.global ...; ret;"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.analysis.block_uniformity import has_uniform_barriers, is_uniform_branch
from warploom.analysis.uniformity import shapes_of
from warploom.detector import layout as words
from warploom.isa.kinds import Effect
from warploom.isa.spec import Unit
from warploom.program.cfg import can_diverge
from warploom.program.effects.synchronising import event_of
from warploom.program.masked_loops import blocks_between
from warploom.program.program import Program
from warploom.shapes.operand_shapes import OperandShapes, computes
from warploom.shapes.warp_layout import WarpLayout


def barriers_passed_by_all(program: Program) -> frozenset[int]:
    """Returns the numbers of the barrier instructions after which every thread runs some common
    block: one that post-dominates the barrier's block, is the entry or post-dominates it, and has
    an instruction other than jumps and exits. A thread that executes that instruction has passed
    the barrier.

    These are barriers of a warp; of the thread block only if its threads may execute them in
    different orders (`has_uniform_barriers` is False). Among them are those of `if (c) sync();`,
    whatever follows: a thread that ends early leaves out more than a barrier. Empty for a kernel
    with calls that are not inlined, since the barriers of callees are not followed."""
    if program.depth is not None:
        return frozenset()
    uniform = has_uniform_barriers(program)
    executed_by_all = set(_post_dominators(program, 0)) | {0}
    kinds = (words.WARP_SYNC,) if uniform else (words.WARP_SYNC, words.BARRIER_SYNC)
    barriers = set[int]() if uniform else _lone_barriers(program)
    for basic_block in program.blocks:
        passed = any(
            post_dominator in executed_by_all and _has_effect(program, post_dominator)
            for post_dominator in _post_dominators(program, basic_block.index)
        )
        if passed:
            barriers |= {
                index
                for index in range(basic_block.start, basic_block.stop)
                if event_of(program.instructions[index]) in kinds
            }
    return frozenset(barriers)


def _lone_barriers(program: Program) -> set[int]:
    """Returns the barriers of the thread block that are all that a conditional path does: they lie
    between a branch at which threads of a block may differ and its reconvergence point, and nothing
    else on that path has an effect."""
    registers = shapes_of(program, WarpLayout.BLOCK).by_register
    operand_shapes = OperandShapes(program, WarpLayout.BLOCK, registers)
    barriers = set[int]()
    for branch in program.blocks:
        last = program.terminator(branch)
        if not can_diverge(last) or is_uniform_branch(operand_shapes, last):
            continue
        point = program.reconvergence[branch.index]
        # Each side by itself: nothing may happen on the path with the barrier, whatever the other
        # does.
        for successor in branch.successors:
            path = blocks_between(program, (successor,), point)
            inside = [
                index
                for number in path
                for index in range(program.blocks[number].start, program.blocks[number].stop)
            ]
            if branch.index not in path and not any(_acts(program, index) for index in inside):
                barriers |= {
                    index
                    for index in inside
                    if event_of(program.instructions[index]) == words.BARRIER_SYNC
                }
    return barriers


def _acts(program: Program, index: int) -> bool:
    """Returns whether an instruction that is no barrier of the thread block accesses memory, calls,
    or is executed by another unit; False for the code of barriers in CUDA's own headers, such as
    that of `grid_group::sync`."""
    instruction = program.instructions[index]
    if instruction.operation.spec.unit in (Unit.BARRIER, Unit.CONTROL, Unit.INTEGER):
        return instruction.operation.has(Effect.CALLS)
    location = instruction.location
    return not (computes(instruction) or (location is not None and location.in_toolkit))


def _post_dominators(program: Program, basic_block: int) -> Iterator[int]:
    """Yields the blocks that post-dominate a block, the nearest first, without the block itself and
    the exit."""
    basic_block = program.reconvergence[basic_block]
    while basic_block != program.exit:
        yield basic_block
        basic_block = program.reconvergence[basic_block]


def _has_effect(program: Program, basic_block: int) -> bool:
    """Returns whether a block has an instruction that is neither a jump nor an exit, so that a
    thread which ends early does not execute it."""
    extent = program.blocks[basic_block]
    return any(
        not program.instructions[index].operation.has(Effect.BRANCHES | Effect.ENDS_THREAD)
        for index in range(extent.start, extent.stop)
    )
