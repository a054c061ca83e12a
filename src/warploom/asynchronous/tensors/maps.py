"""Reads and writes the fields of a tensor map (CUtensorMap), the opaque object of 128 bytes that
describes a tensor and its boxes to TMA.

PTX and CUDA do not specify the layout; programs create maps by `cuTensorMapEncode*` and change them
by `tensormap.replace`, which also makes tiled maps of 128 zero bytes. Here a map is 16 words of 64
bits (`MapWords`). Code that CuTe DSL 4.8 compiles writes tiled maps itself, without the driver, so
address, dimensions, strides, box, rank, type, swizzle and interleave have the positions that it
uses. The positions of all other fields are ours.

Source of fields and their encodings: PTX ISA, "Tensor-Map" and "tensormap.replace"; cuda.h,
`cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

from warploom.asynchronous.records import MapWords
from warploom.simt.lane_counts import jitable

MAP_BYTES = 128
MOST_RANK = 5

TAG = 2
"""The required value of the four lowest bits of the flags, by which a map is recognized. Flags,
from bit 0: tag (4 bits), rank less 1 (3), element type (4), interleave (2), swizzle (3), fill (1);
from bit 22: mode (2), swizzle atomicity (2)."""

STRIDE_UNIT_BITS = 4
STRIDE_UNIT = 1 << STRIDE_UNIT_BITS
"""Strides are stored in units of 16 bytes."""

TILED, IM2COL, IM2COL_W, IM2COL_W128 = range(4)
NO_INTERLEAVE, INTERLEAVE_16B, INTERLEAVE_32B = range(3)
NO_SWIZZLE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B = range(4)
ATOM_16B, ATOM_32B, ATOM_32B_FLIP_8B, ATOM_64B = range(4)
FILL_ZEROS, FILL_NANS = range(2)

ELEMENT_TYPES = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16"),
    *("tf32", "tf32.ftz", "b4x16", "b4x16_p64", "b6x16_p32"),
)
"""Element types, numbered as in `tensormap.replace`."""

U8, U16, U32, S32, U64, S64, F16, F32, F32_FTZ, F64, BF16, TF32, TF32_FTZ = range(13)
FIRST_PACKED = 13

FIELDS = (
    *("global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride"),
    *("elemtype", "interleave_layout", "swizzle_mode", "fill_mode", "swizzle_atomicity"),
)
"""The fields of `tensormap.replace`; their indices are the numbers used here."""

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
def part(map: MapWords, word: int, at: int, bits: int) -> int:
    """Returns `bits` bits (less than 64) of word number `word`, from bit `at` on, as an unsigned
    number."""
    return (int(map.words[map.at + word]) >> at) & ((1 << bits) - 1)


@jitable
def set_part(map: MapWords, word: int, at: int, bits: int, value: int) -> None:
    """Replaces `bits` bits of word number `word`, from bit `at` on, by the low bits of `value`."""
    value &= (1 << bits) - 1
    mask = ((1 << bits) - 1) << at
    if at + bits == 64:  # the field contains the sign bit of the word
        value -= (value >> (bits - 1)) << bits
        mask = -(1 << at)
    index = map.at + word
    map.words[index] = (int(map.words[index]) & ~mask) | (value << at)


@jitable
def signed_part(map: MapWords, word: int, at: int) -> int:
    """Returns the 16 bits of word number `word` from bit `at` on, as a signed number."""
    value = part(map, word, at, 16)
    return value - ((value & 0x8000) << 1)


@jitable
def is_map(map: MapWords) -> bool:
    """Returns whether the words of a map or entry are a tensor map: they have its tag, and a rank
    of at most 5."""
    return part(map, MapWords.flags, 0, 4) == TAG and map_rank(map) <= MOST_RANK


@jitable
def is_blank(map: MapWords) -> bool:
    """Returns whether all words of a map are 0: memory in which kernels make a map by setting all
    of its fields, as Triton's `make_tensor_descriptor` does."""
    bits = 0
    for word in range(MapWords.WORDS):
        bits |= int(map.words[map.at + word])
    return bits == 0


@jitable
def map_rank(map: MapWords) -> int:
    """Returns the number of axes of the tensor."""
    return part(map, MapWords.flags, 4, 3) + 1


@jitable
def map_type(map: MapWords) -> int:
    """Returns the number of the element type, an index of ELEMENT_TYPES."""
    return part(map, MapWords.flags, 7, 4)


@jitable
def map_interleave(map: MapWords) -> int:
    """Returns the interleave layout: NO_INTERLEAVE, INTERLEAVE_16B or INTERLEAVE_32B."""
    return part(map, MapWords.flags, 11, 2)


@jitable
def map_swizzle(map: MapWords) -> int:
    """Returns the swizzle mode: NO_SWIZZLE, SWIZZLE_32B, SWIZZLE_64B or SWIZZLE_128B."""
    return part(map, MapWords.flags, 13, 3)


@jitable
def map_fill(map: MapWords) -> int:
    """Returns the fill mode of elements out of bounds: FILL_ZEROS or FILL_NANS."""
    return part(map, MapWords.flags, 16, 1)


@jitable
def map_mode(map: MapWords) -> int:
    """Returns the mode: TILED, IM2COL, IM2COL_W or IM2COL_W128."""
    return part(map, MapWords.flags, 22, 2)


@jitable
def map_atomicity(map: MapWords) -> int:
    """Returns the atomicity of the 128-byte swizzle (ATOM_16B, ...)."""
    return part(map, MapWords.flags, 24, 2)


@jitable
def dim(map: MapWords, axis: int) -> int:
    """Returns the size of the tensor along an axis; axis 0 is the innermost."""
    return part(map, MapWords.dims + axis // 2, 32 * (axis % 2), 32) + 1


@jitable
def stride(map: MapWords, axis: int) -> int:
    """Returns the bytes from one element of the tensor to the next along an outer axis (1 or
    more)."""
    low = part(map, MapWords.strides + axis // 2, 32 * (axis % 2), 32)
    # Strides have up to 40 bits: 4 implied zeros, 32 bits in `strides`, 4 more here.
    high = part(map, MapWords.high_strides, 32 + 4 * (axis - 1), 4)
    return (low | high << 32) << STRIDE_UNIT_BITS


@jitable
def set_stride(map: MapWords, axis: int, size: int) -> None:
    """Sets the bytes from one element to the next along an outer axis (1 or more); the lowest four
    bits of `size` are lost."""
    units = size >> STRIDE_UNIT_BITS
    set_part(map, MapWords.strides + axis // 2, 32 * (axis % 2), 32, units)
    set_part(map, MapWords.high_strides, 32 + 4 * (axis - 1), 4, units >> 32)


@jitable
def box(map: MapWords, axis: int) -> int:
    """Returns the size of the box along an axis, 1 to 256 elements of the tensor."""
    # Axis 0 is in the last byte of word 6, the others in the first bytes of word 7.
    return part(map, MapWords.box + (axis + 7) // 8, 8 * ((axis + 7) % 8), 8) + 1


@jitable
def element_stride(map: MapWords, axis: int) -> int:
    """Returns the traversal stride of the box along an axis, in elements of the tensor."""
    return part(map, MapWords.steps, 32 + 3 * axis, 3) + 1


@jitable
def replace(map: MapWords, field: int, axis: int, value: int) -> None:
    """Sets a field of a map as `tensormap.replace` does: `field` is an index of FIELDS; `axis` is
    used only by fields with a value for each axis. For a stride, axis 0 is the innermost of the
    outer axes. `value` is the instruction's operand: a size or element stride (stored less 1), a
    stride in bytes (`set_stride`), a RANK (less 1 already), or the field's code or address."""
    if field == GLOBAL_ADDRESS:
        map.address = value
    elif field == GLOBAL_STRIDE:
        set_stride(map, axis + 1, value)
    elif field == GLOBAL_DIM:
        set_part(map, MapWords.dims + axis // 2, 32 * (axis % 2), 32, value - 1)
    elif field == BOX_DIM:
        set_part(map, MapWords.box + (axis + 7) // 8, 8 * ((axis + 7) % 8), 8, value - 1)
    elif field == ELEMENT_STRIDE:
        set_part(map, MapWords.steps, 32 + 3 * axis, 3, value - 1)
    elif field == RANK:
        set_part(map, MapWords.flags, 4, 3, value)
    elif field == ELEMTYPE:
        set_part(map, MapWords.flags, 7, 4, value)
    elif field == INTERLEAVE_LAYOUT:
        set_part(map, MapWords.flags, 11, 2, value)
    elif field == SWIZZLE_MODE:
        set_part(map, MapWords.flags, 13, 3, value)
    elif field == FILL_MODE:
        set_part(map, MapWords.flags, 16, 1, value)
    elif field == SWIZZLE_ATOMICITY:
        set_part(map, MapWords.flags, 24, 2, value)


@jitable
def begin_map(map: MapWords, mode: int) -> None:
    """Makes a tensor map of mode `mode` (TILED, ...) from zeroed words: sets tag and mode."""
    set_part(map, MapWords.flags, 0, 4, TAG)
    set_part(map, MapWords.flags, 22, 2, mode)


@jitable
def type_bytes(type: int) -> int:
    """Returns the bytes of an element of a type; 0 for packed types, whose elements share bytes."""
    if type >= FIRST_PACKED:
        return 0
    if type == U8:
        return 1
    if type in (U16, F16, BF16):
        return 2
    return 8 if type in (U64, S64, F64) else 4


@jitable
def swizzled(map: MapWords, address: int) -> int:
    """Returns the address at which the swizzle of a map moves the byte of shared memory at
    `address` (relative to the shared window); `address` itself without swizzle.

    The number of a 16-byte chunk in its span of 32, 64 or 128 bytes is xor-ed with bits of the
    number of the 128-byte line. For spans of 128 bytes, atomicities of 32 and 64 bytes permute
    chunks of that size, and ATOM_32B_FLIP_8B also swaps the 8-byte halves of each 16 bytes in every
    second line. Source: PTX ISA, "Swizzling Modes"; cuda.h, CUtensorMapSwizzle.
    """
    mode, atomicity = map_swizzle(map), map_atomicity(map)
    if mode == NO_SWIZZLE:
        return address
    # Bits 4 and up, the number of a 16-byte chunk in its span of 32, 64 or 128 bytes, are xor-ed
    # with bits 7 and up, the number of the 128-byte line. Larger atoms permute larger chunks.
    if mode == SWIZZLE_32B:
        return address ^ ((address >> 3) & 0x10)
    if mode == SWIZZLE_64B:
        return address ^ ((address >> 3) & 0x30)
    if atomicity == ATOM_16B:
        return address ^ ((address >> 3) & 0x70)
    if atomicity == ATOM_64B:
        return address ^ ((address >> 1) & 0x40)
    # ATOM_32B_FLIP_8B also swaps the 8-byte halves of each 16 bytes in every second line.
    flipped = (address >> 4) & 0x08 if atomicity == ATOM_32B_FLIP_8B else 0
    return address ^ ((address >> 2) & 0x60) ^ flipped
