"""Describes textures and surfaces to the rules that read them: words of two kinds.

A table of int64 holds a header and a row for each texture or surface that was ever made; a handle
is HANDLE_TAG plus the number of a row. Texels lie in device memory, level by level, layer by layer,
slice by slice, row by row without gaps (pitch-linear, though real arrays are stored otherwise).

A request is what one instruction asks, packed into one integer, `field` by field. A sampler is one
word too: SAMPLER_TAG and how coordinates are meant and texels filtered.
"""

from __future__ import annotations

COUNT, BASE, SIZE = range(3)
HEADER_WORDS = 3
"""Of a table: how many rows it has, where device memory begins, and its bytes."""

KIND = 0
GEOMETRY = 1
FORMAT = 2
COMPONENTS = 3
WIDTH = 4
HEIGHT = 5
DEPTH = 6
LAYERS = 7
LEVELS = 8
AS_FLOAT = 9
SAMPLER = 10
BORDER = 11
LEVEL_AT = 15
MOST_LEVELS = 16
ROW_WORDS = LEVEL_AT + MOST_LEVELS
"""Of a row: sizes in texels of level 0 (faces of a cube are layers); AS_FLOAT says that integers
are read as numbers up to 1; four words of BORDER; where each level begins, from BASE."""

FREE, TEXTURE, SURFACE = range(3)
"""Values of KIND."""

GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")
ONE, TWO, THREE, ONE_ARRAY, TWO_ARRAY, CUBE, CUBE_ARRAY = range(7)

FORMATS = ("u8", "s8", "u16", "s16", "f16", "u32", "s32", "f32")
U8, S8, U16, S16, F16, U32, S32, F32 = range(8)

HANDLE_TAG = 1 << 62
SAMPLER_TAG = 1 << 61

LINEAR, MIP_LINEAR, NORMALIZED = 1, 2, 4
MODES_AT = 4
"""Bits of a sampler; from MODES_AT on, four for the address mode of each axis."""

ADDRESS_MODES = ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")
WRAP, MIRROR, CLAMP_OGL, CLAMP, BORDERED = range(5)
"""As the manual lists them (PTX ISA, "Texture, Sampler and Surface Types")."""


def sampler_word(modes: tuple[int, int, int], *, flags: int) -> int:
    """Returns a sampler with these address modes, and of LINEAR, MIP_LINEAR and NORMALIZED the
    `flags`."""
    return SAMPLER_TAG | flags | sum(mode << (MODES_AT + 4 * i) for i, mode in enumerate(modes))


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
"""Where each field of a request begins: what to do; the geometry; whether coordinates are integers;
where the level of detail comes from; whether there is a sampler operand; the component to gather,
or what to query; what a surface does outside; bytes of an element, and how many; the reduction, and
whether it is of signed numbers; whether results are rounded to half precision, and two of them put
into one word."""

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
"""Numbers of QUERIES; from NORMALIZED_OF on they ask a sampler, from MODE_OF on of an axis."""

KINDS = ("texref", "surfref", "samplerref")
IS_TEXTURE, IS_SURFACE, IS_SAMPLER = range(3)

# ---- lanes --------------------------------------------------------------------------------------

ADDRESS_ROW, HANDLE_ROW, SAMPLER_ROW, X_ROW, Y_ROW, Z_ROW, LAYER_ROW, LOD_ROW = range(8)
DX_ROW, DY_ROW, OFFSET_ROW, VALUE_ROW, RESULT_ROW = 8, 11, 14, 17, 21
DATA_ROWS = RESULT_ROW + 4
"""The operands and results of a request: rows of 32 lanes, 64 bits each. Gradients and offsets have
three rows, values and results four."""

FAULT_KIND, FAULT_LANE, FAULT_ADDRESS, FAULT_SIZE = range(4)
TOUCHED = 4
MOST_TOUCHED = 32 * 16
CORNERS = TOUCHED + 1 + MOST_TOUCHED
MOST_CORNERS = 16
SCRATCH_WORDS = CORNERS + 1 + 2 * MOST_CORNERS
"""The words that a request may use: the record of a fault; the sectors touched, and the texels of a
lane with their weights, a count before either."""

MISALIGNED, BAD_HANDLE, OTHER_GEOMETRY, OUTSIDE_SURFACE = 2, 11, 12, 13
"""Kinds of fault, as `machine.faults.fault_errors.FaultKind` numbers them."""
