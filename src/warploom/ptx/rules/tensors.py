"""Legality of the operands of copies of tensors.

Source: PTX ISA, "cp.async.bulk.tensor" and "tensormap.replace".
"""

from __future__ import annotations

from warploom.isa.instruction import Address, Immediate, Operand, Register, Symbol, Vector
from warploom.isa.ops.tensors import NEW_ADDRESS, NEW_SHAPE, NEW_SIZE, is_wide
from warploom.isa.spec import Operation
from warploom.ptx.rules.textures import check_word
from warploom.ptx.scope import Scope

GATHERED = ("tile::gather4", "tile::scatter4")


def _rank(operation: Operation) -> int:
    return int(operation.modifiers.text("dim", "1d")[0])


def check_tensor(scope: Scope, operation: Operation, operand: Operand) -> None:
    """`[map, {coordinates}]`: an address of 64 bits, and an integer of 32 bits for each axis;
    between them the values that replace those of the map."""
    parts = list(operand.elements) if isinstance(operand, Vector) else []
    new = _new_values(operation)
    first, last = (parts[0], parts[-1]) if len(parts) == 2 + len(new) else (None, None)
    if not isinstance(first, Address) or not isinstance(last, Vector):
        inner = ", ".join(("map", *new, "{c0, ...}"))
        message = f"`{operation.text}` requires a tensor here: `[{inner}]`"
        raise scope.error(message, operand.span)
    for text, value in zip(new, parts[1:-1], strict=True):
        _check_new_value(scope, operation, text, value)
    base = first.base
    if isinstance(base, Register) and not (base.type.is_integer and base.type.bits == 64):
        message = f"`{base.name}` ({base.type}) cannot hold the address of a tensor map"
        raise scope.error(message, base.span)
    if isinstance(base, Symbol) and base.name in scope.inputs:
        message = (
            f"`{base.name}` is a parameter: get its generic address (mov, cvta.param), and pass "
            "that as the tensor map"
        )
        raise scope.error(message, base.span)
    gathers = any(name in operation.modifiers for name in GATHERED)
    needed, given = 5 if gathers else _rank(operation), last.elements
    if len(given) != needed:
        message = f"`{operation.text}` requires {needed} coordinates, not {len(given)}"
        raise scope.error(message, last.span)
    for coordinate in given:
        check_word(scope, operation, coordinate, whole=True)


def _new_values(operation: Operation) -> tuple[str, ...]:
    """Returns how the values are written that replace those of a tensor map."""
    modifiers = operation.modifiers
    sizes = ("{size0, ...}",) if NEW_SIZE in modifiers or NEW_SHAPE in modifiers else ()
    strides = ("{stride0, ...}", "high") if NEW_SHAPE in modifiers else ()
    return (*(("address",) if NEW_ADDRESS in modifiers else ()), *sizes, *strides)


BITS_OF_NEW_VALUES = {
    "address": (64,),
    "{size0, ...}": (8, 16),
    "{stride0, ...}": (32,),
    "high": (16,),
}
"""The bits that a register of each of them may have (PTX ISA, "Tensor Attribute Override")."""


def _check_new_value(scope: Scope, operation: Operation, text: str, operand: Operand) -> None:
    """Check a value that replaces one of a tensor map, or those in braces: how many, how wide."""
    braces = text.startswith("{")
    given = operand.elements if isinstance(operand, Vector) else (operand,)
    needed = _rank(operation) - (text == "{stride0, ...}")
    fits = isinstance(operand, Vector) == braces and (not braces or len(given) == needed)
    bits = BITS_OF_NEW_VALUES[text]
    for each in given:
        fits &= isinstance(each, Immediate) or (
            isinstance(each, Register) and not each.type.is_float and each.type.bits in bits
        )
    if not fits:
        wide = " or ".join(map(str, bits))
        count = f"{needed} {wide}-bit integers in braces" if braces else (f"one {wide}-bit value")
        raise scope.error(f"`{operation.text}` requires {count} for `{text}`", operand.span)


def check_offsets(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Offsets of im2col in braces: 16 bits for each axis but the first and the last."""
    given = operand.elements if isinstance(operand, Vector) else ()
    needed = 2 if is_wide(operation) else _rank(operation) - 2
    fits = all(
        isinstance(each, Immediate) or (isinstance(each, Register) and each.type.bits == 16)
        for each in given
    )
    if len(given) != needed or not fits:
        message = f"`{operation.text}` requires {needed} 16-bit offsets in braces"
        raise scope.error(message, operand.span)


def check_map_axis(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check an axis whose field `tensormap.replace` sets: a constant number below 5."""
    if not isinstance(operand, Immediate) or operand.value not in range(5):
        message = f"`{operation.text}` requires the index of an axis here: a constant from 0 to 4"
        raise scope.error(message, operand.span)


def check_map_value(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check a constant that stands for a type, a layout or a mode of a tensor map."""
    if not isinstance(operand, Immediate) or operand.value not in range(16):
        message = f"`{operation.text}` requires a constant from 0 to 15 here"
        raise scope.error(message, operand.span)


def check_map_bytes(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check the size of a tensor map."""
    if not isinstance(operand, Immediate) or operand.value != 128:
        raise scope.error(f"`{operation.text}` must copy 128 bytes", operand.span)


TENSOR_CHECKS = {
    "tensor": check_tensor,
    "offsets": check_offsets,
    "map_axis": check_map_axis,
    "map_value": check_map_value,
    "map_bytes": check_map_bytes,
}
"""The checks of operands by their types."""
