"""Checks the facts of a Warp IR on registers: that each has at least the shape of every result
written to it, and that masked regions are entered and left as it states.

    %r4 .b32 affine<1>    -> an error, if an operation of the block writes %r4 with a stride of 4
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.analysis.scattered import scattered_registers
from warploom.ir.warp_ir import WarpIR
from warploom.program.masked_loops import MaskedRegion, written_after_exits
from warploom.program.regions import predecessors
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.vector_shape import UNIFORM, VARYING, WIDTHS
from warploom.shapes.warp_layout import BLOCK_LAYOUT


def register_errors(ir: WarpIR) -> Iterator[str]:
    """Yields undeclared registers, registers that are varying in a block and have no shape in
    others, shapes that operations or the entry contradict, other `scattered` registers than the
    analysis finds (none are right, too), and wrong masked regions."""
    declared = frozenset(ir.program.registers)
    for name, registers in (
        ("shapes", ir.shapes),
        ("block shapes", ir.block_shapes),
        ("spilled", ir.spilled),
        ("scattered", ir.scattered),
    ):
        if not declared.issuperset(registers):
            yield f"its list `{name}` contains a register that is not declared"
    if not all(ir.shapes.keys() >= block.varying for block in ir.blocks):
        yield "a block lists a register as varying, but the register has no shape in the kernel"
    yield from _shape_errors(ir)
    lasting = {r: shape for r, shape in ir.shapes.items() if r in ir.uniformity.lasting}
    # The set only chooses between ways to access memory that are both correct; another one is an
    # error nevertheless, so that an IR read from text is what the passes would have made.
    if ir.scattered and ir.scattered != scattered_registers(
        ir.program, ir.variant.warp_layout, lasting
    ):
        yield "its list `scattered` does not match the registers that the analysis finds"
    before = predecessors(ir.program)
    for region in ir.exits:
        yield from (
            f"masked region of b{region.header}: {error}"
            for error in _region_errors(ir, region, before)
        )


def _shape_errors(ir: WarpIR) -> Iterator[str]:
    """Yields registers with shapes that do not exist, or live at the kernel's entry with a shape
    that does not cover their 0 in all lanes; and operations whose result is not covered by its
    register's shape, in its warp (`shapes`) or thread block (`block_shapes`)."""
    # A register that may be read before it is written begins as 0 in all lanes, which is uniform:
    # its shape has to allow that as well.
    begun = ir.program.live_in[0] if ir.program.live_in else ()
    for register, shape in (*ir.shapes.items(), *ir.block_shapes.items()):
        if not (shape.is_affine and {shape.width, shape.runs} <= WIDTHS):
            yield (
                f"{register.name} has an invalid shape: {shape.width} values describe "
                f"{shape.runs} runs of lanes"
            )
        elif register in begun and UNIFORM.join(shape) != shape:
            yield f"{register.name} is zero in all lanes at entry, which its shape does not allow"
    block_layout = BLOCK_LAYOUT.get(ir.variant.warp_layout)
    for basic_block in ir.program.blocks:
        at_block = ir.uniformity.at(basic_block.index)
        readings = [OperandShapes(ir.program, ir.variant.warp_layout, at_block)]
        if block_layout is not None and ir.block_shapes:
            readings.append(OperandShapes(ir.program, block_layout, ir.block_shapes))
        for operand_shapes in readings:
            for index in range(basic_block.start, basic_block.stop):
                for register, shape in operand_shapes.results(ir.program.instructions[index]):
                    claimed = operand_shapes.shapes.get(register, VARYING)
                    # In the lattice of shapes the claim has to be at or above the result: joining
                    # the result into it changes nothing. So a claim may say less than is true,
                    # never more.
                    covers = shape.join(claimed) == claimed
                    if covers and claimed.is_affine:
                        covers = shape.ones_in(claimed.runs) | claimed.ones == claimed.ones
                    if not covers:
                        yield f"operation {index} gives {register.name} a different shape"


def _region_errors(ir: WarpIR, region: MaskedRegion, before: list[list[int]]) -> Iterator[str]:
    """Yields what is wrong with a masked region: it is entered at a block other than its header;
    the blocks that leave it are not its `exits`, or lead to a block other than its point; or the
    registers that are written, or have to be merged, are not those that it states. `before` are the
    predecessors of each block."""
    program, inside = ir.program, region.blocks
    # Block 0 has an entry without an edge: the kernel's.
    entered = {b for b in inside if b == 0 or not inside.issuperset(before[b])}
    exiting = {b for b in inside if not inside.issuperset(program.blocks[b].successors)}
    targets = {to for block in exiting for to in program.blocks[block].successors}
    if entered | {region.header} != {region.header} or region.header not in inside:
        yield "its list of entry blocks is wrong"
    if exiting != set(region.exits):
        yield "its list of exit blocks is wrong"
    if targets - inside != {region.point}:
        yield f"b{region.point} is not its only successor"
    if region.written != written_after_exits(program, inside, region.exits):
        yield "it lists the wrong registers as written after some lanes have left"
    if region.merged != region.written & ir.live(region.point):
        yield "it lists the wrong registers as merged at its exit"
