"""Legality of the operands of texture and surface instructions.

Source: PTX ISA, "Texture Instructions", "Surface Instructions" and "Opaque Types".
"""

from __future__ import annotations

from warploom.core.types import OPAQUE, ScalarType
from warploom.isa.instruction import Address, Immediate, Operand, Register, Space, Symbol, Vector
from warploom.isa.kinds import OpKind
from warploom.isa.spec import OperandSpec, Operation
from warploom.ptx.scope import Scope

COORDINATES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4}
LAYERED = frozenset({"a1d", "a2d", "acube"})


def check_texels(scope: Scope, operation: Operation, operand: Operand) -> None:
    """`[texture, coordinates]`, between them perhaps a sampler."""
    parts = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(parts) not in (2, 3) or not isinstance(parts[0], Address):
        message = f"`{operation.text}` requires a texture or surface here: `[a, {{x, ...}}]`"
        raise scope.error(message, operand.span)
    for handle in parts[:-1]:
        check_handle(scope, operation, handle)
    if len(parts) == 3 and operation.kind not in (OpKind.TEXTURE_LOAD, OpKind.TEXTURE_GATHER):
        raise scope.error(f"`{operation.text}` does not take a sampler", parts[1].span)
    geometry = operation.modifiers.text("geom", "")
    given = parts[-1].elements if isinstance(parts[-1], Vector) else parts[-1:]
    needed = COORDINATES[geometry]
    # A vector has 1, 2 or 4 elements, which may be more than there are axes.
    if len(given) not in (1, 2, 4) or len(given) < needed:
        wanted = {1: "1, 2 or 4", 2: "2 or 4"}.get(needed, "4")
        message = f"`.{geometry}` requires {wanted} coordinates, not {len(given)}"
        raise scope.error(message, parts[-1].span)
    floats = "ctype" not in operation.modifiers and operation.kind is OpKind.TEXTURE_GATHER
    floats = floats or operation.modifiers["ctype"] == "f32"
    for place, coordinate in enumerate(given[:needed]):
        whole = not floats or (place == 0 and geometry in LAYERED)
        check_word(scope, operation, coordinate, whole=whole)


def check_handle(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check a texture, surface or sampler: a variable of such a type, or a 64-bit register."""
    base = operand.base if isinstance(operand, Address) else operand
    if isinstance(base, Register) and base.type.is_integer and base.type.bits == 64:
        return
    if isinstance(base, Symbol):
        variable = scope.variables.get(base.name)
        if variable is not None and (
            variable.type.name in OPAQUE or variable.space in (Space.PARAM, Space.GLOBAL)
        ):
            return
    message = f"`{operation.text}` requires a texture, surface or sampler: a variable or a handle"
    raise scope.error(message, operand.span)


def check_word(scope: Scope, operation: Operation, operand: Operand, *, whole: bool) -> None:
    """Check a coordinate, a gradient or an offset: 32 bits, an integer or a float."""
    wanted = "a 32-bit integer" if whole else "an .f32"
    match operand:
        case Register(_, type):
            fits = type.bits == 32 and (not type.is_float if whole else _can_be_float(type))
        case Immediate(_, float_bits):
            fits = (float_bits == 0) is whole
        case _:
            fits = False
    if not fits:
        raise scope.error(f"`{operation.text}` requires {wanted} here", operand.span)


def _can_be_float(type: ScalarType) -> bool:
    return type.is_float or type.kind.value == "b"


def check_axes(scope: Scope, operation: Operation, spec: OperandSpec, operand: Operand) -> None:
    """Gradients and offsets, in braces where there are several axes."""
    geometry = operation.modifiers.text("geom", "")
    needed = COORDINATES[geometry] - (geometry in LAYERED)
    given = operand.elements if isinstance(operand, Vector) else (operand,)
    if spec.name == "offset" and geometry in ("cube", "acube"):
        raise scope.error("cube textures do not support offsets", operand.span)
    first = given[0] if given else operand
    if spec.name == "offset" and isinstance(first, Register) and first.type.is_float:
        message = (
            "depth comparisons require a depth texture, which CUDA cannot create; fetch the "
            "texel and compare its value"
        )
        raise scope.error(message, operand.span)
    if len(given) != (wanted := 4 if needed == 3 else needed):
        raise scope.error(f"`.{geometry}` requires {wanted} values here", operand.span)
    for value in given[:needed]:
        check_word(scope, operation, value, whole=spec.name == "offset")
