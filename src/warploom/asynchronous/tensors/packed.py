"""Defines the layout of packed tensor elements of 4 and 6 bits (b4x16, b4x16_p64, b6x16_p32) in
global and shared memory: from an element type, the bytes of a group in each. Checks a copy of such
elements: from its request and tensor map, the rule that it breaks, 0 for none.

They are copied in groups of 16 elements, which have a fixed size in global memory, and the same or
a larger one in shared memory, where a gap follows. A load leaves the gap unchanged. A store of
6-bit elements reads each from a byte. Source: PTX ISA, "Padding and alignment of the sub-byte
types", "Restriction on Tensor Copy instructions"; cuda.h, `cuTensorMapEncodeTiled`.

    b4x16_p64: 8 bytes in global memory   ->   8 bytes and a gap of 8 bytes in shared memory
"""

from __future__ import annotations

from warploom.asynchronous.records import RequestEntry
from warploom.asynchronous.tensors.maps import (
    ATOM_16B,
    ATOM_32B,
    ATOM_64B,
    FILL_NANS,
    FIRST_PACKED,
    NO_INTERLEAVE,
    NO_SWIZZLE,
    SWIZZLE_128B,
    dim,
    map_atomicity,
    map_fill,
    map_interleave,
    map_rank,
    map_swizzle,
    map_type,
    stride,
    type_bytes,
)
from warploom.asynchronous.tensors.requests import OP, REDUCE, STORE, field
from warploom.simt.lane_counts import jitable

B4X16, B4X16_P64, B6X16_P32 = FIRST_PACKED, FIRST_PACKED + 1, FIRST_PACKED + 2

GROUP = 16
"""Elements of a group."""

PADDED_BOX = 128
"""Elements of a box row of a padded type; sizes and coordinates must be multiples."""

PADDED_UNIT = 32
"""Required alignment in bytes of addresses and strides of padded tensors."""

(
    REDUCED,
    STORED,
    NAN_FILL,
    ROW_SIZE,
    TENSOR_SIZE,
    FIRST_COORDINATE,
    ALIGNMENT,
    SWIZZLE,
    INTERLEAVE,
) = range(1, 10)
"""Results of `broken_rule`: the rule that a copy of packed elements breaks."""


@jitable
def group_elements(type: int) -> int:
    """Returns the number of elements of a group: 16 for packed types, 1 for all others."""
    return GROUP if type >= FIRST_PACKED else 1


@jitable
def global_group_bytes(type: int) -> int:
    """Returns the bytes of a group of 16 packed elements (8, or 12 for 6 bits), or of one element
    of another type, in global memory."""
    if type < FIRST_PACKED:
        return type_bytes(type)
    return 12 if type == B6X16_P32 else 8


@jitable
def shared_group_bytes(type: int) -> int:
    """Returns the bytes of a group of 16 packed elements, with its gap (8 for b4x16, else 16), or
    of one element of another type, in shared memory."""
    if type < FIRST_PACKED:
        return type_bytes(type)
    return 8 if type == B4X16 else 16


@jitable
def global_size(type: int, elements: int) -> int:
    """Returns the bytes of `elements` consecutive elements of a type in global memory, rounded
    down; negative for a negative number, the distance to a coordinate before the tensor."""
    return elements * global_group_bytes(type) // group_elements(type)


@jitable
def shared_size(type: int, elements: int) -> int:
    """Returns the bytes of `elements` consecutive elements of a type in shared memory, gaps
    included."""
    return elements * shared_group_bytes(type) // group_elements(type)


@jitable
def is_padded(type: int) -> bool:
    """Returns whether a gap follows each group of a type in shared memory (b4x16_p64 and
    b6x16_p32)."""
    return global_group_bytes(type) != shared_group_bytes(type)


@jitable
def fits_row(type: int, elements: int) -> bool:
    """Returns whether a row of a box may have `elements` elements of a packed type: exactly
    PADDED_BOX for padded types, else as many as fill a multiple of 16 bytes."""
    if is_padded(type):
        return elements == PADDED_BOX
    # Elements are multiplied, not divided by GROUP, so that a part of a group does not round away.
    return elements * global_group_bytes(type) % (16 * GROUP) == 0


@jitable
def size_unit(type: int) -> int:
    """Returns the number of elements that the innermost size of a packed tensor, and the first
    coordinate of a box, must be multiples of: PADDED_BOX for padded types, else 2."""
    return PADDED_BOX if is_padded(type) else 2


@jitable
def fits_swizzle(type: int, mode: int, atomicity: int, stores: bool) -> bool:
    """Returns whether swizzle mode `mode` is allowed for copies of a packed type: any for types
    without gaps. With gaps, no swizzle, or a span of 128 bytes with an atomicity of 16 or 32 bytes;
    with one of 64 bytes only when b6x16_p32 is stored (`stores`)."""
    if not is_padded(type) or mode == NO_SWIZZLE:
        return True
    if mode != SWIZZLE_128B:
        return False
    if atomicity == ATOM_64B:
        return type == B6X16_P32 and stores
    return atomicity in (ATOM_16B, ATOM_32B)


@jitable
def broken_rule(entry: RequestEntry, elements: int) -> int:
    """Returns the first rule of packed elements that the copy in an entry, with rows of `elements`
    elements, breaks, or 0; the fault's message names it. In this order: no reduction (REDUCED), no
    store of b4x16_p64, no NaN fill, `fits_row`, size and first coordinate by `size_unit`,
    `fits_swizzle`; for padded types also no interleave, and `is_aligned`."""
    type, op = map_type(entry.map), field(entry.request, OP)
    if op == REDUCE:
        return REDUCED
    if op == STORE and type == B4X16_P64:
        return STORED
    if map_fill(entry.map) == FILL_NANS:
        return NAN_FILL
    if not fits_row(type, elements):
        return ROW_SIZE
    if dim(entry.map, 0) % size_unit(type) != 0:
        return TENSOR_SIZE
    if int(entry.coordinates[0]) % size_unit(type) != 0:
        return FIRST_COORDINATE
    if not fits_swizzle(type, map_swizzle(entry.map), map_atomicity(entry.map), op == STORE):
        return SWIZZLE
    if is_padded(type):
        if map_interleave(entry.map) != NO_INTERLEAVE:
            return INTERLEAVE
        if not is_aligned(entry):
            return ALIGNMENT
    return 0


@jitable
def is_aligned(entry: RequestEntry) -> bool:
    """Returns whether the address and strides of a padded tensor are multiples of PADDED_UNIT."""
    # All numbers are multiples of a power of two exactly if the or of their bits is.
    address_bits = entry.map.address
    for axis in range(1, map_rank(entry.map)):
        address_bits |= stride(entry.map, axis)
    return address_bits % PADDED_UNIT == 0
