"""The 128 bytes of a tensor map: which bits hold which field.

PTX and CUDA leave the layout open ("opaque"); programs make maps by `cuTensorMapEncode*` and change
them by `tensormap.replace`. Here a map is 16 words of 64 bits. The code that CuTe DSL 4.8 compiles
writes maps of tiles itself, without the driver: address, dimensions, strides, box, rank, type,
swizzle and interleave stand where it puts them. The places of all other fields are our own.

Source of fields and their encodings: PTX ISA, "Tensor-Map" and "tensormap.replace"; cuda.h,
`cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

from warploom.simt.lane_counts import Row, jitable

MAP_BYTES = 128
MAP_WORDS = MAP_BYTES // 8
MOST_RANK = 5

ADDRESS, FLAGS, STRIDES, HIGH_STRIDES, DIMS, STEPS, BOX, LOWER, UPPER, COLUMN = (
    *(0, 1, 1, 3, 4, 6, 6),
    *(8, 9, 10),
)
"""Words: the address; flags, in the lower half; strides divided by 16, 32 bits each, from the upper
half of word 1 on; their higher bits, four each, in the upper half of word 3; sizes less 1, 32 bits
each; element strides less 1, three bits each, in the upper half of word 6; sizes of the box less
1, 8 bits each, from the last byte of word 6 on. Of im2col: corners, 16 bits each, channels and
pixels."""

TAG = 2
"""The lowest bits of the flags; memory without them is no tensor map."""

STRIDE_UNIT_BITS = 4

TILED, IM2COL, IM2COL_W, IM2COL_W128 = range(4)
NO_INTERLEAVE, INTERLEAVE_16B, INTERLEAVE_32B = range(3)
NO_SWIZZLE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B = range(4)
ATOM_16B, ATOM_32B, ATOM_32B_FLIP_8B, ATOM_64B = range(4)
FILL_ZEROS, FILL_NANS = range(2)

ELEMENT_TYPES = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16"),
    *("tf32", "tf32.ftz", "b4x16", "b4x16_p64", "b6x16_p32"),
)
"""Element types, by the numbers that `tensormap.replace` gives them."""

U8, U16, U32, S32, U64, S64, F16, F32, F32_FTZ, F64, BF16, TF32, TF32_FTZ = range(13)
FIRST_PACKED = 13

FIELDS = (
    *("global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride"),
    *("elemtype", "interleave_layout", "swizzle_mode", "fill_mode", "swizzle_atomicity"),
)
"""The fields that `tensormap.replace` knows, by the numbers that stand for them here."""

(
    GLOBAL_ADDRESS,
    RANK,
    BOX_DIM,
    GLOBAL_DIM,
    GLOBAL_STRIDE,
    ELEMENT_STRIDE,
    ELEMTYPE,
    INTERLEAVE_LAYOUT,
    SWIZZLE_MODE,
    FILL_MODE,
    SWIZZLE_ATOMICITY,
) = range(11)


@jitable
def part(map: Row, word: int, at: int, bits: int) -> int:
    """Returns some bits of a word as an unsigned number."""
    return (int(map[word]) >> at) & ((1 << bits) - 1)


@jitable
def set_part(map: Row, word: int, at: int, bits: int, value: int) -> None:
    """Replace some bits of a word."""
    value &= (1 << bits) - 1
    mask = ((1 << bits) - 1) << at
    if at + bits == 64:  # they hold the sign of the word
        value -= (value >> (bits - 1)) << bits
        mask = -(1 << at)
    map[word] = (int(map[word]) & ~mask) | (value << at)


@jitable
def signed_part(map: Row, word: int, at: int) -> int:
    """Returns 16 bits of a word as a signed number."""
    value = part(map, word, at, 16)
    return value - ((value & 0x8000) << 1)


@jitable
def is_map(map: Row) -> bool:
    """Returns whether words can be a tensor map."""
    return part(map, FLAGS, 0, 4) == TAG and map_rank(map) <= MOST_RANK


@jitable
def map_rank(map: Row) -> int:
    """Returns the number of axes."""
    return part(map, FLAGS, 4, 3) + 1


@jitable
def map_type(map: Row) -> int:
    """Returns the number of the element type."""
    return part(map, FLAGS, 7, 4)


@jitable
def map_interleave(map: Row) -> int:
    """Returns the interleave layout."""
    return part(map, FLAGS, 11, 2)


@jitable
def map_swizzle(map: Row) -> int:
    """Returns the swizzle mode."""
    return part(map, FLAGS, 13, 3)


@jitable
def map_fill(map: Row) -> int:
    """Returns what stands out of bounds."""
    return part(map, FLAGS, 16, 1)


@jitable
def map_mode(map: Row) -> int:
    """Returns whether the map is of tiles or of columns of pixels."""
    return part(map, FLAGS, 22, 2)


@jitable
def map_atomicity(map: Row) -> int:
    """Returns the chunks that a swizzle of 128 bytes keeps together."""
    return part(map, FLAGS, 24, 2)


@jitable
def dim(map: Row, axis: int) -> int:
    """Returns the size of the tensor along an axis; axis 0 is the innermost."""
    return part(map, DIMS + axis // 2, 32 * (axis % 2), 32) + 1


@jitable
def stride(map: Row, axis: int) -> int:
    """Returns the bytes from one element to the next along an axis that is not the innermost."""
    low = part(map, STRIDES + axis // 2, 32 * (axis % 2), 32)
    high = part(map, HIGH_STRIDES, 32 + 4 * (axis - 1), 4)
    return (low | high << 32) << STRIDE_UNIT_BITS


@jitable
def set_stride(map: Row, axis: int, size: int) -> None:
    """Set the bytes between elements along an axis that is not the innermost."""
    units = size >> STRIDE_UNIT_BITS
    set_part(map, STRIDES + axis // 2, 32 * (axis % 2), 32, units)
    set_part(map, HIGH_STRIDES, 32 + 4 * (axis - 1), 4, units >> 32)


@jitable
def box(map: Row, axis: int) -> int:
    """Returns the size of the box along an axis."""
    return part(map, BOX + (axis + 7) // 8, 8 * ((axis + 7) % 8), 8) + 1


@jitable
def element_stride(map: Row, axis: int) -> int:
    """Returns the step of the box along an axis, in elements of the tensor."""
    return part(map, STEPS, 32 + 3 * axis, 3) + 1


@jitable
def replace(map: Row, field: int, axis: int, value: int) -> None:
    """Set a field as `tensormap.replace` does."""
    if field == GLOBAL_ADDRESS:
        map[ADDRESS] = value
    elif field == GLOBAL_STRIDE:
        set_stride(map, axis + 1, value)
    elif field == GLOBAL_DIM:
        set_part(map, DIMS + axis // 2, 32 * (axis % 2), 32, value - 1)
    elif field == BOX_DIM:
        set_part(map, BOX + (axis + 7) // 8, 8 * ((axis + 7) % 8), 8, value - 1)
    elif field == ELEMENT_STRIDE:
        set_part(map, STEPS, 32 + 3 * axis, 3, value - 1)
    elif field == RANK:
        set_part(map, FLAGS, 4, 3, value)
    elif field == ELEMTYPE:
        set_part(map, FLAGS, 7, 4, value)
    elif field == INTERLEAVE_LAYOUT:
        set_part(map, FLAGS, 11, 2, value)
    elif field == SWIZZLE_MODE:
        set_part(map, FLAGS, 13, 3, value)
    elif field == FILL_MODE:
        set_part(map, FLAGS, 16, 1, value)
    elif field == SWIZZLE_ATOMICITY:
        set_part(map, FLAGS, 24, 2, value)


@jitable
def begin_map(map: Row, mode: int) -> None:
    """Make empty words a tensor map of tiles or of columns of pixels."""
    set_part(map, FLAGS, 0, 4, TAG)
    set_part(map, FLAGS, 22, 2, mode)


@jitable
def type_bytes(type: int) -> int:
    """Returns the bytes of an element of a type; 0 of packed ones, which share bytes."""
    if type >= FIRST_PACKED:
        return 0
    if type == U8:
        return 1
    if type in (U16, F16, BF16):
        return 2
    return 8 if type in (U64, S64, F64) else 4


@jitable
def swizzled(map: Row, address: int) -> int:
    """Returns where in shared memory a byte goes that would stand at `address` without swizzling.

    Exclusive-ors bits of the address, counted from the start of the window of shared memory, that
    choose a chunk in its span with those that choose the span. Source: PTX ISA, "Swizzling Modes";
    cuda.h, CUtensorMapSwizzle.
    """
    mode, atomicity = map_swizzle(map), map_atomicity(map)
    if mode == NO_SWIZZLE:
        return address
    if mode == SWIZZLE_32B:
        return address ^ ((address >> 3) & 0x10)
    if mode == SWIZZLE_64B:
        return address ^ ((address >> 3) & 0x30)
    if atomicity == ATOM_16B:
        return address ^ ((address >> 3) & 0x70)
    if atomicity == ATOM_64B:
        return address ^ ((address >> 1) & 0x40)
    flipped = (address >> 4) & 0x08 if atomicity == ATOM_32B_FLIP_8B else 0
    return address ^ ((address >> 2) & 0x60) ^ flipped
