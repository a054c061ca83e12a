"""Integer and logic instructions by the manual's own figures, and where they are defined for every
operand. `test_manual` has all their forms."""

from __future__ import annotations

import pytest
from opcode_values import one


def test_lop3_tables_of_the_manual() -> None:
    """The manual builds a table from 0xF0, 0xCC and 0xAA in place of a, b and c."""
    a, b, c = 0x12345678, 0x0F0F3355, 0xFEDCBA98
    assert one("lop3.b32", a, b, c, 0xF0 & 0xCC & 0xAA) == a & b & c
    assert one("lop3.b32", a, b, c, 0xF0 | 0xCC | 0xAA) == a | b | c
    assert one("lop3.b32", a, b, c, 0xF0 & 0xCC & ~0xAA & 0xFF) == a & b & ~c
    assert one("lop3.b32", a, b, c, (0xF0 & 0xCC | 0xAA) ^ 0xF0) == (a & b | c) ^ a


BYTES = 0x33221100, 0x77665544
"""A pair of words whose byte number i is 0x11 * i."""


@pytest.mark.parametrize(
    ("opcode", "control", "expected"),
    [
        ("prmt.b32", 0x7531, 0x77553311),
        ("prmt.b32", 0x3210, 0x33221100),
        ("prmt.b32", 0x0123, 0x00112233),
        ("prmt.b32.f4e", 1, 0x44332211),
        ("prmt.b32.f4e", 3, 0x66554433),
        ("prmt.b32.b4e", 0, 0x55667700),
        ("prmt.b32.b4e", 2, 0x77001122),
        ("prmt.b32.rc8", 2, 0x22222222),
        ("prmt.b32.ecl", 1, 0x33221111),
        ("prmt.b32.ecl", 3, 0x33333333),
        ("prmt.b32.ecr", 2, 0x22221100),
        ("prmt.b32.ecr", 0, 0x00000000),
        ("prmt.b32.rc16", 0, 0x11001100),
        ("prmt.b32.rc16", 1, 0x33223322),
    ],
)
def test_prmt_by_the_manuals_tables(opcode: str, control: int, expected: int) -> None:
    assert one(opcode, *BYTES, control) == expected


def test_prmt_spreads_the_sign_where_the_selectors_top_bit_is_set() -> None:
    assert one("prmt.b32", 0x00007F80, 0, 0x9898) == 0x00FF00FF


def test_integer_division_is_total() -> None:
    assert one("div.s32", 1 << 31, (1 << 32) - 1) == 1 << 31
    assert one("rem.s32", 1 << 31, (1 << 32) - 1) == 0
    assert one("div.u64", 7, 0) == (1 << 64) - 1
    assert one("rem.s16", 7, 0) == 7
