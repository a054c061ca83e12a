"""Columns of pixels along W alone: the modes `im2col::w` and `im2col::w::128` of copies of tensors.

The walk goes along W to the upper corner of the bounding box, then on from the lower one in the
next image; H and D stay. wOffset moves the corners and the first pixel. Behind the pixels of a
column, in `im2col::w::128` behind every 32 of its 128, come wHalo pixels more, which stand behind
them in shared memory, too. They are the next ones along W, by the traversal stride. Where such a
pixel would lie beyond the upper corner, the manual's text does not say which it is, and its figures
are not public as text: that is a fault. Source: PTX ISA, "im2col::w and im2col::w::128 modes",
"cp.async.bulk.tensor".
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
from warploom.simt.lane_counts import Row, jitable

HALO, OFFSET = OFFSETS, OFFSETS + 1
"""Words of an entry: wHalo and wOffset."""

MOST_HALO, MOST_HALO_OF_128, MOST_OFFSET = 512, 32, 32
"""What wHalo in either mode, and wOffset, are smaller than."""

GROUPS, GROUP = 4, 32
"""In `im2col::w::128` a column is four times 32 pixels."""


@jitable
def is_wide(mode: int) -> bool:
    """Returns whether a mode of a request is one of these."""
    return mode in (WIDE_MODE, WIDE_128_MODE)


@jitable
def column_pixels(entry: Row) -> int:
    """Returns the pixels between which no halo comes."""
    wide = field(int(entry[REQUEST]), MODE) == WIDE_MODE
    return part(entry, COLUMN, 16, 16) if wide else GROUP


@jitable
def count_pixels(entry: Row) -> int:
    """Returns the pixels of a copy, those of halos among them."""
    groups = 1 if field(int(entry[REQUEST]), MODE) == WIDE_MODE else GROUPS
    return groups * (column_pixels(entry) + int(entry[HALO]))


@jitable
def upper_corner(entry: Row) -> int:
    """Returns the last place of the bounding box along W."""
    return dim(entry, 1) - 1 + signed_part(entry, UPPER, 0) + int(entry[OFFSET])


@jitable
def find_wide_pixel(entry: Row, row: int, rank: int) -> None:
    """Set PLACE for a pixel, by its number in shared memory."""
    each, halo = column_pixels(entry), int(entry[HALO])
    group, inside = row // (each + halo), row % (each + halo)
    number, beyond = each * group + min(inside, each - 1), max(inside - each + 1, 0)
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
def has_wrong_operands(entry: Row) -> bool:
    """Returns whether wHalo or wOffset is none of the values that the manual allows."""
    wide = field(int(entry[REQUEST]), MODE) == WIDE_MODE
    most = MOST_HALO if wide else MOST_HALO_OF_128
    return int(entry[HALO]) >= most or int(entry[OFFSET]) >= MOST_OFFSET


@jitable
def has_open_halo(entry: Row) -> bool:
    """Returns whether a pixel of a halo lies beyond the bounding box."""
    rank, each, halo = map_rank(entry), column_pixels(entry), int(entry[HALO])
    if halo > 0:
        for row in range(each + halo - 1, count_pixels(entry), each + halo):
            find_wide_pixel(entry, row, rank)
            if entry[ROW_COORDINATES + 1] > upper_corner(entry):
                return True
    return False
