"""Legality of constant operands of matrix instructions: where the scales of blocks of `mma` are,
which lanes have metadata of sparsity, and the signs and transpositions of `wgmma`.

Source: PTX ISA, "Block Scaling for mma.sync"; the ranges are those that ptxas states.
"""

from __future__ import annotations

from functools import partial

from warploom.isa.instruction import Immediate, Operand, Register, Vector
from warploom.isa.kinds import OpKind
from warploom.isa.ops.matrix import product_of
from warploom.isa.ops.wgmma import warp_product
from warploom.isa.scales import A_SCALES, B_SCALES, ScaleSide
from warploom.isa.spec import OperandSpec, Operation
from warploom.ptx.scope import Scope

SELECTOR_BITS = 16


def check_selectors(side: ScaleSide, scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check {byte, thread}: numbers of bytes and lanes that there are, or registers of 16 bits."""
    scales = product_of(operation).scales
    assert scales is not None
    if not isinstance(operand, Vector) or len(operand.elements) != 2:
        message = f"`{operation.text}` requires the position of the scales here: {{byte, thread}}"
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
            f"`{operation.text}`: the {what} of the scales must be one of {wanted}, or a "
            f"{SELECTOR_BITS}-bit register"
        )
        raise scope.error(message, operand.span)


SCALE_CHECKS = {
    "scale_a": partial(check_selectors, A_SCALES),
    "scale_b": partial(check_selectors, B_SCALES),
}
"""The checks of operands that say where scales are, by their types."""


def check_selector(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check the sparsity selector: a number that says which lanes of each four have metadata."""
    product = warp_product if operation.kind is OpKind.GROUP_PRODUCT else product_of
    sparsity = product(operation).sparsity
    assert sparsity is not None
    if not isinstance(operand, Immediate) or not 0 <= operand.value < sparsity.selectors:
        last = sparsity.selectors - 1
        wanted = f"a number from 0 to {last}" if last else "0"
        raise scope.error(f"the sparsity selector must be {wanted} here", operand.span)


CHOICES = {"sign": (1, -1), "transposition": (0, 1), "groups": range(1 << 64)}
"""What operands can be that are constants: the factor of a multiplicand, whether it is transposed,
and how many groups may be left (PTX ISA, wgmma.mma_async and wgmma.wait_group)."""


def check_choice(scope: Scope, operation: Operation, spec: OperandSpec, operand: Operand) -> None:
    """Check a constant that is one of a few."""
    allowed = CHOICES[spec.type]
    if not isinstance(operand, Immediate) or operand.value not in allowed:
        wanted = f"{allowed[0]} or {allowed[1]}" if isinstance(allowed, tuple) else "0 or more"
        message = f"`{operation.text}` requires a constant for {spec.name}: {wanted}"
        raise scope.error(message, operand.span)
