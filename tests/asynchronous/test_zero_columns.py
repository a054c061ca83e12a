"""Checks zero-column masks against the examples of PTX ISA, "Zero-Column Mask Descriptor"."""

from __future__ import annotations

import pytest

from warploom.asynchronous.tensor_memory.zero_columns import column_shift, is_zero_column


def mask(
    start: tuple[int, int, int, int],
    first: tuple[int, int, int, int],
    generated: int,
    skip: int,
    use: int,
    shift: int,
) -> int:
    """Returns a descriptor; starts and first spans are in the manual's order, last part first."""
    word = generated << 39 | skip << 40 | use << 48 | shift << 56
    for part in range(4):
        word |= start[3 - part] << 8 * part | first[3 - part] << 32 + part
    return word


EXAMPLES = [
    (128, mask((0, 0, 0, 0), (0, 0, 0, 0), 0, 4, 3, 0), ["00000000"]),
    (128, mask((0, 0, 0, 0), (0, 0, 0, 0), 1, 2, 3, 0), ["11100001110000"]),
    (
        64,
        mask((0, 0, 0, 0), (0, 0, 0, 1), 1, 2, 3, 0),
        ["11100001110000111", "00001110000111" + "0000"],
    ),
    (
        32,
        mask((1, 2, 1, 0), (0, 0, 1, 1), 1, 2, 3, 2),
        ["00001110000111", "0000111000011", "111000011100", "1110000111000"],
    ),
]
"""M, the descriptor, and the low bits of each part, bit 0 last."""


@pytest.mark.parametrize(("rows", "word", "parts"), EXAMPLES)
def test_the_manuals_examples(rows: int, word: int, parts: list[str]) -> None:
    columns = 128
    for part, bits in enumerate(parts):
        start = part * columns * rows // 128
        found = [is_zero_column(word, rows, columns, start + n) for n in range(len(bits))]
        assert "".join("01"[zero] for zero in reversed(found)) == bits


def test_the_shift_of_the_last_example() -> None:
    """With a shift of 2, columns 2 to 129 of B take part."""
    assert column_shift(EXAMPLES[-1][1]) == 2
