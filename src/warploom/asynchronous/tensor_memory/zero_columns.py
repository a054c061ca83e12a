"""Decodes zero-column masks of `tcgen05.mma.ws`: columns of B that count as zero, and the column
shift (PTX ISA, "Zero-Column Mask Descriptor").

A mask has a field for each of 128 / M equal parts of the columns. In a part, a span of columns of B
and a span of zeros alternate; the field gives which of them is first, and how many of its columns
are skipped. Which field has the length of which span follows the manual's four examples and its
names; the table above them states the reverse. The mask applies to the N columns after the shift.

    use 2, skip 1, starts with columns of B, 0 skipped   ->   B B 0 B B 0 ...
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable

START, START_BITS = 0, 8
FIRST = 32
IS_GENERATED = 39
SKIP, USE, SPAN_MASK = 40, 48, 255
"""Bit positions of the fields. START: for each part the skipped columns; FIRST: for each part
whether zeros are first; IS_GENERATED: the mask is used; SKIP, USE: lengths, less 1, of the spans of
zeros and of columns of B."""

SHIFT, SHIFT_MASK = 56, 63
"""Bit position and mask of the column shift, and its largest values."""
MOST_SHIFT, MOST_SHIFT_OF_32_ROWS = 32, 16
ALL_ROWS = 128


@jitable
def column_shift(mask: int) -> int:
    """Returns the column shift of a zero-column mask: the first column of B that is used in the
    product."""
    return (mask >> SHIFT) & SHIFT_MASK


@jitable
def most_shift(rows: int) -> int:
    """Returns the largest column shift of a product of M `rows`: 16 for 32 rows, else 32."""
    return MOST_SHIFT_OF_32_ROWS if rows == 32 else MOST_SHIFT


@jitable
def is_zero_column(mask: int, rows: int, columns: int, column: int) -> bool:
    """Returns whether column `column` of B counts as zero in a product of M `rows` and N `columns`,
    by zero-column mask `mask`; False if its bit IS_GENERATED is 0. In each of 128 / M parts of the
    columns, spans of SKIP + 1 zero columns and of USE + 1 others alternate; bit FIRST + part is 1
    if zeros begin, and the first START columns of the period are left out."""
    if (mask >> IS_GENERATED) & 1 == 0:
        return False
    part_columns = columns * rows // ALL_ROWS
    part, position = column // part_columns, column % part_columns
    zeros, used = ((mask >> SKIP) & SPAN_MASK) + 1, ((mask >> USE) & SPAN_MASK) + 1
    # Position in a period of both spans, of which the first `zeros`, or the last ones, are zero.
    at = (position + ((mask >> (START + START_BITS * part)) & SPAN_MASK)) % (zeros + used)
    return at < zeros if (mask >> (FIRST + part)) & 1 else at >= used
