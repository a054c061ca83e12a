"""Locates the pixels of tensor copies in the modes `im2col::w` and `im2col::w::128`.

Pixels follow each other along W up to the upper corner of the bounding box, then from the lower
corner in the next image; H and D are fixed. wOffset shifts the corners and the first pixel. After
the pixels of a column (in `im2col::w::128`, after every 32 of its 128) follow wHalo more, also in
shared memory: the next pixels along W, by the traversal stride. If such a pixel exceeds the upper
corner, the manual's text does not define it, and its figures are not available as text: that is a
fault here. Source: PTX ISA, "im2col::w and im2col::w::128 modes", "cp.async.bulk.tensor".

    W from 0 to 3, start 2, 4 pixels, no halo   ->   w = 2, 3 of image 0; w = 0, 1 of image 1
"""

from __future__ import annotations

from warploom.asynchronous.tensors.entries import COORDINATES, OFFSETS, REQUEST, ROW_COORDINATES
from warploom.asynchronous.tensors.maps import (
    COLUMN,
    LOWER,
    UPPER,
    dim,
    element_stride,
    map_rank,
    part,
    signed_part,
)
from warploom.asynchronous.tensors.requests import MODE, WIDE_128_MODE, WIDE_MODE, field
from warploom.simt.lane_counts import Ints, jitable

HALO, OFFSET = OFFSETS, OFFSETS + 1
"""Words of an entry that hold wHalo and wOffset."""

MOST_HALO, MOST_HALO_OF_128, MOST_OFFSET = 512, 32, 32
"""Exclusive upper bounds of wHalo in `im2col::w` and `im2col::w::128`, and of wOffset."""

GROUPS, GROUP = 4, 32
"""A column in `im2col::w::128`: four groups of 32 pixels."""


@jitable
def is_wide(mode: int) -> bool:
    """Returns whether the mode of a request is `im2col::w` or `im2col::w::128`."""
    return mode in (WIDE_MODE, WIDE_128_MODE)


@jitable
def column_pixels(entry: Ints) -> int:
    """Returns the number of pixels before each halo: the column's in `im2col::w`, 32 in
    `im2col::w::128`."""
    is_w = field(int(entry[REQUEST]), MODE) == WIDE_MODE
    return part(entry, COLUMN, 16, 16) if is_w else GROUP


@jitable
def count_pixels(entry: Ints) -> int:
    """Returns the number of pixels (rows in shared memory) of a copy, halos included: of one
    column, or of four groups."""
    groups = 1 if field(int(entry[REQUEST]), MODE) == WIDE_MODE else GROUPS
    return groups * (column_pixels(entry) + int(entry[HALO]))


@jitable
def upper_corner(entry: Ints) -> int:
    """Returns the last coordinate of the bounding box along W, shifted by wOffset."""
    return dim(entry, 1) - 1 + signed_part(entry, UPPER, 0) + int(entry[OFFSET])


@jitable
def find_wide_pixel(entry: Ints, row: int, rank: int) -> None:
    """Sets ROW_COORDINATES of an entry for the pixel that is row number `row` in shared memory, of
    the column or of a halo, in a tensor with `rank` axes. Only W and the image differ from the
    copy's coordinates."""
    column, halo = column_pixels(entry), int(entry[HALO])
    group, inside = row // (column + halo), row % (column + halo)
    # Halo pixels follow the last pixel of their column or group, `beyond` steps after it, and do
    # not advance the traversal. `first` is the number of pixels in the first image, `count` in
    # later ones.
    number, beyond = column * group + min(inside, column - 1), max(inside - column + 1, 0)
    upper = upper_corner(entry)
    lower = signed_part(entry, LOWER, 0) + int(entry[OFFSET])
    start, step = int(entry[COORDINATES + 1]) + int(entry[OFFSET]), element_stride(entry, 1)
    first, count = max((upper - start) // step + 1, 1), max((upper - lower) // step + 1, 1)
    image, at = 0, start + number * step
    if number >= first:
        image, at = 1 + (number - first) // count, lower + (number - first) % count * step
    for axis in range(rank):
        entry[ROW_COORDINATES + axis] = entry[COORDINATES + axis]
    entry[ROW_COORDINATES + 1] = at + beyond * step
    entry[ROW_COORDINATES + rank - 1] = int(entry[COORDINATES + rank - 1]) + image


@jitable
def has_wrong_operands(entry: Ints) -> bool:
    """Returns whether wHalo or wOffset is too large: wHalo 512 or more (32 for `im2col::w::128`),
    wOffset 32 or more."""
    is_w = field(int(entry[REQUEST]), MODE) == WIDE_MODE
    most = MOST_HALO if is_w else MOST_HALO_OF_128
    return int(entry[HALO]) >= most or int(entry[OFFSET]) >= MOST_OFFSET


@jitable
def has_open_halo(entry: Ints) -> bool:
    """Returns whether a halo pixel of a copy exceeds the bounding box; False without halo. Only the
    last pixel of each halo is checked, as it is the farthest."""
    rank, column, halo = map_rank(entry), column_pixels(entry), int(entry[HALO])
    if halo > 0:
        for row in range(column + halo - 1, count_pixels(entry), column + halo):
            find_wide_pixel(entry, row, rank)
            if entry[ROW_COORDINATES + 1] > upper_corner(entry):
                return True
    return False
