"""Computes the shapes of registers inside a loop (uniform, affine or varying), assuming that
registers which an earlier loop left varying are affine again where this loop begins. Emitted code
checks the assumption once, before the loop.

Where lanes may have left an earlier loop in different iterations, the registers that it advances
are varying after it: `i` in the loop that a compiler puts before an unrolled one, for the remaining
iterations. In most warps all lanes have left together, and `i` is still affine:

    remainder loop: i += 1               i affine<1> inside, varying after
    unrolled loop:  i += 4; x[i], ...    assumed: i affine<1>, checked once"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from warploom.isa.instruction import Register
from warploom.program.program import Program
from warploom.shapes.operand_shapes import BlockShapes, OperandShapes, RegisterShapes
from warploom.shapes.vector_shape import VARYING, VectorShape
from warploom.shapes.warp_layout import WarpLayout


def assumed_shapes(
    program: Program,
    warp_layout: WarpLayout,
    shapes: RegisterShapes,
    blocks: tuple[int, ...],
    live: Iterable[Register],
) -> BlockShapes | None:
    """Returns the shapes of registers in a loop (`blocks`, the header first), assumed to be the
    same in all its blocks. Registers in `live` (those live at the header), and those not varying in
    the header, enter it with their shape of `shapes.by_register` (if varying in the header, without
    what is known of its bits). An assumption about a register to which the loop gives another shape
    is dropped, and the loop is evaluated again. Returns None if a dropped register is not varying
    in some block of the loop by `shapes` alone."""
    header_shapes, inside = shapes.at(blocks[0]), set(live)
    entry_shapes = {
        # Where a register is varying, nothing is known of what its writers begin runs with.
        r: shape if r in header_shapes else replace(shape, ones=-1)
        for r, shape in shapes.by_register.items()
        if r in inside or r in header_shapes
    }
    varying: set[Register] = set()
    # Each round drops the assumption about one register that did not retain its shape.
    while (
        shapes_inside := _shapes_inside(program, warp_layout, entry_shapes, blocks, varying)
    ) is None:
        if any(register in shapes.at(index) for index in blocks for register in varying):
            return None
        entry_shapes = {r: shape for r, shape in entry_shapes.items() if r not in varying}
    return shapes_inside


def _shapes_inside(
    program: Program,
    warp_layout: WarpLayout,
    entry_shapes: BlockShapes,
    blocks: tuple[int, ...],
    varying: set[Register],
) -> dict[Register, VectorShape] | None:
    """Returns the shapes of registers in a loop entered with `entry_shapes`, by one pass over its
    instructions: a register without an entry shape gets that of its first result, or stays out if
    that is varying. Returns None at the first result of another shape than its register has so far;
    that register is then added to `varying`, whose registers are skipped."""
    # One pass proves the shapes for every iteration, by induction: if the registers have these at
    # the header, each result has its register's shape again, so they have them at the next header.
    shapes_here, written = dict(entry_shapes), set[Register]()
    operand_shapes = OperandShapes(program, warp_layout, shapes_here)
    for index in blocks:
        block = program.blocks[index]
        for instruction in program.instructions[block.start : block.stop]:
            for register, shape in operand_shapes.results(instruction):
                if register in varying:
                    continue
                is_first_result = register not in written and register not in entry_shapes
                if is_first_result and shape.is_affine:
                    shapes_here[register] = shape
                elif shapes_here.get(register, VARYING) != shape:
                    varying.add(register)
                    return None
                written.add(register)
    return shapes_here
