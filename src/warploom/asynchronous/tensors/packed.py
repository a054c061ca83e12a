"""Groups of elements, in which tensors of packed elements of 4 and 6 bits are copied.

A group has so many bytes in global memory, and as many or more in shared memory, where a gap
follows them. The gap is not initialised by a load: it stays as it is. Stores of 6 bits take them
from a byte each. Source: PTX ISA, "Padding and alignment of the sub-byte types", "Restriction on
Tensor Copy instructions"; cuda.h, `cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

from warploom.asynchronous.tensors.entries import COORDINATES, REQUEST
from warploom.asynchronous.tensors.maps import (
    ADDRESS,
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
from warploom.simt.lane_counts import Row, jitable

B4X16, B4X16_P64, B6X16_P32 = FIRST_PACKED, FIRST_PACKED + 1, FIRST_PACKED + 2

GROUP = 16
"""Packed elements of a group."""

PADDED_BOX = 128
"""Elements of a row of a box where gaps follow the groups; sizes and coordinates are multiples."""

PADDED_UNIT = 32
"""What divides addresses and strides of such tensors."""

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
"""Rules that a copy of packed elements breaks."""


@jitable
def group_elements(type: int) -> int:
    """Returns the elements of a group of a type."""
    return GROUP if type >= FIRST_PACKED else 1


@jitable
def global_group_bytes(type: int) -> int:
    """Returns the bytes of a group in global memory."""
    if type < FIRST_PACKED:
        return type_bytes(type)
    return 12 if type == B6X16_P32 else 8


@jitable
def shared_group_bytes(type: int) -> int:
    """Returns the bytes of a group in shared memory, with its gap."""
    if type < FIRST_PACKED:
        return type_bytes(type)
    return 8 if type == B4X16 else 16


@jitable
def global_size(type: int, elements: int) -> int:
    """Returns the bytes of elements side by side in global memory."""
    return elements * global_group_bytes(type) // group_elements(type)


@jitable
def shared_size(type: int, elements: int) -> int:
    """Returns the bytes of elements side by side in shared memory."""
    return elements * shared_group_bytes(type) // group_elements(type)


@jitable
def is_padded(type: int) -> bool:
    """Returns whether a gap follows each group in shared memory."""
    return global_group_bytes(type) != shared_group_bytes(type)


@jitable
def fits_row(type: int, elements: int) -> bool:
    """Returns whether a row of a box may have so many packed elements."""
    if is_padded(type):
        return elements == PADDED_BOX
    return elements * global_group_bytes(type) % (16 * GROUP) == 0


@jitable
def size_unit(type: int) -> int:
    """Returns what divides the innermost size of a tensor of packed elements, and the first
    coordinate of a box."""
    return PADDED_BOX if is_padded(type) else 2


@jitable
def fits_swizzle(type: int, mode: int, atomicity: int, stores: bool) -> bool:
    """Returns whether copies of packed elements go with a swizzle."""
    if not is_padded(type) or mode == NO_SWIZZLE:
        return True
    if mode != SWIZZLE_128B:
        return False
    if atomicity == ATOM_64B:
        return type == B6X16_P32 and stores
    return atomicity in (ATOM_16B, ATOM_32B)


@jitable
def broken_rule(entry: Row, elements: int) -> int:
    """Returns the rule that a copy breaks whose rows have so many packed elements, or 0."""
    type, op = map_type(entry), field(int(entry[REQUEST]), OP)
    if op == REDUCE:
        return REDUCED
    if op == STORE and type == B4X16_P64:
        return STORED
    if map_fill(entry) == FILL_NANS:
        return NAN_FILL
    if not fits_row(type, elements):
        return ROW_SIZE
    if dim(entry, 0) % size_unit(type) != 0:
        return TENSOR_SIZE
    if int(entry[COORDINATES]) % size_unit(type) != 0:
        return FIRST_COORDINATE
    if not fits_swizzle(type, map_swizzle(entry), map_atomicity(entry), op == STORE):
        return SWIZZLE
    if is_padded(type):
        if map_interleave(entry) != NO_INTERLEAVE:
            return INTERLEAVE
        if not is_aligned(entry):
            return ALIGNMENT
    return 0


@jitable
def is_aligned(entry: Row) -> bool:
    """Returns whether the address and the strides of a tensor are those of padded elements."""
    every = int(entry[ADDRESS])
    for axis in range(1, map_rank(entry)):
        every |= stride(entry, axis)
    return every % PADDED_UNIT == 0
