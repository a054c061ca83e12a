"""Moves the boxes of tensor copies: locates each row in global memory, and loads, stores or reduces
its bytes.

A box is a list of rows along the innermost axis, which are consecutive in shared memory. Source:
PTX ISA, "Tiled Mode", "im2col mode", "Tensor Access Modes"; cuda.h, `cuTensorMapEncodeTiled`,
`cuTensorMapEncodeIm2col`. The im2col::w modes: `asynchronous.tensors.wide`.

    box of 4 x 3 floats at coordinates (x=-1, y=2)   ->   rows y = 2, 3, 4 of 16 bytes, of which
    bytes 4 to 15 are in the tensor; a load fills bytes 0 to 3 with zeros
"""

from __future__ import annotations

import numpy as np

from warploom.asynchronous.records import MapWords, RequestEntry
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.asynchronous.tensors.maps import (
    FILL_NANS,
    box,
    dim,
    element_stride,
    map_fill,
    map_rank,
    map_type,
    part,
    signed_part,
    stride,
    swizzled,
    type_bytes,
)
from warploom.asynchronous.tensors.numbers import reduce_number
from warploom.asynchronous.tensors.packed import (
    B6X16_P32,
    GROUP,
    global_group_bytes,
    global_size,
    shared_group_bytes,
    shared_size,
)
from warploom.asynchronous.tensors.requests import (
    GATHER,
    IM2COL_MODE,
    LOAD,
    MODE,
    OP,
    OPERATION,
    REDUCE,
    STORE,
    field,
)
from warploom.asynchronous.tensors.wide import count_pixels, find_wide_pixel, is_wide
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory

ATOM = 8
"""Bytes that no swizzle mode separates."""


@jitable
def count_rows(entry: RequestEntry) -> int:
    """Returns the number of rows of a box, by the mode of its request: pixels for im2col modes, 4
    for a gather or a scatter of rows (GATHER), else the product of the numbers of elements along
    the outer axes."""
    mode = field(entry.request, MODE)
    if mode == IM2COL_MODE:
        # Pixels from bit 16 on, channels below.
        return part(entry.map, MapWords.column, 16, 16)
    if is_wide(mode):
        return count_pixels(entry)
    if mode == GATHER:
        return 4
    count = 1
    for axis in range(1, map_rank(entry.map)):
        count *= box_elements(entry, axis)
    return count


@jitable
def box_elements(entry: RequestEntry, axis: int) -> int:
    """Returns the number of elements of a box along an axis: its size divided by the traversal
    stride, rounded up."""
    return -(-box(entry.map, axis) // element_stride(entry.map, axis))


@jitable
def row_elements(entry: RequestEntry) -> int:
    """Returns the number of elements of a row of a box: channels for im2col modes, else the
    innermost box size."""
    mode = field(entry.request, MODE)
    if mode == IM2COL_MODE or is_wide(mode):
        return part(entry.map, MapWords.column, 0, 16)
    return box(entry.map, 0)


@jitable
def row_bytes(entry: RequestEntry) -> int:
    """Returns the bytes that a row of a box occupies in shared memory, gaps of padded types
    included."""
    return shared_size(map_type(entry.map), row_elements(entry))


@jitable
def moved_bytes(entry: RequestEntry) -> int:
    """Returns the bytes of a box that are signalled to an mbarrier: as in global memory, without
    gaps between groups of packed elements, elements outside of the tensor included.

    The manual does not state whether gaps count. Kernels of CUTLASS expect 4 or 6 bits per element
    (gemm/collective/sm100_blockscaled_mma_warpspecialized.hpp, ABTmaTransactionBytes).
    """
    return count_rows(entry) * global_size(map_type(entry.map), row_elements(entry))


@jitable
def find_row(entry: RequestEntry, row: int) -> None:
    """Locates row number `row` of the box in global memory. Stores in the entry its
    `row_coordinates`; the host address of its first element (`row_address`), perhaps outside of the
    tensor; and the range of its bytes that lies in the tensor, `row_from` up to `row_to` relative
    to that address, empty if an outer coordinate is out of bounds."""
    rank, mode = map_rank(entry.map), field(entry.request, MODE)
    if mode == IM2COL_MODE:
        find_pixel(entry, row, rank)
    elif is_wide(mode):
        find_wide_pixel(entry, row, rank)
    elif mode == GATHER:
        entry.row_coordinates[0] = entry.coordinates[0]
        entry.row_coordinates[1] = entry.coordinates[1 + row]
    else:
        entry.row_coordinates[0] = entry.coordinates[0]
        # The number of a row is a mixed radix number of its positions along the outer axes, the
        # next to innermost first.
        left = row
        for axis in range(1, rank):
            count = box_elements(entry, axis)
            moved = left % count * element_stride(entry.map, axis)
            entry.row_coordinates[axis] = int(entry.coordinates[axis]) + moved
            left //= count
    type, inside, coordinate = map_type(entry.map), True, int(entry.row_coordinates[0])
    address = entry.map.address + global_size(type, coordinate)
    for axis in range(1, rank):
        position = int(entry.row_coordinates[axis])
        inside = inside and 0 <= position < dim(entry.map, axis)
        address += position * stride(entry.map, axis)
    entry.row_address = address
    entry.row_from = global_size(type, min(max(-coordinate, 0), row_elements(entry)))
    last = global_size(type, max(min(dim(entry.map, 0) - coordinate, row_elements(entry)), 0))
    entry.row_to = max(last, entry.row_from) if inside else entry.row_from


@jitable
def find_pixel(entry: RequestEntry, row: int, rank: int) -> None:
    """Sets `row_coordinates` of an entry for pixel number `row` of an im2col copy of a tensor with
    `rank` axes. Pixels begin at the coordinates and traverse the bounding box along W, then H, then
    D, then image by image; the offsets shift where they are read, not the traversal."""
    entry.row_coordinates[0] = entry.coordinates[0]
    left = row
    # Along each axis the first pass begins at the coordinate, later ones at the lower corner:
    # `first_pixels` and `later_pixels` are their numbers of pixels, and `left` the passes
    # completed, which carry to the next axis.
    for axis in range(1, rank - 1):
        lower = signed_part(entry.map, MapWords.lower, 16 * (axis - 1))
        upper = dim(entry.map, axis) - 1 + signed_part(entry.map, MapWords.upper, 16 * (axis - 1))
        start, step = int(entry.coordinates[axis]), element_stride(entry.map, axis)
        first_pixels = max((upper - start) // step + 1, 1)
        if left < first_pixels:
            at, left = start + left * step, 0
        else:
            later_pixels = max((upper - lower) // step + 1, 1)
            at = lower + (left - first_pixels) % later_pixels * step
            left = 1 + (left - first_pixels) // later_pixels
        entry.row_coordinates[axis] = at + int(entry.offsets[axis - 1])
    entry.row_coordinates[rank - 1] = int(entry.coordinates[rank - 1]) + left


@jitable
def move_box(memory: Memory, entry: RequestEntry) -> None:
    """Executes the load, store or reduction of the box in an entry, row by row, between global
    memory and the shared memory at its target."""
    size = row_bytes(entry)
    for row in range(count_rows(entry)):
        find_row(entry, row)
        move_row(memory, entry, entry.target - entry.shared + row * size, size)


@jitable
def move_row(memory: Memory, entry: RequestEntry, start: int, size: int) -> None:
    """Loads, stores or reduces the row that `find_row` has located, of `size` bytes at offset
    `start` in the block's shared memory, which is swizzled by the tensor map. A load fills bytes
    outside of the tensor with zeros or NaNs; stores and reductions skip them. Gaps of padded types
    stay unchanged. A store of B6X16_P32 packs its elements (`pack_row`)."""
    request, type = entry.request, map_type(entry.map)
    element, group, gap = (
        type_bytes(type),
        shared_group_bytes(type),
        shared_group_bytes(type) - global_group_bytes(type),
    )
    inside_from, inside_to = entry.row_from, entry.row_to
    global_offset, shared_offset = entry.row_address - ORIGIN, entry.shared - ORIGIN
    op = field(request, OP)
    nans = map_fill(entry.map) == FILL_NANS
    if type == B6X16_P32 and op == STORE:
        pack_row(memory, entry, start)
        return
    # Chunks of ATOM bytes, since the swizzle permutes larger ones. A chunk begins at `chunk` in the
    # row of shared memory, and at `begin` in that of global memory, which has no gaps; a chunk in a
    # gap is empty.
    for chunk in range(0, size, ATOM):
        begin, end = chunk, min(chunk + ATOM, size)
        if gap > 0:
            begin -= chunk // group * gap
            end = min(begin + ATOM, (chunk // group + 1) * (group - gap))
        # Offset that maps a byte of the global row to its swizzled byte of shared memory.
        base = shared_offset + swizzled(entry.map, start + chunk) - begin
        if op == LOAD:
            for position in range(begin, end):
                if inside_from <= position < inside_to:
                    memory[base + position] = memory[global_offset + position]
                # Bytes FF ... FF 7F of each element: a NaN in every float format.
                elif nans:
                    memory[base + position] = np.uint8(
                        0x7F if (position + 1) % element == 0 else 0xFF
                    )
                else:
                    memory[base + position] = np.uint8(0)
        elif op == REDUCE:
            for position in range(max(begin, inside_from), min(end, inside_to), element):
                operation = field(request, OPERATION)
                reduce_number(memory, global_offset + position, base + position, operation, type)
        else:
            for position in range(max(begin, inside_from), min(end, inside_to)):
                memory[global_offset + position] = memory[base + position]


@jitable
def pack_row(memory: Memory, entry: RequestEntry, start: int) -> None:
    """Stores a row of the type b6x16_p32 that `find_row` has located: packs 6-bit elements densely
    in global memory, each from the low bits of a byte of the block's shared memory, which the
    tensor map swizzles, from offset `start` on. Bytes outside of the tensor are skipped."""
    global_offset, shared_offset = entry.row_address - ORIGIN, entry.shared - ORIGIN
    size = global_group_bytes(B6X16_P32)
    for position in range(entry.row_from, entry.row_to):
        # Each byte of global memory has bits of two consecutive elements: `bit` is its first bit in
        # the group of 16, `number` the byte in shared memory of the element that it begins in.
        bit = position % size * 8
        number, shift = start + position // size * GROUP + bit // 6, bit % 6
        low = int(memory[shared_offset + swizzled(entry.map, number)]) & 63
        high = int(memory[shared_offset + swizzled(entry.map, number + 1)]) & 63
        memory[global_offset + position] = np.uint8((low >> shift | high << (6 - shift)) & 255)
