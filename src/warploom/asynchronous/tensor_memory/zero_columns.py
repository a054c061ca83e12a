"""Columns of B that count as zero in `tcgen05.mma.ws`, and with which one B begins: PTX ISA,
"Zero-Column Mask Descriptor".

A mask has a part for each 128 / M-th of the columns. A part repeats a span of columns of B and a
span of zeros; it begins with one of them, of which so many columns are left out first. Which field
has the length of which span is as in the manual's four examples, with which the names agree; the
table above them says it the other way round. The bits of a mask are for the N columns that take
part, so they move with the shift.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

START, START_BITS = 0, 8
FIRST = 32
IS_GENERATED = 39
SKIP, USE, SPAN_MASK = 40, 48, 255
"""Where the fields begin: for each part the columns left out, and whether it begins with zeros;
whether there is a mask; of zeros and of columns of B in a row, one less."""

SHIFT, SHIFT_MASK = 56, 63
MOST_SHIFT, MOST_SHIFT_OF_32_ROWS = 32, 16
ALL_ROWS = 128


@jitable
def column_shift(mask: int) -> int:
    """Returns the column of B that is the first to take part."""
    return (mask >> SHIFT) & SHIFT_MASK


@jitable
def most_shift(rows: int) -> int:
    """Returns how far a product of M `rows` can shift columns at most."""
    return MOST_SHIFT_OF_32_ROWS if rows == 32 else MOST_SHIFT


@jitable
def is_zero_column(mask: int, rows: int, columns: int, column: int) -> bool:
    """Returns whether a column counts as zero in a product of M `rows` and N `columns`."""
    if (mask >> IS_GENERATED) & 1 == 0:
        return False
    each = columns * rows // ALL_ROWS
    part, place = column // each, column % each
    zeros, used = ((mask >> SKIP) & SPAN_MASK) + 1, ((mask >> USE) & SPAN_MASK) + 1
    at = (place + ((mask >> (START + START_BITS * part)) & SPAN_MASK)) % (zeros + used)
    return at < zeros if (mask >> (FIRST + part)) & 1 else at >= used
