"""Executes queries of textures, surfaces and samplers (`txq`, `suq`, `istypep`), for both machines:
reads the handles of the lanes and the table of textures, and stores each lane's answer (a width, a
format, true or false ...) in the operand rows.

`table`, `memory`, `data` and `issue` are those of `texture.requests`."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.texture.descriptors import (
    BAD_HANDLE,
    COMPONENT,
    DEPTH_OF,
    FILTER_OF,
    HEIGHT_OF,
    IS_SAMPLER,
    IS_SURFACE,
    IS_TYPE,
    LAYERS_OF,
    LAYOUT_OF,
    LEVELS_OF,
    LINEAR,
    MODE_OF,
    MOST_LEVELS,
    NORMALIZED,
    NORMALIZED_OF,
    OP,
    ORDER_OF,
    SAMPLES_OF,
    SURFACE,
    TEXTURE,
    UNNORMALIZED_OF,
    WIDTH_OF,
    TexelIssue,
    TexelOperands,
    TextureHeader,
    TextureRow,
)
from warploom.texture.fetch import extent, mode_of, signed_at
from warploom.texture.handles import descriptor_row, fail, is_sampler, lane_handle, sampler_of
from warploom.texture.texels import Memory


@jitable
def serve_query(
    table: TextureHeader, memory: Memory, data: TexelOperands, issue: TexelIssue
) -> int:
    """Executes `txq`, `suq` or `istypep` in the lanes that issue, and stores each result in
    `result`. Returns 0, or 1 after a fault: an invalid handle, but not for `istypep`. Queries of
    sampler properties (from NORMALIZED_OF on) are of a sampler, or of a texture's own one; the
    others need a texture or surface. The level operand is clamped to 0 to MOST_LEVELS."""
    query = issue.request >> COMPONENT & 15
    for lane in range(32):
        if issue.mask >> lane & 1:
            handle = lane_handle(table, memory, data.handle, lane)
            texture = descriptor_row(table, handle)
            if issue.request >> OP & 15 == IS_TYPE:
                result = is_kind(texture, handle, query)
            else:
                sampler = sampler_of(texture, handle)
                if sampler == 0 or (texture.at == 0 and query < NORMALIZED_OF):
                    return fail(issue, BAD_HANDLE, lane, handle, 0)
                if query >= NORMALIZED_OF:
                    result = query_sampler(sampler, query)
                else:
                    level = min(max(signed_at(data.lod, lane), 0), MOST_LEVELS)
                    result = query_texture(texture, level, query)
            data.result[lane] = result
    return 0


@jitable
def is_kind(texture: TextureRow, value: int, query: int) -> int:
    """Returns 1 if the handle or sampler `value`, whose table row is `texture`, is a texture,
    surface or sampler, as `query` (IS_TEXTURE, ...) names (PTX ISA, istypep), else 0."""
    if query == IS_SAMPLER:
        return 1 if is_sampler(value) else 0
    kind = SURFACE if query == IS_SURFACE else TEXTURE
    return 1 if texture.at and texture.kind == kind else 0


@jitable
def query_sampler(sampler: int, query: int) -> int:
    """Returns a property of an encoded sampler: NORMALIZED_OF, 1 if coordinates are normalized;
    UNNORMALIZED_OF, 1 if they are not; FILTER_OF, 1 if it filters linearly, each else 0; or the
    address mode of an axis (MODE_OF plus the axis; PTX ISA, txq)."""
    if query == FILTER_OF:
        return sampler & LINEAR
    if query >= MODE_OF:
        return mode_of(sampler, query - MODE_OF)
    normalized = 1 if sampler & NORMALIZED else 0
    return 1 - normalized if query == UNNORMALIZED_OF else normalized


@jitable
def query_texture(texture: TextureRow, level: int, query: int) -> int:
    """Returns a property of a texture or surface, by `query` (WIDTH_OF, ...): width, height or
    depth of mipmap level `level`, number of layers or levels, channel order or type; 1 for number
    of samples and memory layout (PTX ISA, txq and suq)."""
    if query == WIDTH_OF:
        return extent(texture.width, level)
    if query == HEIGHT_OF:
        return extent(texture.height, level)
    if query == DEPTH_OF:
        return extent(texture.depth, level)
    if query == LAYERS_OF:
        return texture.layers
    if query == LEVELS_OF:
        return texture.levels
    if query == ORDER_OF:
        return texture.order
    if query in (SAMPLES_OF, LAYOUT_OF):
        return 1
    return channel_type(texture.format, texture.as_float)


@jitable
def channel_type(format: int, as_float: int) -> int:
    """Returns the OpenCL code of the type of a component (PTX ISA, "Channel Data Type and Channel
    Order"): a normalized one for integers that are read as floats."""
    numbers = (0x10DA, 0x10D7, 0x10DB, 0x10D8, 0x10DD, 0x10DC, 0x10D9, 0x10DE)
    normalized = (0x10D2, 0x10D0, 0x10D3, 0x10D1)
    return normalized[format] if as_float and format < 4 else numbers[format]
