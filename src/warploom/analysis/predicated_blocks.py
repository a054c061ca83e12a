"""Finds short `if` bodies without `else` that emitted code runs under a mask (if-conversion), while
the other lanes wait.

    0: @!%p bra 2;           result: {0: 1}
    1: add.f32 %f1, ...;     body: runs under the mask %p
    2: ...                   reconvergence point

Registers retain their shapes in the body, and nothing is pushed on the SIMT stack. Not handled:
bodies with branches, barriers or votes, and bodies longer than LONGEST_PREDICATED_BLOCK.
"""

from __future__ import annotations

from collections.abc import Iterable

from warploom.isa.instruction import Instruction, flatten_operands
from warploom.isa.kinds import Effect
from warploom.isa.spec import Unit
from warploom.isa.terms import Term
from warploom.program.cfg import ProgramBlock, range_without_branch
from warploom.program.masked_loops import LONGEST_PREDICATED_BLOCK
from warploom.program.program import Program
from warploom.program.uses import member_mask
from warploom.shapes.operand_shapes import OperandShapes, RegisterShapes, computes
from warploom.shapes.warp_layout import WarpLayout


def predicated_blocks(
    program: Program, warp_layout: WarpLayout, shapes: RegisterShapes
) -> dict[int, int]:
    """Returns the bodies of `if`s without `else` (`if_bodies`) that are short and can run under a
    mask (`_is_predicable`), each by the number of the block that ends with the branch around it."""
    blocks = program.blocks
    bodies = if_bodies(program)
    shapes_by_body = {
        body: OperandShapes(program, warp_layout, shapes.at(body)) for body in bodies.values()
    }
    return {
        at: body
        for at, body in bodies.items()
        if _is_predicable(program, blocks[body], shapes_by_body[body])
    }


def if_bodies(program: Program) -> dict[int, int]:
    """Returns, by the block that ends with a branch, the body of an `if` without `else`, whatever
    its instructions: one block, entered only by the branch, that leads to the reconvergence point.
    All three follow each other in program order; an `if` that reconverges at the exit is left
    out."""
    sources: dict[int, list[int]] = {}
    for block in program.blocks:
        for to in block.successors:
            sources.setdefault(to, []).append(block.index)
    bodies: dict[int, int] = {}
    for block in program.blocks:
        point = program.reconvergence[block.index]
        # Without `else`, one successor is the reconvergence point itself.
        inner = [target for target in block.successors if target != point]
        if len(block.successors) != 2 or len(inner) != 1 or point == program.exit:
            continue
        # The virtual exit is no block: `block` stands for it, which fails the tests below.
        body = program.blocks[inner[0]] if inner[0] < program.exit else block
        # Entered from elsewhere, the body would be run by lanes for which the mask says nothing.
        alone = sources[body.index] == [block.index]
        forward = body.successors == (point,) and block.index < body.index < point
        if alone and forward:
            bodies[block.index] = body.index
    return bodies


def _is_predicable(program: Program, body: ProgramBlock, operand_shapes: OperandShapes) -> bool:
    """Returns whether a body has at most LONGEST_PREDICATED_BLOCK (24) instructions, all of which
    can run under a mask (`_can_be_masked`). A branch at its end is left out of both."""
    inside = [
        program.instructions[index] for index in range_without_branch(program.instructions, body)
    ]
    return len(inside) <= LONGEST_PREDICATED_BLOCK and all(
        _can_be_masked(instruction, operand_shapes) for instruction in inside
    )


def _can_be_masked(instruction: Instruction, operand_shapes: OperandShapes) -> bool:
    """Returns whether an instruction can run under a mask: it has no member mask, is no control or
    barrier instruction, does not end a block, and does not need a check for wrap-around, which
    would leave the block."""
    spec = instruction.operation.spec
    if instruction.operation.has(Effect.ENDS_BASIC_BLOCK) or spec.unit in (
        Unit.CONTROL,
        Unit.BARRIER,
    ):
        return False
    return member_mask(instruction) is None and not may_wrap(instruction, operand_shapes)


def may_wrap(instruction: Instruction, operand_shapes: OperandShapes) -> bool:
    """Returns whether a result of an instruction is affine only if no lane of an operand wraps
    around: some term of it extends a value with a stride to more bits. Emitted code then checks the
    operand."""
    if not computes(instruction) or not any(
        shape.is_affine for _, shape in operand_shapes.results(instruction)
    ):
        return False
    shapes = operand_shapes.terms(instruction)
    sources = tuple(
        flatten_operands(instruction.operands[len(instruction.operation.spec.destinations) :])
    )
    return any(
        node.op == "extend" and shapes.shape(node.args[0]).stride
        for term in instruction.operation.terms_for(len(sources))
        for node in _nodes(term)
    )


def _nodes(term: Term) -> Iterable[Term]:
    """Yields all nodes of a term, itself first."""
    yield term
    for argument in term.args:
        yield from _nodes(argument)
