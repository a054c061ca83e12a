"""The 128 bytes of a tensor map: which bits hold which field.

PTX and CUDA leave the layout open ("opaque"); programs make maps by `cuTensorMapEncode*` and change
them by `tensormap.replace`. Here a map is 16 words of 64 bits. Source of fields and their
encodings:
PTX ISA, "Tensor-Map" and "tensormap.replace"; cuda.h, `cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

from warploom.rules.distinct import Row, jitable

MAP_BYTES = 128
MAP_WORDS = MAP_BYTES // 8
MOST_RANK = 5

TAG_AT, RANK_AT, MODE_AT, TYPE_AT, INTERLEAVE_AT = 0, 16, 20, 24, 28
SWIZZLE_AT, ATOMICITY_AT, FILL_AT, PROMOTION_AT = 32, 36, 40, 44
TAG = 0x7E50
"""The lowest bits of word 0; the other fields of that word are four bits wide. Memory without the
tag is no tensor map."""

FLAGS, ADDRESS, DIMS, STRIDES, BOX, LOWER, UPPER, COLUMN = 0, 1, 2, 5, 9, 10, 11, 12
"""Words: what the constants above name; the address; sizes less 1 (two in a word); strides in
bytes; the box: sizes less 1, 8 bits each, from ELEMENT_STRIDES_AT on strides less 1, 3 bits each;
the corners of im2col, 16 bits each; its channels and pixels, 16 bits each."""

ELEMENT_STRIDES_AT = 40

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
    """Return some bits of a word as an unsigned number."""
    return (int(map[word]) >> at) & ((1 << bits) - 1)


@jitable
def set_part(map: Row, word: int, at: int, bits: int, value: int) -> None:
    """Replace some bits of a word, which are not its highest."""
    mask = ((1 << bits) - 1) << at
    map[word] = (int(map[word]) & ~mask) | ((value << at) & mask)


@jitable
def flag(map: Row, at: int) -> int:
    """Return one of the fields of four bits in word 0."""
    return part(map, FLAGS, at, 4)


@jitable
def is_map(map: Row) -> bool:
    """Return whether words are a tensor map."""
    return part(map, FLAGS, TAG_AT, 16) == TAG


@jitable
def signed_part(map: Row, word: int, at: int) -> int:
    """Return 16 bits of a word as a signed number."""
    value = part(map, word, at, 16)
    return value - ((value & 0x8000) << 1)


@jitable
def dim(map: Row, axis: int) -> int:
    """Return the size of the tensor along an axis; axis 0 is the innermost."""
    return part(map, DIMS + axis // 2, 32 * (axis % 2), 32) + 1


@jitable
def set_dim(map: Row, axis: int, size: int) -> None:
    """Set the size of the tensor along an axis."""
    low, high = int(map[DIMS + axis // 2]) & 0xFFFFFFFF, int(map[DIMS + axis // 2]) >> 32
    size = (size - 1) & 0x7FFFFFFF
    if axis % 2:
        high = size
    else:
        low = size
    map[DIMS + axis // 2] = (high << 32) | low


@jitable
def stride(map: Row, axis: int) -> int:
    """Return the bytes from one element to the next along an axis that is not the innermost."""
    return int(map[STRIDES + axis - 1])


@jitable
def box(map: Row, axis: int) -> int:
    """Return the size of the box along an axis."""
    return part(map, BOX, 8 * axis, 8) + 1


@jitable
def element_stride(map: Row, axis: int) -> int:
    """Return the step of the box along an axis, in elements of the tensor."""
    return part(map, BOX, ELEMENT_STRIDES_AT + 3 * axis, 3) + 1


@jitable
def replace(map: Row, field: int, axis: int, value: int) -> None:
    """Set a field as `tensormap.replace` does."""
    if field == GLOBAL_ADDRESS:
        map[ADDRESS] = value
    elif field == GLOBAL_STRIDE:
        map[STRIDES + axis] = value
    elif field == GLOBAL_DIM:
        set_dim(map, axis, value)
    elif field == BOX_DIM:
        set_part(map, BOX, 8 * axis, 8, value - 1)
    elif field == ELEMENT_STRIDE:
        set_part(map, BOX, ELEMENT_STRIDES_AT + 3 * axis, 3, value - 1)
    elif field == RANK:
        set_part(map, FLAGS, RANK_AT, 4, value + 1)
    elif field == ELEMTYPE:
        set_part(map, FLAGS, TYPE_AT, 4, value)
    elif field == INTERLEAVE_LAYOUT:
        set_part(map, FLAGS, INTERLEAVE_AT, 4, value)
    elif field == SWIZZLE_MODE:
        set_part(map, FLAGS, SWIZZLE_AT, 4, value)
    elif field == FILL_MODE:
        set_part(map, FLAGS, FILL_AT, 4, value)
    elif field == SWIZZLE_ATOMICITY:
        set_part(map, FLAGS, ATOMICITY_AT, 4, value)


@jitable
def type_bytes(type: int) -> int:
    """Return the bytes of an element of a type; 0 of packed ones, which are not supported."""
    if type >= FIRST_PACKED:
        return 0
    if type == U8:
        return 1
    if type in (U16, F16, BF16):
        return 2
    return 8 if type in (U64, S64, F64) else 4


@jitable
def swizzled(map: Row, address: int) -> int:
    """Return where in shared memory a byte goes that would stand at `address` without swizzling.

    Exclusive-ors bits of the address, counted from the start of the window of shared memory, that
    choose a chunk in its span with those that choose the span. Source: PTX ISA, "Swizzling Modes";
    cuda.h, CUtensorMapSwizzle.
    """
    mode, atomicity = flag(map, SWIZZLE_AT), flag(map, ATOMICITY_AT)
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
