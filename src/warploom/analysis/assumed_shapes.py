"""Finds the shapes that registers have in a loop if those that it begins with have theirs.

Where lanes may have left an earlier loop in different iterations, the registers that it steps on
have no shape behind it: `i` of the loop that a compiler puts before an unrolled one, for the
iterations that are left over. In most warps all lanes have left together, and `i` still rises from
lane to lane. That can be looked at where the loop begins, for all of its iterations.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.analysis.shape_transfer import BlockShapes, OperandShapes, RegisterShapes, WarpLayout
from warploom.analysis.vector_shape import VARYING, VectorShape
from warploom.program.program import Program
from warploom.ptx.ir import Register


def assumed_shapes(
    program: Program,
    warp_layout: WarpLayout,
    shapes: RegisterShapes,
    blocks: tuple[int, ...],
    live: Iterable[Register],
) -> BlockShapes | None:
    """Returns the shapes of registers in all blocks of a loop, if those `live` at its header that
    have a shape elsewhere have it there; None where a register would lose the shape that it has
    in a block as it is."""
    kept, inside = shapes.at(blocks[0]), set(live)
    entry_shapes = {r: shape for r, shape in shapes.known.items() if r in inside or r in kept}
    varying: set[Register] = set()
    while (found := _shapes_inside(program, warp_layout, entry_shapes, blocks, varying)) is None:
        if any(register in shapes.at(index) for index in blocks for register in varying):
            return None
        entry_shapes = {r: shape for r, shape in entry_shapes.items() if r not in varying}
    return found


def _shapes_inside(
    program: Program,
    warp_layout: WarpLayout,
    entry_shapes: BlockShapes,
    blocks: tuple[int, ...],
    varying: set[Register],
) -> dict[Register, VectorShape] | None:
    """Returns the shapes that registers have all the time, in a loop that begins with some; None
    where one does not keep its shape, which is then `varying`."""
    shapes_here, written = dict(entry_shapes), set[Register]()
    operand_shapes = OperandShapes(program, warp_layout, shapes_here)
    for index in blocks:
        block = program.blocks[index]
        for instruction in program.instructions[block.start : block.stop]:
            for register, shape in operand_shapes.results(instruction):
                if register in varying:
                    continue
                first = register not in written and register not in entry_shapes
                if first and shape.is_affine:
                    shapes_here[register] = shape
                elif shapes_here.get(register, VARYING) != shape:
                    varying.add(register)
                    return None
                written.add(register)
    return shapes_here
