"""Decodes the descriptors of `tcgen05`: matrix descriptors (where a matrix lies in shared memory),
and instruction descriptors (shape and types of a product).

PTX ISA, "Shared Memory Descriptor", "Instruction Descriptor", "Canonical Layouts"; the strides of
each layout follow CUTLASS (`make_umma_desc`, include/cute/arch/mma_sm100_desc.hpp). `kind` is a
kind of product (`.kind::f16`, ...), `sparse` whether A is.
"""

from __future__ import annotations

from typing import NamedTuple

from warploom.asynchronous.tensor_memory.layout import F8F6F4, F16, I8, MXF4, MXF8F6F4, TF32
from warploom.asynchronous.tensor_memory.numbers import (
    BFLOAT,
    BYTE,
    E2M1,
    HALF,
    SIGNED_BYTE,
    TENSOR_FLOAT,
)
from warploom.simt.lane_counts import jitable

# ---- matrices in shared memory ------------------------------------------------------------------

UNIT_BYTES = 16
ADDRESS_MASK = (1 << 18) - 1
"""Addresses and offsets wrap modulo 2^18 bytes: 14 bits encode them, in units of 16 bytes."""

NO_SWIZZLE, SWIZZLE_128_BY_32, SWIZZLE_128 = 0, 1, 2
LINE_BYTES = 128
"""Bytes of a row of the 128-byte swizzles."""
VERSION = 1
"""The required value of bits 46 to 48."""


class SharedMatrix(NamedTuple):
    """A matrix in shared memory: its descriptor, and `rows` rows of `depth` elements along k,
    `unit` of them in 16 bytes. If `transposed`, rows are contiguous in it, else k."""

    descriptor: int
    transposed: bool
    rows: int
    depth: int
    unit: int


@jitable
def lines_and_units(matrix: SharedMatrix) -> tuple[int, int]:
    """Returns how many lines a matrix has, and how many units of 16 bytes each, the last one
    partly used if the elements do not fill it."""
    lines, along = matrix.rows, matrix.depth
    if matrix.transposed:
        lines, along = along, lines
    return lines, (along + matrix.unit - 1) // matrix.unit


@jitable
def swizzle_of(descriptor: int) -> int:
    """Returns the swizzle mode of a matrix descriptor, bits 61 to 63: 0 none, 1 and 2: 128 bytes (1
    in atoms of 32), 4: 64 bytes, 6: 32 bytes."""
    return (descriptor >> 61) & 7


@jitable
def is_descriptor(descriptor: int) -> bool:
    """Returns whether a word is a valid matrix descriptor: version 1, bits 53 to 60 zero, and a
    swizzle mode that exists."""
    mode = swizzle_of(descriptor)
    fixed = (descriptor >> 46) & 7 == VERSION and (descriptor >> 53) & 0xFF == 0
    return fixed and (mode < 3 or mode == 4 or mode == 6)


@jitable
def unit_address(descriptor: int, transposed: bool, line: int, position: int) -> int:
    """Returns the offset in shared memory, swizzled, of 16-byte unit number `position` of line
    number `line` of the matrix of a descriptor.

    A line is contiguous along the major dimension: k, or m or n for a transposed matrix. Start,
    leading dimension and stride (between groups of lines) are fields of the descriptor. If the
    leading dimension is absolute: with the 128-byte swizzle (mode 2), not transposed, units beyond
    the 128 bytes of a line continue at that address (PTX ISA, "Absolute address mode for K
    dimension being 48B"); else it counts as its distance from the start.
    """
    # Fields of 14 bits, in units of 16 bytes: start, leading dimension, stride; bit 52: the leading
    # dimension is absolute, bits 49 to 51: base offset.
    start = (descriptor & 0x3FFF) * UNIT_BYTES
    leading = ((descriptor >> 16) & 0x3FFF) * UNIT_BYTES
    stride = ((descriptor >> 32) & 0x3FFF) * UNIT_BYTES
    mode = swizzle_of(descriptor)
    if (descriptor >> 52) & 1:
        if mode == SWIZZLE_128 and not transposed:
            along = (start & (LINE_BYTES - 1)) + position * UNIT_BYTES
            if along >= LINE_BYTES:
                start, position = leading, (along - LINE_BYTES) // UNIT_BYTES
        else:
            leading -= start
    if mode == NO_SWIZZLE:
        if transposed:
            leading, stride = stride, leading
        offset = (line >> 3) * stride + (line & 7) * UNIT_BYTES + position * leading
        return (start + offset) & ADDRESS_MASK
    # The swizzle patterns of modes 2, 4 and 6 have 8, 4 and 2 units per line, and 8 lines; that of
    # mode 1 has 8 units and 4 lines.
    width = 3 if mode == SWIZZLE_128_BY_32 else 4 - (mode >> 1)
    group = 2 if mode == SWIZZLE_128_BY_32 else 3
    atom = UNIT_BYTES << width
    between_atoms = leading if transposed else atom
    offset = (
        (line >> group) * stride
        + (line & ((1 << group) - 1)) * atom
        + (position >> width) * between_atoms
        + (position & ((1 << width) - 1)) * UNIT_BYTES
    )
    address = (start + offset) & ADDRESS_MASK
    # The swizzle xors the unit's number in its line of 32, 64 or 128 bytes with the number of the
    # 128-byte row, counted from the base offset.
    row = (address >> 7) - ((descriptor >> 49) & 7)
    if mode == SWIZZLE_128_BY_32:
        return address ^ ((row & 3) << 5)
    return address ^ ((row & ((1 << width) - 1)) << 4)


# ---- products -----------------------------------------------------------------------------------


@jitable
def rows_of(descriptor: int) -> int:
    """Returns M of an instruction descriptor (bits 24 to 28, in units of 16); of both blocks with
    `.cta_group::2`."""
    return ((descriptor >> 24) & 31) << 4


@jitable
def columns_of(descriptor: int) -> int:
    """Returns N of an instruction descriptor (bits 17 to 22, in units of 8)."""
    return ((descriptor >> 17) & 63) << 3


@jitable
def is_scaled(kind: int) -> bool:
    """Returns whether products of a kind are block-scaled: A and B have scales in tensor memory."""
    return kind >= MXF8F6F4


@jitable
def is_deep(kind: int, descriptor: int) -> bool:
    """Returns whether K of a dense product is 96 instead of 64 (sm_103a): packed 4-bit kinds with
    bit 31 of the instruction descriptor set."""
    return kind >= MXF4 and (descriptor >> 31) & 1 != 0


@jitable
def scales_along_k(kind: int, descriptor: int, scales: int) -> int:
    """Returns the number of scales of a row along k: the instruction's `scales` for K of 64, half
    as many more for K of 96 (PTX ISA, "Valid combinations of scale_vectorsize with types and
    MMA-Kind")."""
    return scales + scales // 2 if is_deep(kind, descriptor) else scales


@jitable
def scale_words(rows: int) -> int:
    """Returns the distance in columns of tensor memory from one group of four scales to the next,
    for `rows` rows of A or columns of B: 32 rows share a column, in groups of 128 rows, as copies
    write them (CUTLASS, `tmem_sf_frg`)."""
    return 4 * ((rows + 127) // 128)


@jitable
def depth_of(kind: int, descriptor: int, sparse: bool) -> int:
    """Returns K of a product, in elements of B, by its kind: 16 for f16, 8 for tf32, 32 for 8-bit
    kinds, 64 or 96 (`is_deep`) for packed 4-bit kinds; twice as many if `sparse`, of which A stores
    half."""
    if kind == F16:
        depth = 16
    elif kind == TF32:
        depth = 8
    elif kind >= MXF4:
        depth = 96 if is_deep(kind, descriptor) else 64
    else:
        depth = 32
    return 2 * depth if sparse else depth


@jitable
def type_of(kind: int, descriptor: int, at: int) -> int:
    """Returns the element type (HALF, ...) of A (`at` is TYPE_A, 7) or B (TYPE_B, 10), by its code
    of three bits in an instruction descriptor, or -1 if the kind has no such type. Codes are 0 and
    1 for f16 and i8, 2 for tf32, 1 for packed 4-bit kinds, and the types' own numbers up to E2M1,
    except 2, for 8-bit kinds."""
    code = (descriptor >> at) & 7
    if kind == F16:
        return HALF + code if code < 2 else -1
    if kind == TF32:
        return TENSOR_FLOAT if code == 2 else -1
    if kind == I8:
        return BYTE + code if code < 2 else -1
    if kind >= MXF4:
        return E2M1 if code == 1 else -1
    return code if code <= E2M1 and code != 2 else -1


assert (BFLOAT, SIGNED_BYTE) == (HALF + 1, BYTE + 1)
assert F8F6F4 < I8


@jitable
def unit_elements(kind: int) -> int:
    """Returns the number of elements in a 16-byte unit of shared memory: 8 for f16, 4 for tf32, 32
    for packed 4-bit kinds, else 16, as padding follows types of 6 and 4 bits of the 8-bit kinds
    (`shared_bits`)."""
    if kind == F16:
        return 8
    if kind == TF32:
        return 4
    return 32 if kind >= MXF4 else 16


@jitable
def shared_bits(kind: int, type: int) -> int:
    """Returns the distance in bits of elements in a 16-byte unit of shared memory: 16 for f16, 32
    for tf32, else the 8, 6 or 4 of the type. For 8-bit kinds, elements of 6 and 4 bits are packed
    from the unit's start, and its last bytes are unused (PTX ISA, "Packing formats used for
    matrices")."""
    if kind == F16:
        return 16
    if kind == TF32:
        return 32
    if type == E2M1:
        return 4
    # 3 and 4 are E2M3 and E3M2.
    return 6 if type in (3, 4) else 8


@jitable
def tensor_memory_bits(kind: int) -> int:
    """Returns the bits that an element of A occupies in tensor memory: 16 for f16, 32 for tf32, 4
    for packed 4-bit kinds, else 8, also for types of 6 and 4 bits."""
    if kind == F16:
        return 16
    if kind == TF32:
        return 32
    return 4 if kind >= MXF4 else 8
