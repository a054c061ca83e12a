"""Executes the texture fetch of one lane (`tex`, `tld4`), for both machines: finds texels, filters
and converts them.

Source: CUDA C++ Programming Guide, "Texture Fetching" (nearest-point and linear filtering),
"Texture Memory" (address modes), "Cubemap Textures". A weight has 8 fraction bits and can be 1; the
guide does not specify its rounding, here to nearest. Other unspecified details stand in
docs/memory.md.

Parameters: `texture`: the row of a texture (`texture.descriptors`); `sampler`: an encoded sampler;
`memory`: device memory as bytes; `data`: the operands and results of 32 lanes; `request`: the
encoded instruction; `issue`: that, corners and touched sectors; u, v, w: coordinates along x, y and
z.
A *corner* is a texel that filtering mixes: its offset from `base`, -1 for the border, -2 out of
bounds, and its weight. `record` holds the counters of the access."""

from __future__ import annotations

import numpy as np

from warploom.simt.lane_counts import Addresses, Ints, jitable
from warploom.texture.axes import ONE_WEIGHT, axis_texels, cube_face, log2_of
from warploom.texture.descriptors import (
    COMPONENT,
    CUBE,
    CUBE_ARRAY,
    GEOMETRY_AT,
    GIVEN_LEVEL,
    GRADIENTS,
    HALVES,
    INTEGER,
    LINEAR,
    LOD,
    MIP_LINEAR,
    MODES_AT,
    NORMALIZED,
    ONE,
    ONE_ARRAY,
    PACKED_HALVES,
    SELECT_ONE,
    SELECT_ZERO,
    SRGB,
    THREE,
    TexelIssue,
    TexelOperands,
    TextureRow,
    corner_of,
)
from warploom.texture.texels import (
    Memory,
    component_number,
    component_word,
    count_sector,
    float_bits,
    float_value,
    format_bytes,
    is_number,
    linear_color,
    signed_value,
    single_to_half,
)

WHOLE = ONE_WEIGHT**4
"""The sum of the weights of all corners: the product of 1.0 along three axes and between two mipmap
levels."""

ONE_BITS = 0x3F800000


@jitable
def fetch(
    texture: TextureRow, sampler: int, memory: Memory, data: TexelOperands, lane: int,
    issue: TexelIssue, record: Ints,
) -> None:  # fmt: skip
    """Executes `tex` in one lane: stores four result words in the result rows of `data`, rounded to
    half precision if requested, and counts the sectors of its texels. A single texel is converted
    (`corner_word`), several are filtered as floats. The texture selects the component of the texel
    for each result, or 0, or 1 (1.0 if texels are read as floats)."""
    find_corners(texture, sampler, data, lane, issue)
    count = issue.corners
    as_float, format = texture.as_float, texture.format
    for corner in range(count):
        address = corner_of(issue, corner).address
        if address >= 0:
            count_sector(address, issue, record)
    for component in range(4):
        word, select = 0, select_of(texture, component)
        if select >= SELECT_ZERO:
            if select == SELECT_ONE:
                word = ONE_BITS if is_number(format, as_float) else 1
        elif count == 1:
            word = corner_word(texture, memory, corner_of(issue, 0).address, select)
        else:
            word = filter_corners(texture, memory, select, issue)
        data.result[32 * component + lane] = word
    halves = issue.request >> HALVES & 3
    if halves:
        round_to_half(data, lane, halves)


@jitable
def round_to_half(data: TexelOperands, lane: int, halves: int) -> None:
    """Replaces a lane's four results in `data`, bits of single-precision floats, by the 16 bits of
    halves; if `halves` is PACKED_HALVES packs them by two in the first two result rows, the first
    of a pair in the low half."""
    for component in range(4):
        at = 32 * component + lane
        half = single_to_half(int(np.int64(data.result[at])))
        if halves == PACKED_HALVES:
            at = 32 * (component // 2) + lane
            if component % 2:
                half = half << 16 | int(np.int64(data.result[at]))
        data.result[at] = half


@jitable
def gather(
    texture: TextureRow, sampler: int, memory: Memory, data: TexelOperands, lane: int,
    issue: TexelIssue, record: Ints,
) -> None:  # fmt: skip
    """Executes `tld4` in one lane: of the four texels of level 0 that linear filtering would mix,
    stores one component each in the four result rows of `data`, in the order (x, y) = (0, 1), (1,
    1), (1, 0), (0, 0) (PTX ISA, tld4). Counts their sectors, and leaves the texels in the issue, as
    corners of weight 0. For a component that the texture sets to 0 or 1 no texel is read."""
    component = select_of(texture, issue.request >> COMPONENT & 3)
    exists = component < SELECT_ZERO
    missing = 0
    if component == SELECT_ONE:
        number = is_number(texture.format, texture.as_float)
        missing = ONE_BITS if number else 1
    linear = sampler | LINEAR
    u, v, _, layer, face_flags = sample_position(texture, data, lane, issue.request)
    scale = (sampler | face_flags) & NORMALIZED
    width, height = texture.width, texture.height
    du, dv = offset_of(data, lane, 0), offset_of(data, lane, 1)
    x0, x1, _ = axis_texels(u, du, width, mode_of(sampler, 0), scale, linear)
    y0, y1, _ = axis_texels(v, dv, height, mode_of(sampler, 1), scale, linear)
    issue.corners = 0
    for texel_index in range(4):
        x = x0 if texel_index == 0 or texel_index == 3 else x1
        y = y1 if texel_index < 2 else y0
        address = texel_at(texture, 0, x, y, 0, layer)
        word = missing
        if exists:
            word = corner_word(texture, memory, address, component)
            add_corner(address, 0, issue)
            if address >= 0:
                count_sector(address, issue, record)
        data.result[32 * texel_index + lane] = word


# ---- from coordinates to texels -----------------------------------------------------------------


@jitable
def find_corners(
    texture: TextureRow, sampler: int, data: TexelOperands, lane: int, issue: TexelIssue
) -> None:
    """Replaces the corners in the issue by those of a lane's fetch: the texels that filtering
    mixes, with their weights, without those of weight 0. With integer coordinates that is one
    texel, of the level operand, clamped, or of level 0; else they are those of one or two mipmap
    levels (`select_levels`)."""
    issue.corners, request = 0, issue.request
    if request >> INTEGER & 1:
        level = 0
        if request >> LOD & 3 == GIVEN_LEVEL:
            level = signed_at(data.lod, lane)
        level = min(max(level, 0), texture.levels - 1)
        add_integer_corner(texture, data, lane, level, issue)
        return
    level, weight = select_levels(texture, sampler, data, lane, request)
    add_corners(texture, sampler, data, lane, level, ONE_WEIGHT - weight, issue)
    if weight > 0:
        add_corners(texture, sampler, data, lane, level + 1, weight, issue)


@jitable
def add_integer_corner(
    texture: TextureRow, data: TexelOperands, lane: int, level: int, issue: TexelIssue
) -> None:
    """Appends the texel at integer coordinates plus texel offsets to the issue as the only
    corner, of weight WHOLE, with address -2 if they are out of bounds; the layer is clamped."""
    x, y, z = signed_at(data.x, lane), 0, 0
    geometry = issue.request >> GEOMETRY_AT & 15
    if geometry != ONE and geometry != ONE_ARRAY:
        y = signed_at(data.y, lane)
    if geometry == THREE:
        z = signed_at(data.z, lane)
    x += int(offset_of(data, lane, 0))
    y += int(offset_of(data, lane, 1))
    z += int(offset_of(data, lane, 2))
    inside = 0 <= x < extent(texture.width, level)
    inside = inside and 0 <= y < extent(texture.height, level)
    inside = inside and 0 <= z < extent(texture.depth, level)
    address = -2
    if inside:
        address = texel_at(texture, level, x, y, z, layer_of(texture, data, lane))
    add_corner(address, WHOLE, issue)


@jitable
def add_corners(
    texture: TextureRow, sampler: int, data: TexelOperands, lane: int, level: int, weight: int,
    issue: TexelIssue,
) -> None:  # fmt: skip
    """Appends the corners of one mipmap level to the issue, one or two along each axis of
    the geometry (one of integer texels, which are never filtered). The weight of a corner is
    `weight`, the level's, times its weights along three axes, all in 256ths; none is 0."""
    geometry = issue.request >> GEOMETRY_AT & 15
    u, v, w, layer, face_flags = sample_position(texture, data, lane, issue.request)
    scale = (sampler | face_flags) & NORMALIZED
    width, height = extent(texture.width, level), extent(texture.height, level)
    linear = sampler if is_number(texture.format, texture.as_float) else 0
    du, dv, dw = (offset_of(data, lane, 0), offset_of(data, lane, 1), offset_of(data, lane, 2))
    x0, x1, at_x = axis_texels(u, du, width, mode_of(sampler, 0), scale, linear)
    y0, y1, at_y, z0, z1, at_z = 0, 0, 0, 0, 0, 0
    if geometry != ONE and geometry != ONE_ARRAY:
        y0, y1, at_y = axis_texels(v, dv, height, mode_of(sampler, 1), scale, linear)
    if geometry == THREE:
        depth = extent(texture.depth, level)
        z0, z1, at_z = axis_texels(w, dw, depth, mode_of(sampler, 2), scale, linear)
    for corner in range(8):
        x, part_x = (x1, at_x) if corner & 1 else (x0, ONE_WEIGHT - at_x)
        y, part_y = (y1, at_y) if corner & 2 else (y0, ONE_WEIGHT - at_y)
        z, part_z = (z1, at_z) if corner & 4 else (z0, ONE_WEIGHT - at_z)
        corner_weight = weight * part_x * part_y * part_z
        if corner_weight > 0:
            add_corner(texel_at(texture, level, x, y, z, layer), corner_weight, issue)


@jitable
def add_corner(address: int, weight: int, issue: TexelIssue) -> None:
    """Appends a corner, its texel's address and weight, to the list in the issue."""
    count = issue.corners
    corner = corner_of(issue, count)
    corner.address, corner.weight = address, weight
    issue.corners = count + 1


@jitable
def sample_position(
    texture: TextureRow, data: TexelOperands, lane: int, request: int
) -> tuple[float, float, float, int, int]:
    """Returns u, v, w and the layer of a lane's fetch, which are its operands (the layer clamped to
    the last one), and 0. For cubes returns the coordinates on the face that the direction (u, v, w)
    hits, 0 for w, the layer 6 * cube + face, and, as coordinates on a face are always normalized,
    the sampler flag NORMALIZED in place of the final 0."""
    u, v, w = float_at(data.x, lane), float_at(data.y, lane), float_at(data.z, lane)
    layer, geometry = layer_of(texture, data, lane), request >> GEOMETRY_AT & 15
    if geometry != CUBE and geometry != CUBE_ARRAY:
        return u, v, w, layer, 0
    face, across, down = cube_face(u, v, w)
    cube = 0
    if geometry == CUBE_ARRAY:
        cubes = texture.layers // 6
        cube = min(int(np.int64(data.layer[lane])) & 0xFFFFFFFF, cubes - 1)
    return across, down, 0.0, 6 * cube + face, NORMALIZED


@jitable
def texel_at(texture: TextureRow, level: int, x: int, y: int, z: int, layer: int) -> int:
    """Returns the offset in device memory, in bytes, of a texel of a mipmap level and layer; -1 for
    the border (a negative coordinate). Coordinates are not checked against the size."""
    if x < 0 or y < 0 or z < 0:
        return -1
    width, height = extent(texture.width, level), extent(texture.height, level)
    depth = extent(texture.depth, level)
    texel_index = ((layer * depth + z) * height + y) * width + x
    size = format_bytes(texture.format) * texture.components
    return int(texture.level_at[level]) + texel_index * size


@jitable
def extent(size: int, level: int) -> int:
    """Returns the size in texels of mipmap level `level` along an axis: `size`, that of level 0,
    halved `level` times and rounded down, at least 1."""
    return max(1, size >> level)


@jitable
def layer_of(texture: TextureRow, data: TexelOperands, lane: int) -> int:
    """Returns the layer operand of a lane, an unsigned number, clamped to the last layer."""
    layer = int(np.int64(data.layer[lane])) & 0xFFFFFFFF
    return min(layer, texture.layers - 1)


@jitable
def select_of(texture: TextureRow, component: int) -> int:
    """Returns which component of a texel a component of a result is, or SELECT_ZERO or
    SELECT_ONE."""
    return int(texture.selects) >> (4 * component) & 7


@jitable
def mode_of(sampler: int, axis: int) -> int:
    """Returns the address mode of an encoded sampler along axis `axis`, 0 to 2."""
    return sampler >> (MODES_AT + 4 * axis) & 15


@jitable
def offset_of(data: TexelOperands, lane: int, axis: int) -> float:
    """Returns the offset operand of a lane along an axis, in texels."""
    return float(signed_at(data.offset, 32 * axis + lane))


@jitable
def float_at(row: Addresses, lane: int) -> float:
    """Returns the 32-bit float of a lane in a row of operands."""
    return float_value(int(np.int64(row[lane])) & 0xFFFFFFFF)


@jitable
def signed_at(row: Addresses, lane: int) -> int:
    """Returns the signed 32-bit integer of a lane in a row of operands."""
    return signed_value(int(np.int64(row[lane])) & 0xFFFFFFFF, 32)


# ---- levels of detail ---------------------------------------------------------------------------


@jitable
def select_levels(
    texture: TextureRow, sampler: int, data: TexelOperands, lane: int, request: int
) -> tuple[int, int]:
    """Returns the mipmap level to fetch from, and the weight of the next level in 256ths (0 unless
    the sampler filters between levels; the level is then the nearest). The level of detail is the
    base level 0, an operand, or computed from gradients, limited to the texture's levels."""
    source, last = request >> LOD & 3, texture.levels - 1
    detail = 0.0
    if source == GIVEN_LEVEL:
        detail = float_at(data.lod, lane)
    elif source == GRADIENTS:
        detail = level_of_detail(texture, sampler, data, lane, request >> GEOMETRY_AT & 15)
    if not detail > 0.0:
        return 0, 0
    detail = min(detail, float(last))
    if not sampler & MIP_LINEAR:
        return int(np.floor(detail + 0.5)), 0
    level = int(np.floor(detail))
    weight = int(np.floor((detail - level) * ONE_WEIGHT + 0.5))
    # A weight that rounds up to 1 selects the next level alone.
    return (level + 1, 0) if weight == ONE_WEIGHT else (level, weight)


@jitable
def level_of_detail(
    texture: TextureRow, sampler: int, data: TexelOperands, lane: int, geometry: int
) -> float:
    """Returns the level of detail at which the longer gradient is one texel long: the base-2
    logarithm of its length in texels of level 0, at least 0, rounded down to a multiple of 2^-10
    (`log2_of`, halved). Normalized gradients are multiplied by the size, those of cubes by half the
    width."""
    cube = geometry in (CUBE, CUBE_ARRAY)
    axes = 3 if cube or geometry == THREE else 2
    if geometry in (ONE, ONE_ARRAY):
        axes = 1
    longest = 0.0
    for gradients in (data.dx, data.dy):
        square = 0.0
        for axis in range(axes):
            part = float_at(gradients, 32 * axis + lane)
            if cube:
                part *= texture.width * 0.5  # a face spans -1 to 1
            elif sampler & NORMALIZED:
                part *= float(texture.words[texture.at + TextureRow.width + axis])
            square += part * part
        longest = max(longest, square)
    # The length is squared: halving the logarithm takes the root.
    return log2_of(longest) / 2.0


# ---- from texels to results ---------------------------------------------------------------------


@jitable
def corner_word(texture: TextureRow, memory: Memory, address: int, component: int) -> int:
    """Returns a component of a corner's texel at offset `address` as a 32-bit word: of the border
    color for -1, 0 for -2 (out of bounds)."""
    if address == -1:
        return int(texture.border[component])
    if address < 0:
        return 0
    format = texture.format
    at = address + component * format_bytes(format)
    if is_srgb(texture, component):
        return float_bits(linear_color(memory, at))
    return component_word(memory, at, format, texture.as_float)


@jitable
def is_srgb(texture: TextureRow, component: int) -> bool:
    """Returns whether a component of texels is red, green or blue in sRGB."""
    return texture.as_float == SRGB and component < 3


@jitable
def filter_corners(texture: TextureRow, memory: Memory, component: int, issue: TexelIssue) -> int:
    """Returns a component of the weighted mean of all corners, as float bits; corners without a
    texel (border) have the border color. Summed in double precision, so that it is rounded once."""
    total, format = 0.0, texture.format
    inside = component * format_bytes(format)
    for corner in range(issue.corners):
        texel = corner_of(issue, corner)
        if texel.address < 0:
            value = float_value(int(texture.border[component]))
        else:
            value = component_number(memory, texel.address + inside, format)
            if is_srgb(texture, component):
                value = linear_color(memory, texel.address + inside)
        total += float(texel.weight) * value
    return float_bits(total / WHOLE)
