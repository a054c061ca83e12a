"""Columns of B that count as zero in `tcgen05.mma.ws`: PTX ISA, "Zero-Column Mask Descriptor".

A mask has a part for each 128 / M-th of the columns. A part repeats a span of columns of B and a
span of zeros; it begins with one of them, of which so many columns are left out first.
"""

from __future__ import annotations

from warploom.rules.distinct import jitable

START, START_BITS = 0, 8
FIRST = 32
IS_GENERATED = 39
SKIP, USE, SPAN_MASK = 40, 48, 255
"""Where the fields begin: for each part the columns left out, and whether it begins with zeros;
whether there is a mask; of columns of B and of zeros in a row, one less."""

SHIFT, SHIFT_MASK = 56, 63
ALL_ROWS = 128


@jitable
def shifts_columns(mask: int) -> bool:
    """Return whether a mask names columns of D further on, which is not supported."""
    return (mask >> SHIFT) & SHIFT_MASK != 0


@jitable
def is_zero_column(mask: int, rows: int, columns: int, column: int) -> bool:
    """Return whether a column counts as zero in a product of M `rows` and N `columns`."""
    if (mask >> IS_GENERATED) & 1 == 0:
        return False
    each = columns * rows // ALL_ROWS
    part, place = column // each, column % each
    skip, use = ((mask >> SKIP) & SPAN_MASK) + 1, ((mask >> USE) & SPAN_MASK) + 1
    at = (place + ((mask >> (START + START_BITS * part)) & SPAN_MASK)) % (skip + use)
    return at < use if (mask >> (FIRST + part)) & 1 else at >= skip
