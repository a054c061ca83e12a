"""Resolves the handles of textures, surfaces and samplers that instructions name, for both
machines: from a lane's handle to the row of a descriptor table, 0 for none; and records faults of
lanes.

`table`, `memory`, `data` and `issue` are those of `texture.requests`."""

from __future__ import annotations

import numpy as np

from warploom.simt.lane_counts import Addresses, jitable
from warploom.texture.descriptors import (
    CUBE,
    CUBE_ARRAY,
    FREE,
    HANDLE_TAG,
    SAMPLER_TAG,
    SURFACE,
    TEXTURE,
    TWO_ARRAY,
    TexelIssue,
    TexelOperands,
    TextureHeader,
    TextureRow,
)
from warploom.texture.texels import Memory, read_bytes


@jitable
def fail(issue: TexelIssue, kind: int, lane: int, address: int, size: int) -> int:
    """Records the kind, lane, address and size of a fault (for some kinds, other details of its
    message instead of the last two) in the issue; returns 1."""
    issue.fault_kind, issue.fault_lane = kind, lane
    issue.fault_address, issue.fault_size = address, size
    return 1


@jitable
def resolve_handle(table: TextureHeader, memory: Memory, value: int) -> int:
    """Returns the handle or sampler that an operand `value` stands for: the value itself or, if it
    is an address in device memory, the 8 bytes there (a `.texref` variable in global memory)."""
    offset = value - table.base
    if offset >= 0 and offset + 8 <= table.size:
        return read_bytes(memory, offset, 8)
    return value


@jitable
def descriptor_row(table: TextureHeader, value: int) -> TextureRow:
    """Returns the row of a texture or surface handle; a record at offset 0 (`at`), where no row is,
    if the handle is invalid or freed, or if `value` is a sampler."""
    # Other values, as those of samplers, give an index that is negative or too large.
    index = value - HANDLE_TAG
    if index < 0 or index >= table.count:
        return TextureRow(table, 0)
    texture = TextureRow(table, TextureHeader.WORDS, index)
    return TextureRow(table, 0) if texture.kind == FREE else texture


@jitable
def lane_handle(table: TextureHeader, memory: Memory, row: Addresses, lane: int) -> int:
    """Returns the handle or sampler of a lane in a row of operands: the operand itself or, if it is
    an address in device memory, the 8 bytes there (`resolve_handle`)."""
    return resolve_handle(table, memory, int(np.int64(row[lane])))


@jitable
def sampler_at(table: TextureHeader, memory: Memory, data: TexelOperands, lane: int) -> int:
    """Returns the sampler operand of a lane as its encoded integer; for a texture's handle, that
    texture's sampler; 0 if it is neither."""
    value = lane_handle(table, memory, data.sampler, lane)
    return sampler_of(descriptor_row(table, value), value)


@jitable
def sampler_of(texture: TextureRow, value: int) -> int:
    """Returns the encoded sampler that the handle or sampler `value`, whose table row is `texture`,
    stands for: that of its texture, or the value itself; 0 if it is neither."""
    if texture.at:
        return texture.sampler
    return value if is_sampler(value) else 0


@jitable
def is_sampler(value: int) -> bool:
    """Returns whether a value is an encoded sampler: SAMPLER_TAG is its highest bit (of handles
    HANDLE_TAG, one above)."""
    return SAMPLER_TAG <= value < HANDLE_TAG


@jitable
def matches_request(texture: TextureRow, kind: int, expected: int) -> bool:
    """Returns whether a row has the kind and geometry that an instruction expects. A cube surface
    counts as a layered one (CUDA compiles surfCubemapread to `suld.a2d`)."""
    if texture.kind != kind:
        return False
    geometry = texture.geometry
    if kind == SURFACE and (geometry in (CUBE, CUBE_ARRAY)):
        geometry = TWO_ARRAY
    return geometry == expected


@jitable
def descriptor_code(texture: TextureRow) -> int:
    """Encodes kind and geometry of a row for a fault's record: the geometry, plus 16 for a
    surface."""
    return 16 * (texture.kind - TEXTURE) + texture.geometry
