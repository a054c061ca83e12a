"""Executes the surface access of one lane, for both machines: computes its address from the
coordinates in the operand rows, and loads to the result rows, stores from the value rows, or
reduces in memory.

Coordinates are integers: bytes along a row, else rows, slices and layers. Parameters are those of
`texture.fetch`. Source: PTX ISA, "Surface Instructions" (suld, sust, sured).
"""

from __future__ import annotations

import numpy as np

from warploom.simt.lane_counts import jitable
from warploom.texture.descriptors import (
    ADD,
    AND,
    ELEMENT,
    MAX,
    MISALIGNED,
    MODE,
    OP,
    OR,
    OUTSIDE_SURFACE,
    PARTS,
    REDUCE_FORMATTED,
    REDUCTION,
    S8,
    S16,
    S32,
    SIGNED,
    STORE_FORMATTED,
    TRAP,
    ZERO,
    TexelOperands,
    TextureRow,
)
from warploom.texture.fetch import select_of, signed_at
from warploom.texture.texels import (
    Memory,
    format_bytes,
    read_bytes,
    signed_value,
    write_bytes,
    write_component,
)


@jitable
def access_bytes(texture: TextureRow, request: int) -> int:
    """Returns the bytes that one lane accesses: a whole texel for `sust.p`, else the instruction's
    elements."""
    op = request >> OP & 15
    if op == STORE_FORMATTED:
        return format_bytes(texture.format) * texture.components
    return (request >> ELEMENT & 31) * (request >> PARTS & 7)


@jitable
def locate_access(texture: TextureRow, data: TexelOperands, lane: int, request: int) -> int:
    """Stores the offset in device memory of a lane's access in `address`; returns the kind of fault
    (OUTSIDE_SURFACE, or MISALIGNED: x in bytes is no multiple of the access's size), or 0. The
    operand x is in texels for `sust.p` and `sured.p`, else in bytes. Out of bounds, the mode of the
    instruction decides. TRAP is a fault; CLAMPED clamps the coordinates to the surface (a fault if
    a row is shorter than the access); ZERO stores the offset -1, for which nothing is accessed."""
    op, mode = request >> OP & 15, request >> MODE & 3
    size = access_bytes(texture, request)
    texel = format_bytes(texture.format) * texture.components
    length = texture.width * texel
    x, y = signed_at(data.x, lane), signed_at(data.y, lane)
    z = signed_at(data.z, lane)
    layer = signed_at(data.layer, lane)
    # Formatted accesses give x in texels, all others in bytes.
    if op in (STORE_FORMATTED, REDUCE_FORMATTED):
        x *= texel
    height, depth = texture.height, texture.depth
    layers = texture.layers
    inside = x >= 0 and x + size <= length and 0 <= y < height
    inside = inside and 0 <= z < depth and 0 <= layer < layers
    data.address[lane] = np.uint64(0xFFFFFFFFFFFFFFFF)
    if not inside:
        if mode == ZERO:
            return 0
        if mode == TRAP or size > length:
            return OUTSIDE_SURFACE
        # Clamps to the last whole element, so that it is aligned.
        x = min(max(x, 0), (length - size) // size * size)
        y, z = min(max(y, 0), height - 1), min(max(z, 0), depth - 1)
        layer = min(max(layer, 0), layers - 1)
    if x % size != 0:
        return MISALIGNED
    start = int(texture.level_at[0]) + ((layer * depth + z) * height + y) * length + x
    data.address[lane] = start
    return 0


@jitable
def load_lane(memory: Memory, data: TexelOperands, lane: int, address: int, request: int) -> None:
    """Executes `suld.b` in one lane: loads consecutive elements into the result rows, or zeros for
    address -1."""
    size = request >> ELEMENT & 31
    for part in range(request >> PARTS & 7):
        value = read_bytes(memory, address + part * size, size) if address >= 0 else 0
        data.result[32 * part + lane] = np.uint64(np.int64(value))


@jitable
def store_lane(memory: Memory, data: TexelOperands, lane: int, address: int, request: int) -> None:
    """Executes `sust.b` in one lane: stores consecutive elements from the value rows at `address`,
    an offset in device memory that must be in bounds."""
    size = request >> ELEMENT & 31
    for part in range(request >> PARTS & 7):
        value = int(np.int64(data.value[32 * part + lane]))
        write_bytes(memory, address + part * size, size, value)


@jitable
def store_texel(
    texture: TextureRow,
    memory: Memory,
    data: TexelOperands,
    lane: int,
    address: int,
    request: int,
) -> None:
    """Executes `sust.p` in one lane: converts the words in the value rows to the texel's format
    (missing words are 0), and stores the texel at `address`, which must be in bounds. The word of a
    component is the first of those that a read returns it as."""
    format = texture.format
    for component in range(texture.components):
        word, part = 0, stored_part(texture, component)
        if part < request >> PARTS & 7:
            word = int(np.int64(data.value[32 * part + lane])) & 0xFFFFFFFF
        at = address + component * format_bytes(format)
        write_component(memory, at, format, word, texture.as_float)


@jitable
def stored_part(texture: TextureRow, component: int) -> int:
    """Returns the first of the four components of a result that a component of a texel is; 4 for
    none."""
    for part in range(4):
        if select_of(texture, part) == component:
            return part
    return 4


@jitable
def reduce_lane(
    texture: TextureRow,
    memory: Memory,
    data: TexelOperands,
    lane: int,
    address: int,
    request: int,
) -> int:
    """Executes `sured` in one lane on the element at `address`, as signed if the request or, for
    `sured.p`, the surface's format is; returns 1 if memory changed, else 0."""
    size, op = request >> ELEMENT & 31, request >> REDUCTION & 7
    signed = request >> SIGNED & 1
    if request >> OP & 15 == REDUCE_FORMATTED:
        format = texture.format
        signed = 1 if format in (S8, S16, S32) else 0
    old = read_bytes(memory, address, size)
    operand = int(np.int64(data.value[lane]))
    if size == 4:
        operand &= 0xFFFFFFFF
    new = reduce_value(op, old, operand, size, signed)
    write_bytes(memory, address, size, new)
    return 1 if new != old else 0


@jitable
def reduce_value(op: int, old: int, operand: int, size: int, signed: int) -> int:
    """Returns the value that `sured` leaves in memory: the old value and the operand added,
    combined bit by bit, or the lesser or greater of them (`op`: ADD, AND, OR, MIN, MAX). `signed`
    decides how values of `size` bytes, 4 or 8, are compared. In either case 4-byte values are
    passed and returned as unsigned numbers, 8-byte ones as signed."""
    if op == ADD:
        if size == 4:
            return (old + operand) & 0xFFFFFFFF
        return int(np.int64(np.uint64(np.int64(old)) + np.uint64(np.int64(operand))))
    if op == AND:
        return old & operand
    if op == OR:
        return old | operand
    less = operand < old
    if size == 4 and signed:
        less = signed_value(operand, 32) < signed_value(old, 32)
    elif size == 8 and not signed:
        less = np.uint64(np.int64(operand)) < np.uint64(np.int64(old))
    replaces = not less and operand != old if op == MAX else less
    return operand if replaces else old
