"""Defines the encodings of textures, surfaces, samplers and of the requests of instructions as
integers.

The table of textures is an int64 array: a header and a row for each texture or surface that was
ever created. A handle is HANDLE_TAG plus the row's number. Texels lie in device memory in the order
of mipmap level, layer, slice, row, without gaps (pitch-linear, unlike the tiled layout of real CUDA
arrays).

A request is one integer that encodes an instruction, as bit fields. A sampler is one integer:
SAMPLER_TAG, flags for coordinates and filtering, and address modes.
"""

from __future__ import annotations

from typing import Annotated

from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord, Words

LANES = 32
Row = Annotated[Words, LANES]
MOST_LEVELS = 16


class TextureHeader(WordRecord):
    """The header of the table, which its rows follow."""

    count: int  # number of rows
    base: int  # address of device memory
    size: int  # its bytes


class TextureRow(WordRecord):
    """The row of a texture or surface. Sizes are in texels of level 0 (faces of a cube are
    layers)."""

    kind: int
    geometry: int
    format: int
    components: int
    width: int
    height: int
    depth: int
    layers: int
    levels: int
    as_float: int  # integer texels are normalized floats (SRGB: those of colors in sRGB)
    selects: int  # which component of a texel each of a result is (`selects_word`)
    order: int  # the code of the order of channels, for queries
    sampler: int
    border: Annotated[Words, 4]  # the border color
    level_at: Annotated[Words, MOST_LEVELS]  # the offset of each level from `base`


FREE, TEXTURE, SURFACE = range(3)
"""Values of `TextureRow.kind`."""

NORMALIZED_TEXELS, SRGB = 1, 2
"""Values of `TextureRow.as_float`, which is 0 for texels that are read as they are."""

SELECT_ZERO, SELECT_ONE = 4, 5
"""What a component of a result may be beside a texel's, 0 to 3."""

GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")
ONE, TWO, THREE, ONE_ARRAY, TWO_ARRAY, CUBE, CUBE_ARRAY = range(7)

FORMATS = ("u8", "s8", "u16", "s16", "f16", "u32", "s32", "f32")
U8, S8, U16, S16, F16, U32, S32, F32 = range(8)

HANDLE_TAG = 1 << 62
SAMPLER_TAG = 1 << 61

LINEAR, MIP_LINEAR, NORMALIZED = 1, 2, 4
MODES_AT = 4
"""Flags of a sampler; from bit MODES_AT on, four bits for the address mode of each axis."""

ADDRESS_MODES = ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")
WRAP, MIRROR, CLAMP_OGL, CLAMP, BORDERED = range(5)
"""Address modes, in the order of PTX ISA, "Texture, Sampler and Surface Types"."""


def sampler_word(modes: tuple[int, int, int], *, flags: int) -> int:
    """Encodes a sampler as an integer: SAMPLER_TAG, `flags` (LINEAR, MIP_LINEAR and NORMALIZED
    combined), and from bit MODES_AT on four bits for the address mode of each of three axes."""
    return SAMPLER_TAG | flags | sum(mode << (MODES_AT + 4 * i) for i, mode in enumerate(modes))


Selects = tuple[int, int, int, int]


def selects_word(selects: Selects) -> int:
    """Encodes which component of a texel each of the four components of a result is, or SELECT_ZERO
    or SELECT_ONE: in four bits each, the first lowest."""
    return sum(select << (4 * component) for component, select in enumerate(selects))


def default_selects(components: int) -> Selects:
    """Returns the components of a result for texels that have the first `components` of them:
    missing ones are 0, but the fourth is 1."""
    x, y, z = (*range(min(components, 3)), *(SELECT_ZERO,) * 3)[:3]
    return x, y, z, 3 if components == 4 else SELECT_ONE


def default_order(components: int) -> int:
    """Returns the OpenCL code of the channel order of 1, 2 or 4 components: R, RG or RGBA (PTX ISA,
    "Channel Data Type and Channel Order")."""
    return {1: 0x10B0, 2: 0x10B2}.get(components, 0x10B5)


# ---- requests -----------------------------------------------------------------------------------

OP = 0
GEOMETRY_AT = 4
INTEGER = 8
LOD = 9
HAS_SAMPLER = 11
COMPONENT = 12
MODE = 16
ELEMENT = 18
PARTS = 23
REDUCTION = 26
SIGNED = 29
HALVES = 30
"""Bit positions of the fields of a request. OP: operation; GEOMETRY_AT: geometry (GEOMETRIES);
INTEGER: coordinates are integers; LOD: source of the level of detail; HAS_SAMPLER: there is a
sampler operand; COMPONENT: component to gather, or number of a query; MODE: out-of-bounds mode of a
surface access; ELEMENT, PARTS: bytes of an element, and number of elements; REDUCTION, SIGNED:
operation of `sured`; HALVES: rounding of results to half precision, alone or packed by two."""

FETCH, GATHER, QUERY, IS_TYPE, LOAD, STORE, STORE_FORMATTED, REDUCE, REDUCE_FORMATTED = range(9)
BASE_LEVEL, GIVEN_LEVEL, GRADIENTS = range(3)
TRAP, CLAMPED, ZERO = range(3)
SINGLE_HALVES, PACKED_HALVES = 1, 2
REDUCTIONS = ("add", "min", "max", "and", "or")
ADD, MIN, MAX, AND, OR = range(5)

QUERIES = (
    *("width", "height", "depth", "array_size", "num_mipmap_levels", "num_samples"),
    *("channel_data_type", "channel_order", "memory_layout"),
    *("normalized_coords", "force_unnormalized_coords", "filter_mode"),
    *("addr_mode_0", "addr_mode_1", "addr_mode_2"),
)
WIDTH_OF, HEIGHT_OF, DEPTH_OF, LAYERS_OF, LEVELS_OF, SAMPLES_OF = range(6)
TYPE_OF, ORDER_OF, LAYOUT_OF = range(6, 9)
NORMALIZED_OF, UNNORMALIZED_OF, FILTER_OF, MODE_OF = range(9, 13)
"""Indices of QUERIES: from NORMALIZED_OF on they query the sampler, from MODE_OF on the address
mode of an axis."""

KINDS = ("texref", "surfref", "samplerref")
IS_TEXTURE, IS_SURFACE, IS_SAMPLER = range(3)

# ---- lanes --------------------------------------------------------------------------------------


class TexelOperands(WordRecord):
    """The operands and results of a request: rows of 32 lanes, 64 bits each."""

    address: Row  # of a surface access, as an offset from `base`
    handle: Row
    sampler: Row
    x: Row
    y: Row
    z: Row
    layer: Row
    lod: Row
    dx: Annotated[Words, 3 * LANES]  # gradients
    dy: Annotated[Words, 3 * LANES]
    offset: Annotated[Words, 3 * LANES]
    value: Annotated[Words, 4 * LANES]
    result: Annotated[Words, 4 * LANES]


MOST_TOUCHED, MOST_CORNERS = LANES * 16, 16


class Corner(WordRecord):
    """A texel that filtering mixes: its offset, and its weight."""

    address: int
    weight: int


class TexelIssue(WordRecord):
    """The issue of a texture or surface instruction by a warp: its request, the record of its
    fault, the touched sectors, one lane's corners."""

    mask: int  # the lanes that issue
    request: int  # the encoded instruction
    path: int  # through the simulated caches (`cost.caches`), or NO_PATH
    block: int  # its grid index

    fault_kind: int
    fault_lane: int
    fault_address: int
    fault_size: int
    touched: int  # how many of `sectors`
    sectors: Annotated[Words, MOST_TOUCHED]  # their indices
    corners: int  # how many of the corners
    corner_list: Annotated[Words, MOST_CORNERS * Corner.WORDS]
    counts: Annotated[Words, CostRecord.WORDS]  # of accesses that are not counted elsewhere


NO_PATH = -1
"""The value of `TexelIssue.path` if no caches are simulated (`cost.caches`)."""


MISALIGNED, BAD_HANDLE, OTHER_GEOMETRY, OUTSIDE_SURFACE = 2, 11, 12, 13
"""Kinds of fault, numbered as in `machine.faults.fault_errors.FaultKind`."""


@jitable
def corner_of(issue: TexelIssue, number: int) -> Corner:
    """Returns a corner of the list in the issue."""
    return Corner(issue, issue.at + TexelIssue.corner_list, number)
