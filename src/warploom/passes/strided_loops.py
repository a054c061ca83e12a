"""The pass that selects loops which emitted code runs in batches of iterations, with one check of
accesses per batch (`analysis.strided_loops`).

    12: mul.wide.s32 %rd4, %r5, 4;        computes an address: advances
    13: add.s64 %rd5, %rd1, %rd4;         advances
    14: ld.global.f32 %f1, [%rd5];        strided access
        ...
    20: add.s32 %r5, %r5, %r7;            advances
    21: setp.lt.s32 %p2, %r5, %r1;        compared
    22: @%p2 bra 12;
    ->   strided blocks=b1 advances=12,13,15,18,20 widened=12:0 compared=21:lt accesses=14,16,19

Operand 0 of instruction 12 is widened from 32 to 64 bits: %rd4 is linear in the iterations only as
long as %r5 does not wrap around, which the check of a batch includes.

A batch saves some 25 host instructions for each access group and iteration. It costs a check, and
moves of live registers to and from the stack where it joins ordinary iterations. These cost what it
saves if live registers fill the host's (VECTOR_REGISTERS), or in long loops around few groups
(MOST_INSTRUCTIONS)."""

from __future__ import annotations

from dataclasses import replace

from warploom.analysis.assumed_shapes import assumed_shapes
from warploom.analysis.strided_loops import straight_line_loops, strided_loop
from warploom.ir.access_groups import AccessGroup, find_groups
from warploom.ir.access_plans import Guard
from warploom.ir.loops import BatchedLoop
from warploom.ir.warp_ir import WarpIR
from warploom.shapes.operand_shapes import BlockShapes, OperandShapes
from warploom.shapes.vector_shape import LANES

MOST_INSTRUCTIONS = 64
"""Instructions of an iteration for each group of strided accesses, at most: they cost some ten
times what a batch saves. A loop of 613 around one group (SHA-256) ran 1.12 times as long in
batches."""

VECTOR_REGISTERS = 512
"""Bytes of the host's vector registers: 16 of 32 bytes (x86-64-v3). Batches of polynomials in
doubles, with two live registers of 256 bytes, executed 1.15 times the instructions in loops of five
iterations."""


def find_strided_loops(ir: WarpIR) -> WarpIR:
    """Adds the loops whose accesses are checked and counted once per batch of iterations.

    There are none in code that reports each access or instruction to a log, observer, detector or
    debugger, without shapes, or where accesses are not inlined. A loop is selected
    (`_batched_loop`) on three conditions. At least half of its accesses are strided: any other has
    a check in every iteration, while a fast version of the block has one check for several. It has
    at most MOST_INSTRUCTIONS (64) instructions for each strided group. The registers that are live
    at its header and have a value in each of 32 lanes occupy less than VECTOR_REGISTERS (512)
    bytes."""
    variant = ir.variant
    shown = variant.is_watched or variant.sanitizes is not None or variant.debugging is not None
    if shown or not ir.shapes or not ir.accesses.facts.inlined:
        return ir
    candidates = [
        _batched_loop(ir, blocks) for blocks in straight_line_loops(ir.program, ir.uniformity)
    ]
    return replace(ir, strided_loops=tuple(loop for loop in candidates if loop is not None))


def _batched_loop(ir: WarpIR, blocks: tuple[int, ...]) -> BatchedLoop | None:
    """Returns the batched loop of some blocks: the loop, the shapes that registers have in a batch
    alone, and all access groups, strided or not, with plans that need no second version of their
    block. None if a block defers stores, if the shapes that the loop assumes do not hold, or if no
    access is strided. None as well if a batch would not pay: less than half of the accesses are
    strided, the loop has more than MOST_INSTRUCTIONS instructions for each strided group, or its
    live registers fill the host's vector registers."""
    # Deferred stores need the slow version of their block, and a batch has one version alone.
    if any(ir.blocks[block].accesses.defers for block in blocks):
        return None
    program, warp_layout = ir.program, ir.variant.warp_layout
    shapes = assumed_shapes(program, warp_layout, ir.uniformity, blocks, ir.live(blocks[0]))
    if shapes is None or _live_bytes(ir, blocks[0], shapes) >= VECTOR_REGISTERS:
        return None
    operand_shapes, accesses = OperandShapes(program, warp_layout, shapes), ir.accesses
    # Found again, not taken from the blocks: in a batch registers may be affine that are varying in
    # the header (`assumed_shapes`), so that accesses have other groups and plans.
    groups = [
        group
        for block in blocks
        for group in find_groups(accesses, operand_shapes, program.blocks[block])
    ]
    firsts = [group.members[0][0] for group in groups if _may_advance(ir, group)]
    loop = strided_loop(operand_shapes, blocks, firsts)
    if loop is None:
        return None
    together = [group for group in groups if group.members[0][0] in loop.accesses]
    length = sum(program.blocks[block].stop - program.blocks[block].start for block in blocks)
    few = 2 * sum(map(_size, together)) < sum(map(_size, groups))
    if few or length > MOST_INSTRUCTIONS * len(together):
        return None
    header = ir.uniformity.at(blocks[0])
    assumed = {register: shape for register, shape in shapes.items() if register not in header}
    fitted = tuple(replace(group, plan=group.plan.in_one_version()) for group in groups)
    return BatchedLoop(loop, assumed, fitted)


def _live_bytes(ir: WarpIR, header: int, shapes: BlockShapes) -> int:
    """Returns the bytes of the registers that are live at a loop's header and have none of the
    vector shapes of a batch, so that each of 32 lanes has a value."""
    varying = ir.live(header) - shapes.keys()
    return sum(LANES * register.type.bits for register in varying) // 8


def _size(group: AccessGroup) -> int:
    """Returns how many accesses a group has."""
    return len(group.members)


def _may_advance(ir: WarpIR, group: AccessGroup) -> bool:
    """Returns whether one check of a group can cover many iterations: it is guarded by the range
    cache, and none of its instructions has a guard."""
    guarded = any(ir.program.instructions[index].guard is not None for index, _ in group.members)
    return group.plan.guard is Guard.CACHE and not guarded
