"""Computes the shapes of a program's registers (uniformity analysis: uniform, affine or varying in
a warp), for code that converged lanes execute.

Shapes are a fixed point over all writers of a register. Where lanes diverge and reconverge, those
that followed one path may hold other values than those that followed the other, or have left a loop
in another iteration. So a register that either path writes, and that is live at the reconvergence
point, is varying on both paths and after the point, until it is written again (Coutinho et al.,
"Divergence Analysis and Optimizations", 2011, on sync and temporal divergence):

    mov.u32 %r2, 0;                  uniform
    setp.lt.s32 %p1, %tid.x, %r9;    varying: lanes diverge at the branch
    @!%p1 bra L;
    mov.u32 %r2, 1;                  varying, for it is live at L
    L: add.u32 %r3, %r2, 1;          varying

In masked regions (`program.masked_loops`) registers retain their shapes: the lanes that are still
inside have all taken the same path."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

from warploom.core.types import U32
from warploom.isa.instruction import Instruction, Register
from warploom.isa.kinds import OpKind
from warploom.program.cfg import ProgramBlock, can_diverge
from warploom.program.masked_loops import MaskedRegion, blocks_between, masked_regions
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.shapes.operand_shapes import OperandShapes, RegisterShapes
from warploom.shapes.vector_shape import UNIFORM, VARYING, VectorShape
from warploom.shapes.warp_layout import BLOCK_WIDE, WarpLayout

VaryingByBlock = list[set[Register]]
"""Holds for each block the registers that are varying there."""


def shapes_of(
    program: Program, warp_layout: WarpLayout, regions: tuple[MaskedRegion, ...] | None = None
) -> RegisterShapes:
    """Returns the shapes of a program's registers in launches with a layout of warps.

    A layout of a whole thread block has no masked regions and no blocks in which a register is
    varying: its threads are in different blocks at once, so a register has its shape everywhere or
    nowhere. `regions` are those that lanes may leave separately; None: all
    (`program.masked_loops`). The result retains those of them whose exits can diverge. Registers
    are in the order of their declarations."""
    block_wide = warp_layout in BLOCK_WIDE
    if block_wide:
        regions = ()
    elif regions is None:
        regions = masked_regions(program)
    varying_by_block: VaryingByBlock = [set() for _ in program.blocks]
    # Divergence depends on shapes and shapes on divergence: alternate until no register becomes
    # varying in another block. Each round only adds to `varying_by_block`, so it ends.
    while True:
        shapes = _fixed_point(program, warp_layout, varying_by_block)
        masked: list[MaskedRegion] = []
        lost_shape = list(
            _joined_varying(program, warp_layout, shapes, varying_by_block, regions, masked)
        )
        # Two threads of the block may be in different blocks at once, one before the register loses
        # its shape and one after: it must not have one anywhere.
        if block_wide:
            everywhere = {register for _, register in lost_shape}
            lost_shape = [
                (basic_block.index, r) for basic_block in program.blocks for r in everywhere
            ]
        if all(register in varying_by_block[basic_block] for basic_block, register in lost_shape):
            break
        _to_varying(program, varying_by_block, lost_shape)
    affine = {r: shapes[r] for r in program.registers if r in shapes and shapes[r].is_affine}
    varying = tuple(frozenset(affine.keys() & here) for here in varying_by_block)
    if block_wide:
        affine = {
            r: shape
            for r, shape in affine.items()
            if not any(r in here for here in varying_by_block)
        }
        varying = ()
    return RegisterShapes(affine, varying, tuple(masked))


def _fixed_point(
    program: Program, warp_layout: WarpLayout, varying_by_block: VaryingByBlock
) -> dict[Register, VectorShape]:
    """Returns the shape of each register in the blocks where it is not overridden: the join over
    the results of all of its writers. While a block is evaluated, the registers that
    `varying_by_block` has for it count as varying; the returned shapes do not include these
    overrides, which the caller applies block by block.

    Registers that are read before they are written begin as zeros, which are uniform. A register is
    missing if no writer of it ever has shapes of all its operands."""
    begun = program.live_in[0] if program.live_in else frozenset[Register]()
    shapes: dict[Register, VectorShape] = dict.fromkeys(begun, UNIFORM)
    operand_shapes = OperandShapes(program, warp_layout, shapes)
    read = [tuple(reads(instruction)) for instruction in program.instructions]
    # The shapes of what each instruction reads, as they were when its results were last joined:
    # joining the same results again would change nothing. Most operands get their shapes early.
    joined: list[list[VectorShape] | None] = [None] * len(program.instructions)
    pending = True
    # Ends, for shapes only rise in the lattice: from none to affine, to more and shorter runs, to
    # varying; and bits are only added to `ones`, all from the lowest on where they differ.
    while pending:
        pending = False
        for block in program.blocks:
            varying = varying_by_block[block.index]
            # Registers that are varying in this block are so for its instructions only: their
            # shapes elsewhere are restored after it.
            saved = {register: shapes[register] for register in varying if register in shapes}
            shapes.update(dict.fromkeys(varying, VARYING))
            for index in range(block.start, block.stop):
                operands = [shapes[register] for register in read[index] if register in shapes]
                # Without a shape of all operands, results are still unknown (bottom), which the
                # join must not take for varying.
                is_known = len(operands) == len(read[index])
                if is_known and not _are_same(operands, joined[index]):
                    joined[index] = operands
                    instruction = program.instructions[index]
                    pending |= _join(shapes, operand_shapes.results(instruction), varying)
            # Deleted first: a register that had no shape before this block has none after it.
            for register in varying:
                del shapes[register]
            shapes.update(saved)
    return shapes


def _are_same(shapes: list[VectorShape], before: list[VectorShape] | None) -> bool:
    """Returns whether two lists of one length hold the same objects, False if `before` is None:
    comparing shapes is slower, and equal ones may differ in what is known of their bits."""
    return before is not None and all(map(operator.is_, shapes, before))


def _join(
    shapes: dict[Register, VectorShape],
    results: Iterable[tuple[Register, VectorShape]],
    varying: set[Register],
) -> bool:
    """Joins an instruction's results into `shapes`, but for registers in `varying`; returns whether
    that changes a shape or the bits that it may have (`ones`)."""
    changed = False
    for register, shape in results:
        old = shapes.get(register)
        new = shape if old is None else old.join(shape)
        is_old = old is not None and (old, old.ones) == (new, new.ones)
        if not is_old and register not in varying:
            shapes[register] = new
            changed = True
    return changed


def _to_varying(
    program: Program, varying_by_block: VaryingByBlock, lost_shape: Iterable[tuple[int, Register]]
) -> None:
    """Adds registers to `varying_by_block` in the blocks of `lost_shape`, and in all blocks after
    these up to which they are live."""
    pending = list(lost_shape)
    while pending:
        at, register = pending.pop()
        if register not in varying_by_block[at]:
            varying_by_block[at].add(register)
            successors = program.blocks[at].successors
            further = (successor for successor in successors if successor != program.exit)
            pending.extend(
                (successor, register)
                for successor in further
                if register in program.live_in[successor]
            )


def _joined_varying(
    program: Program,
    warp_layout: WarpLayout,
    shapes: dict[Register, VectorShape],
    varying_by_block: VaryingByBlock,
    regions: tuple[MaskedRegion, ...],
    masked: list[MaskedRegion],
) -> Iterator[tuple[int, Register]]:
    """Yields (block, register) where a register becomes varying because lanes that diverged wrote
    it, and it is live where they reconverge: in the blocks between the branch and the reconvergence
    point, and at that point. Yields nothing if the point is the program's end. Pairs may repeat.

    `regions` are the regions that may be lowered as masked loops. When first advanced, the
    generator appends to `masked` those whose exits diverge. Where lanes diverge at an exit of a
    region in `masked`, it yields only the registers that the region merges, at the reconvergence
    point."""
    diverging = [
        block
        for block in program.blocks
        if _may_diverge(program, warp_layout, shapes, varying_by_block, block)
    ]
    varying = {block.index for block in diverging}
    masked.extend(region for region in regions if not varying.isdisjoint(region.exits))
    for block in diverging:
        point = program.reconvergence[block.index]
        # Nothing is live at the end of the program, so no lane reads what another path wrote.
        if point == program.exit:
            continue
        # Inside a masked region all active lanes have followed one path: its registers keep their
        # shapes there. Lanes that left earlier have older values, which meet the others' after it.
        region = next((region for region in masked if block.index in region.exits), None)
        if region is not None:
            yield from ((point, register) for register in region.merged)
            continue
        inside = blocks_between(program, block.successors, point)
        instructions = (
            i for index in inside for i in _instructions_of(program, program.blocks[index])
        )
        written = {register for instruction in instructions for register in writes(instruction)}
        for register in written & program.live_in[point]:
            yield from ((index, register) for index in (*inside, point))


def _instructions_of(program: Program, block: ProgramBlock) -> tuple[Instruction, ...]:
    """Returns the instructions of a basic block, in program order."""
    return program.instructions[block.start : block.stop]


def _may_diverge(
    program: Program,
    warp_layout: WarpLayout,
    shapes: dict[Register, VectorShape],
    varying_by_block: VaryingByBlock,
    block: ProgramBlock,
) -> bool:
    """Returns whether lanes may diverge at the end of a block: it ends with a branch whose guard,
    or index, is not uniform there."""
    last = program.instructions[block.stop - 1]
    if not can_diverge(last):
        return False
    here = {
        r: shapes[r] for r in reads(last) if r in shapes and r not in varying_by_block[block.index]
    }
    operand_shapes = OperandShapes(program, warp_layout, here)
    agrees = operand_shapes.guard(last) == UNIFORM
    if last.operation.kind is OpKind.INDEXED_BRANCH:
        return not agrees or operand_shapes.shape(last.operands[0], U32) != UNIFORM
    return not agrees
