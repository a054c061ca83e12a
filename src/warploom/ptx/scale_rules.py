"""Legality of the operands that say where the scales of blocks of `mma` are.

Source: PTX ISA, "Block Scaling for mma.sync"; the ranges are those that ptxas states.
"""

from __future__ import annotations

from functools import partial

from warploom.isa.instruction import Immediate, Operand, Register, Vector
from warploom.isa.ops.matrix import product_of
from warploom.isa.scales import A_SCALES, B_SCALES, ScaleSide
from warploom.isa.spec import Operation
from warploom.ptx.scope import Scope

SELECTOR_BITS = 16


def check_selectors(side: ScaleSide, scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check {byte, thread}: numbers of bytes and lanes that there are, or registers of 16 bits."""
    scales = product_of(operation).scales
    assert scales is not None
    if not isinstance(operand, Vector) or len(operand.elements) != 2:
        message = f"`{operation.text}` wants {{byte, thread}} of the scales here"
        raise scope.error(message, operand.span)
    allowed = (scales.bytes, tuple(range(side.threads)))
    for what, element, some in zip(("byte", "thread"), operand.elements, allowed, strict=True):
        if isinstance(element, Register) and element.type.is_integer:
            if element.type.bits == SELECTOR_BITS:
                continue
        elif isinstance(element, Immediate) and element.value in some:
            continue
        wanted = ", ".join(map(str, some))
        message = (
            f"`{operation.text}`: the {what} of the scales is one of {wanted}, or a register of"
            f" {SELECTOR_BITS} bits"
        )
        raise scope.error(message, operand.span)


SCALE_CHECKS = {
    "scale_a": partial(check_selectors, A_SCALES),
    "scale_b": partial(check_selectors, B_SCALES),
}
"""The checks of operands that say where scales are, by their types."""
