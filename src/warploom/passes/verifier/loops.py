"""Yields what is wrong with the loops of a Warp IR (strided loops, warp loops, static schedule).
Each block has to lead to the next; each operation of a warp loop has to have a kind; accesses have
to be in groups with the plans of the table; and the condition of a body has to hold in the first
threads.

    warp loop b1, b3, where b1 ends in `bra b2`    -> an error, for b1 does not lead to b3
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from warploom.analysis.strided_loops import strided_loop
from warploom.ir.access_groups import AccessGroup, by_instruction
from warploom.ir.access_plans import Exit, Guard
from warploom.ir.loops import BatchedLoop, StepKind, WarpLoop, WarpLoopPath
from warploom.ir.warp_ir import WarpIR
from warploom.passes.verifier.accesses import group_errors
from warploom.program.program import Program
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.prefix_comparisons import rising_comparison
from warploom.shapes.warp_layout import BLOCK_LAYOUT


def loop_errors(ir: WarpIR) -> Iterator[str]:
    """Yields what is wrong with the strided loops of an IR, its warp loops, and those of its static
    schedule."""
    for batched in ir.strided_loops:
        yield from (f"strided loop: {error}" for error in _strided_errors(ir, batched))
    for path in chain(ir.warp_loops, ir.static_schedule):
        yield from (f"warp loop: {error}" for error in _path_errors(ir, path))


def _strided_errors(ir: WarpIR, batched: BatchedLoop) -> Iterator[str]:
    """Yields what is wrong with a batched loop. If its blocks are no loop, it yields only that.
    Else it yields groups that are none with the shapes that the loop assumes, or that leave a fast
    version; accesses that the range cache does not guard; and that the analysis (`strided_loop`)
    finds another loop from its accesses."""
    program, loop = ir.program, batched.loop
    if not loop.blocks or not _follow(program, (*loop.blocks, loop.blocks[0])):
        yield "its blocks do not form a loop"
        return
    shapes = {**ir.uniformity.at(loop.header), **batched.shapes}
    operand_shapes = OperandShapes(program, ir.variant.warp_layout, shapes)
    inside = [program.blocks[index] for index in loop.blocks]
    operations = [at for block in inside for at in range(block.start, block.stop)]
    yield from group_errors(ir, operand_shapes, operations, batched.groups)
    cached = {g.members[0][0] for g in batched.groups if g.plan.guard is Guard.CACHE}
    yield from _exit_errors(batched.groups)
    if not cached.issuperset(loop.accesses):
        yield "one of its accesses is not guarded by the range cache"
    elif strided_loop(operand_shapes, loop.blocks, list(loop.accesses)) != loop:
        yield "its list of accesses with advancing addresses is wrong"


def _exit_errors(groups: Iterable[AccessGroup]) -> Iterator[str]:
    """Yields groups that leave a fast version, which loops do not have."""
    for group in groups:
        if group.plan.exit is Exit.SLOW_VERSION:
            yield f"the accesses {group.members} exit to a slow version, which loops do not have"


def _path_errors(ir: WarpIR, path: WarpLoopPath) -> Iterator[str]:
    """Yields what is wrong with the path of a warp loop. If a block is no successor of the one
    before, or its site is no block, it yields only that. Else it yields that the path begins
    elsewhere than after its site; that its body does not lead from `before` to `after`; operations
    within a block that have no kind; choices of no branch of it, or that contradict the next block;
    and errors of its accesses and its condition."""
    program = ir.program
    body = () if path.body is None else (path.body,)
    if not path.before or not _follow(program, path.before) or not _follow(program, path.after):
        yield "one of its blocks is not a successor of the previous block"
        return
    if path.site not in (None, *range(program.exit)):
        yield "its site is a block that does not exist"
        return
    entry_block = 0 if path.site is None else program.blocks[path.site].successors[-1]
    if path.before[0] != entry_block:
        yield "its first block is not the block after its site"
    if body and not _follow(program, (path.before[-1], *body, *path.after[:1])):
        yield "its body does not follow its condition"
    inside = [program.blocks[index] for index in (*path.before, *body, *path.after)]
    inner = {at for block in inside for at in range(block.start, block.stop)}
    ends = {block.stop - 1 for block in inside}
    # The last operation of a block has no kind if it is a jump or a barrier, and has one if the
    # block ends because another begins after it.
    if not inner - ends <= path.kinds.keys() <= inner:
        yield "one of its operations has no kind"
    for at, following in pairwise((*path.before, *path.after)):
        last, (taken, *_) = program.blocks[at].stop - 1, program.blocks[at].successors
        if last in path.choices and path.choices[last] != (following == taken):
            yield f"b{following} is not the target of operation {last}"
    if not path.choices.keys() <= ends:
        yield "it specifies a branch choice for an operation that is not a branch"
    yield from _path_access_errors(ir, path, inner)


def _path_access_errors(ir: WarpIR, path: WarpLoopPath, inner: set[int]) -> Iterator[str]:
    """Yields what is wrong with the accesses and the condition of a warp loop. Each access has to
    be in a group or in `partial`. Groups must not leave a fast version. `allows_partial_warp` and
    `partial` need a body that a partial warp may run. The loop has a condition exactly if it has a
    body, and the condition has to compare a value that rises by 1 from thread to thread with a
    uniform one. `inner` are the operations of the loop."""
    warp_loop = WarpLoop.along(path, ir.program)
    yield from _exit_errors((*path.groups, *path.partial))
    accesses = {index for index, kind in path.kinds.items() if kind is StepKind.ACCESS}
    if not warp_loop.extrapolated <= accesses:
        yield "its groups contain an operation that is not an access in the loop"
    elif not accesses <= {*warp_loop.extrapolated, *by_instruction(path.partial)}:
        yield "one of its accesses is not in any group"
    for index in (*warp_loop.blocks, *warp_loop.body_blocks):
        block, operand_shapes = ir.program.blocks[index], ir.operand_shapes(index)
        operations = range(block.start, block.stop)
        groups = [group for group in path.groups if group.members[0][0] in operations]
        yield from group_errors(ir, operand_shapes, operations, groups)
        groups = [group for group in path.partial if group.members[0][0] in operations]
        yield from group_errors(ir, operand_shapes, operations, groups)
    if path.allows_partial_warp and path.body is None:
        yield "it allows partial warps but has no body"
    elif path.partial and not path.allows_partial_warp:
        yield "it has accesses for partial warps but does not allow partial warps"
    elif path.partial and path.body is not None:
        # The loop only looks up entries of the range cache; the predicated block fills them.
        filled = {group.members for group in ir.blocks[path.body].masked.groups}
        if not {group.members for group in path.partial} <= filled:
            yield "its groups for partial warps differ from those of the predicated block"
    has_condition = path.condition in inner
    if has_condition != (path.body is not None):
        yield "it has a body without a condition, or a condition without a body"
    elif path.condition is not None:
        layout = BLOCK_LAYOUT[ir.variant.warp_layout]
        operand_shapes = OperandShapes(ir.program, layout, ir.block_shapes)
        if rising_comparison(operand_shapes, ir.program.instructions[path.condition]) is None:
            yield "its condition does not compare the thread's rank with a limit"


def _follow(program: Program, blocks: Sequence[int]) -> bool:
    """Returns whether each block, all but the last being blocks of the program, has the next one
    among its successors."""
    return all(
        0 <= at < program.exit and to in program.blocks[at].successors
        for at, to in pairwise(blocks)
    )
