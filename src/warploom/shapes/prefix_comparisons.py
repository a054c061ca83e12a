"""Recognizes comparisons of an affine value of stride 1 with a uniform one: the lanes in which they
hold are a prefix of the warp, its complement, or one lane.

    setp.lt.s32 %p1, %tid.x, %r1;   ->   ("lt", %tid.x, %r1)
    setp.gt.s32 %p1, %r1, %tid.x;   ->   the same

Not handled: comparisons with a Boolean operand, of other strides, and of other types than 32-bit
integers.
"""

from __future__ import annotations

from warploom.isa.instruction import Instruction, Operand
from warploom.isa.kinds import OpKind
from warploom.shapes.operand_shapes import OperandShapes
from warploom.shapes.vector_shape import UNIFORM, VectorShape

RISING = VectorShape(1, 1)

_PLAIN = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
COMPLEMENTS = {"gt": "le", "ge": "lt", "ne": "eq"}
"""Comparisons whose mask is the complement of another comparison's."""

_OPPOSITES = COMPLEMENTS | {b: a for a, b in COMPLEMENTS.items()}


def rising_comparison(
    operand_shapes: OperandShapes, instruction: Instruction
) -> tuple[str, Operand, Operand] | None:
    """Returns the comparison of a `setp` ("lt", "ge" ..., for unsigned types, too), the operand
    that rises by 1 from lane to lane, and the uniform one, as if the rising one stood on the left.
    None for another instruction, a type other than a 32-bit integer, a Boolean operand, or operands
    of other shapes. `operand_shapes` has the shapes of operands."""
    modifiers = instruction.operation.modifiers
    if instruction.operation.kind is not OpKind.COMPARE or "bool" in modifiers:
        return None
    type = modifiers.scalar()
    if not type.is_integer or type.bits != 32:
        return None
    comparison = str(modifiers["cmp"])
    comparison, (first, second) = _PLAIN.get(comparison, comparison), instruction.operands[1:3]
    shapes = [operand_shapes.shape(operand, type) for operand in (first, second)]
    if shapes == [UNIFORM, RISING]:
        return _SWAPPED[comparison], second, first
    return (comparison, first, second) if shapes == [RISING, UNIFORM] else None


def holds_in_prefix(
    operand_shapes: OperandShapes, instruction: Instruction, *, opposite: bool, one: bool
) -> bool:
    """Returns whether a comparison (or its complement, if `opposite`) holds in a prefix of the
    lanes. `one`: also accept `==`, whose prefix is the first lane if that has the bound."""
    parsed = rising_comparison(operand_shapes, instruction)
    prefix = ("lt", "le", *(("eq",) if one else ()))
    return parsed is not None and inverted_if(parsed[0], opposite) in prefix


def inverted_if(comparison: str, opposite: bool) -> str:
    """Returns a comparison, or its complement if `opposite`."""
    return _OPPOSITES[comparison] if opposite else comparison
