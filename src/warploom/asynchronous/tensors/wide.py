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

from warploom.asynchronous.records import MapWords, RequestEntry
from warploom.asynchronous.tensors.maps import dim, element_stride, map_rank, part, signed_part
from warploom.asynchronous.tensors.requests import MODE, WIDE_128_MODE, WIDE_MODE, field
from warploom.simt.lane_counts import jitable

MOST_HALO, MOST_HALO_OF_128, MOST_OFFSET = 512, 32, 32
"""Exclusive upper bounds of wHalo in `im2col::w` and `im2col::w::128`, and of wOffset."""

GROUPS, GROUP = 4, 32
"""A column in `im2col::w::128`: four groups of 32 pixels."""


@jitable
def is_wide(mode: int) -> bool:
    """Returns whether the mode of a request is `im2col::w` or `im2col::w::128`."""
    return mode in (WIDE_MODE, WIDE_128_MODE)


@jitable
def column_pixels(entry: RequestEntry) -> int:
    """Returns the number of pixels before each halo: the column's in `im2col::w`, 32 in
    `im2col::w::128`."""
    is_w = field(entry.request, MODE) == WIDE_MODE
    return part(entry.map, MapWords.column, 16, 16) if is_w else GROUP


@jitable
def count_pixels(entry: RequestEntry) -> int:
    """Returns the number of pixels (rows in shared memory) of a copy, halos included: of one
    column, or of four groups."""
    groups = 1 if field(entry.request, MODE) == WIDE_MODE else GROUPS
    return groups * (column_pixels(entry) + entry.wide.halo)


@jitable
def upper_corner(entry: RequestEntry) -> int:
    """Returns the last coordinate of the bounding box along W, shifted by wOffset."""
    return dim(entry.map, 1) - 1 + signed_part(entry.map, MapWords.upper, 0) + entry.wide.shift


@jitable
def find_wide_pixel(entry: RequestEntry, row: int, rank: int) -> None:
    """Sets `row_coordinates` of an entry for the pixel that is row number `row` in shared memory,
    of the column or of a halo, in a tensor with `rank` axes. Halo pixels go on along W after the
    last pixel of their column or group. Only W and the image differ from the copy's coordinates."""
    column, halo = column_pixels(entry), entry.wide.halo
    group, inside = row // (column + halo), row % (column + halo)
    # Halo pixels follow the last pixel of their column or group, `beyond` steps after it, and do
    # not advance the traversal. `first_pixels` is the number of pixels in the first image,
    # `later_pixels` in later ones.
    number, beyond = column * group + min(inside, column - 1), max(inside - column + 1, 0)
    upper = upper_corner(entry)
    lower = signed_part(entry.map, MapWords.lower, 0) + entry.wide.shift
    start, step = int(entry.coordinates[1]) + entry.wide.shift, element_stride(entry.map, 1)
    first_pixels, later_pixels = (
        max((upper - start) // step + 1, 1),
        max((upper - lower) // step + 1, 1),
    )
    image, at = 0, start + number * step
    if number >= first_pixels:
        image, at = (
            1 + (number - first_pixels) // later_pixels,
            lower + (number - first_pixels) % later_pixels * step,
        )
    for axis in range(rank):
        entry.row_coordinates[axis] = entry.coordinates[axis]
    entry.row_coordinates[1] = at + beyond * step
    entry.row_coordinates[rank - 1] = int(entry.coordinates[rank - 1]) + image


@jitable
def has_wrong_operands(entry: RequestEntry) -> bool:
    """Returns whether wHalo or wOffset is too large: wHalo 512 or more (32 for `im2col::w::128`),
    wOffset 32 or more."""
    is_w = field(entry.request, MODE) == WIDE_MODE
    most = MOST_HALO if is_w else MOST_HALO_OF_128
    return entry.wide.halo >= most or entry.wide.shift >= MOST_OFFSET


@jitable
def has_open_halo(entry: RequestEntry) -> bool:
    """Returns whether a halo pixel of a copy exceeds the bounding box; False without halo. Only the
    last pixel of each halo is checked, as it is the farthest. Overwrites `row_coordinates`."""
    rank, column, halo = map_rank(entry.map), column_pixels(entry), entry.wide.halo
    if halo > 0:
        for row in range(column + halo - 1, count_pixels(entry), column + halo):
            find_wide_pixel(entry, row, rank)
            if entry.row_coordinates[1] > upper_corner(entry):
                return True
    return False
