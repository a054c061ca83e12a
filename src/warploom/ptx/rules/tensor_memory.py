"""Legality of the operands of `tcgen05`.

Source: PTX ISA, "tcgen05.mma", "tcgen05.ld".
"""

from __future__ import annotations

from warploom.core.types import PRED
from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Vector,
)
from warploom.isa.spec import Operation
from warploom.ptx.rules.textures import check_word
from warploom.ptx.scope import Scope

SCALED_KINDS = ("kind::f16", "kind::tf32")
"""Kinds of products that take `scale-input-d`."""

MOST_SCALE = 15
DISABLED_WORDS = {"cta_group::1": 4, "cta_group::2": 8}


def check_matrix(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check A: the descriptor of a matrix in shared memory, or an address in tensor memory."""
    base = operand.base if isinstance(operand, Address) else operand
    bits = 32 if isinstance(operand, Address) else 64
    fits = isinstance(base, Register) and base.type.bits == bits and not base.type.is_float
    if not fits and not (isinstance(base, Immediate) and base is operand):
        message = (
            f"`{operation.text}`: A must be a 64-bit descriptor of a matrix in shared memory, or a "
            "tensor memory address (a 32-bit register in brackets)"
        )
        raise scope.error(message, operand.span)


def check_split(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check a constant number of columns."""
    if not isinstance(operand, Immediate) or operand.value not in range(512):
        message = f"`{operation.text}` requires a constant here: a number of columns from 0 to 511"
        raise scope.error(message, operand.span)


def check_switch(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check lanes to leave out, a predicate, or a constant; their order is for
    `check_switches`."""
    if isinstance(operand, Vector):
        for word in operand.elements:
            check_word(scope, operation, word, whole=True)


def check_switches(scope: Scope, instruction: Instruction) -> None:
    """Check what follows the descriptor of a product: words with lanes to leave out, if any; a
    predicate; the scale of D, if any."""
    operation = instruction.operation
    shown = zip(operation.spec.shown, instruction.written, strict=False)
    given = [operand for spec, operand in shown if spec.type == "switch"]
    if not given:
        return
    if isinstance(given[0], Vector):
        words = DISABLED_WORDS[operation.modifiers.text("cta_group", "")]
        if len(given[0].elements) != words:
            message = f"`{operation.text}` requires {words} words that specify the lanes to skip"
            raise scope.error(message, given[0].span)
        given = given[1:]
    if not given or not _is_predicate(given[0]):
        span = given[0].span if given else instruction.span
        raise scope.error(
            f"`{operation.text}` requires a predicate here: it determines whether D is added", span
        )
    for scale in given[1:]:
        scales = operation.modifiers["kind"] in SCALED_KINDS
        fits = isinstance(scale, Immediate) and scale.value in range(MOST_SCALE + 1)
        if not scales or not fits or len(given) > 2:
            message = (
                f"`{operation.text}`: a scale of D must be a constant from 0 to {MOST_SCALE}, and "
                f"only {' and '.join(SCALED_KINDS)} support it"
            )
            raise scope.error(message, scale.span)


def _is_predicate(operand: Operand) -> bool:
    if isinstance(operand, Negated):
        operand = operand.operand
    return isinstance(operand, Register) and operand.type is PRED


TENSOR_MEMORY_CHECKS = {
    "matrix": check_matrix,
    "split": check_split,
    "switch": check_switch,
}
"""The checks of operands by their types."""
