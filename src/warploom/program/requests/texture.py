"""Encodes a texture or surface instruction as a request: a number with packed fields, and its
operands.

Both machines evaluate the operands and pass them to `texture.requests`; `texture.descriptors`
defines the fields, and the record of operands.

    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];
    ->   OP = FETCH, geometry 2d; handle: %rd1, x: %f5, y: %f6; results: %f1, %f2, %f3, %f4
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.core.types import B16, B32, F32, PRED, S32, U32, ScalarType, unsigned
from warploom.isa.instruction import Instruction, Operand, Pair, Vector
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Modifiers
from warploom.texture import descriptors as d
from warploom.texture.descriptors import LANES, TexelOperands

RequestOperand = tuple[int, Operand, ScalarType]
"""An operand: its offset in the record, the PTX operand, and the type to read it as."""

AXES = {
    "1d": (TexelOperands.x,),
    "2d": (TexelOperands.x, TexelOperands.y),
    "3d": (TexelOperands.x, TexelOperands.y, TexelOperands.z),
    "a1d": (TexelOperands.layer, TexelOperands.x),
    "a2d": (TexelOperands.layer, TexelOperands.x, TexelOperands.y),
    "cube": (TexelOperands.x, TexelOperands.y, TexelOperands.z),
    "acube": (TexelOperands.layer, TexelOperands.x, TexelOperands.y, TexelOperands.z),
}
"""Maps geometries to the offsets of their coordinates, in the order of the instruction's operands.
"""

LEVELS = {"level": d.GIVEN_LEVEL, "grad": d.GRADIENTS}
MODES = {"trap": d.TRAP, "clamp": d.CLAMPED, "zero": d.ZERO}


@dataclass(frozen=True)
class TexelRequest:
    """An encoded instruction and its operands. `handle` and `sampler` are addresses, or a value (of
    istypep). `results` are the operands that it writes, from `result` on, with their types.
    `resident`, if present, is a predicate that receives true: all texels are in memory."""

    request: int
    handle: Operand
    sampler: Operand | None
    inputs: tuple[RequestOperand, ...]
    results: tuple[tuple[Operand, ScalarType], ...]
    resident: Operand | None = None


def texel_request(instruction: Instruction) -> TexelRequest:
    """Returns the request of a texture or surface instruction."""
    return ENCODERS[instruction.operation.kind](instruction)


def axes(modifiers: Modifiers) -> int:
    """Returns the number of coordinates of an instruction, the layer included."""
    return len(AXES[modifiers.text("geom", "")])


def elements(operand: Operand) -> tuple[Operand, ...]:
    """Returns the elements of a vector operand; another operand as the only element."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _fetch(instruction: Instruction) -> TexelRequest:
    """Encodes a `tex` or `tld4` (of one component), with operands for coordinates, mipmap level and
    offsets. Modifiers decide where the level comes from (base level, operand, or gradients) and the
    type of coordinates and results; a second destination receives residency."""
    modifiers = instruction.operation.modifiers
    target, texels, *optional = instruction.operands
    coordinate_type = F32 if modifiers["ctype"] != "s32" else S32
    request = _shape(modifiers) | _field(d.INTEGER, coordinate_type is S32)
    request |= _field(d.OP, d.GATHER if "comp" in modifiers else d.FETCH)
    request |= _field(d.COMPONENT, "rgba".index(modifiers.text("comp", "r")))
    inputs = _coordinates(modifiers, texels, coordinate_type)
    level = next((LEVELS[name] for name in LEVELS if name in modifiers), d.BASE_LEVEL)
    request |= _field(d.LOD, level)
    if level == d.GIVEN_LEVEL:
        inputs.append((TexelOperands.lod, optional.pop(0), coordinate_type))
    elif level == d.GRADIENTS:
        inputs += _spatial(modifiers, TexelOperands.dx, optional.pop(0), F32)
        inputs += _spatial(modifiers, TexelOperands.dy, optional.pop(0), F32)
    # Offsets come last in the syntax: what level or gradients have left are they.
    if optional:
        inputs += _spatial(modifiers, TexelOperands.offset, optional[0], S32)
    resident = None
    if isinstance(target, Pair):
        target, resident = target.first, target.second
    type = B32
    if modifiers["dtype"] == "f16":
        type, request = B16, request | _field(d.HALVES, d.SINGLE_HALVES)
    elif "f16x2" in modifiers:
        request |= _field(d.HALVES, d.PACKED_HALVES)
    handle, sampler = _handles(texels)
    request |= _field(d.HAS_SAMPLER, sampler is not None)
    results = tuple((element, type) for element in elements(target))
    return TexelRequest(request, handle, sampler, tuple(inputs), results, resident)


def _query(instruction: Instruction) -> TexelRequest:
    """Encodes a query: of a field of a texture or surface (`txq`, `suq`), or whether a handle is of
    some kind (`istypep`)."""
    modifiers = instruction.operation.modifiers
    target, handle, *level = instruction.operands
    if "kind" in modifiers:
        request = _field(d.OP, d.IS_TYPE) | _field(
            d.COMPONENT, d.KINDS.index(modifiers.text("kind", ""))
        )
        return TexelRequest(request, handle, None, (), ((target, PRED),))
    request = _field(d.OP, d.QUERY) | _field(
        d.COMPONENT, d.QUERIES.index(modifiers.text("query", ""))
    )
    inputs = tuple((TexelOperands.lod, operand, S32) for operand in level)
    return TexelRequest(request, handle, None, inputs, ((target, B32),))


def _surface(instruction: Instruction) -> TexelRequest:
    """Encodes a load, store or reduction of a surface, with the element's size, the number of
    elements, the reduction and its signedness, and the behavior outside of the surface."""
    modifiers, kind = instruction.operation.modifiers, instruction.operation.kind
    # Values are moved as bits; whether a reduction compares signed numbers is a field of its own.
    type = unsigned(modifiers.scalar().bits)
    target, texels, source = _surface_operands(instruction)
    parts = {"v2": 2, "v4": 4}.get(modifiers.text("vec", ""), 1)
    request = _shape(modifiers) | _field(d.ELEMENT, type.bytes) | _field(d.PARTS, parts)
    request |= _field(d.MODE, MODES[modifiers.text("mode", "trap")])
    request |= _field(d.OP, _SURFACE_OPS[kind, "p" in modifiers])
    if kind is OpKind.SURFACE_REDUCTION:
        request |= _field(d.REDUCTION, d.REDUCTIONS.index(modifiers.text("op", "")))
        request |= _field(d.SIGNED, modifiers.scalar().is_signed)
    inputs = _coordinates(modifiers, texels, S32)
    if source is not None:
        inputs += [
            (TexelOperands.value + LANES * i, part, type) for i, part in enumerate(elements(source))
        ]
    results = tuple((element, type) for element in elements(target)) if target else ()
    return TexelRequest(request, _handles(texels)[0], None, tuple(inputs), results)


_SURFACE_OPS = {
    (OpKind.SURFACE_LOAD, False): d.LOAD,
    (OpKind.SURFACE_STORE, False): d.STORE,
    (OpKind.SURFACE_STORE, True): d.STORE_FORMATTED,
    (OpKind.SURFACE_REDUCTION, False): d.REDUCE,
    (OpKind.SURFACE_REDUCTION, True): d.REDUCE_FORMATTED,
}


def _surface_operands(instruction: Instruction) -> tuple[Operand | None, Operand, Operand | None]:
    """Returns the destination, address and source of a surface instruction: a load has no source,
    others no destination (None)."""
    if instruction.operation.kind is OpKind.SURFACE_LOAD:
        return instruction.operands[0], instruction.operands[1], None
    return None, instruction.operands[0], instruction.operands[1]


def _field(at: int, value: int) -> int:
    """Returns a value (1 for a true Boolean) shifted to the field of a request that begins at bit
    `at`."""
    return int(value) << at


def _shape(modifiers: Modifiers) -> int:
    """Returns the number of an instruction's geometry (`1d`, `a2d`, `cube`, ...), shifted to its
    field of a request."""
    return _field(d.GEOMETRY_AT, d.GEOMETRIES.index(modifiers.text("geom", "")))


def _handles(texels: Operand) -> tuple[Operand, Operand | None]:
    """Returns the operands of the texture and of the sampler (None if there is none)."""
    handle, *sampler, _ = elements(texels)
    return handle, sampler[0] if sampler else None


def _coordinates(modifiers: Modifiers, texels: Operand, type: ScalarType) -> list[RequestOperand]:
    """Returns the operands of coordinates in the order of the geometry's axes; surplus ones are
    left out, and the layer is unsigned where the others are floats."""
    rows = AXES[modifiers.text("geom", "")]
    coordinates = elements(elements(texels)[-1])
    types = (U32 if row == TexelOperands.layer and type is F32 else type for row in rows)
    # Vectors have 1, 2 or 4 elements: beside three coordinates, the fourth is padding.
    return list(zip(rows, coordinates, types, strict=False))


def _spatial(
    modifiers: Modifiers, row_offset: int, operand: Operand, type: ScalarType
) -> list[RequestOperand]:
    """Returns the operands for the spatial axes of a texture access, in rows from offset
    `row_offset` on: the first elements of `operand`, in which a layer would follow them."""
    count = sum(row != TexelOperands.layer for row in AXES[modifiers.text("geom", "")])
    return [
        (row_offset + LANES * i, element, type)
        for i, element in enumerate(elements(operand)[:count])
    ]


ENCODERS: dict[OpKind, Callable[[Instruction], TexelRequest]] = {
    OpKind.TEXTURE_LOAD: _fetch,
    OpKind.TEXTURE_GATHER: _fetch,
    OpKind.TEXTURE_QUERY: _query,
    OpKind.SURFACE_QUERY: _query,
    OpKind.SURFACE_LOAD: _surface,
    OpKind.SURFACE_STORE: _surface,
    OpKind.SURFACE_REDUCTION: _surface,
}
"""The function that encodes each kind of operation."""
