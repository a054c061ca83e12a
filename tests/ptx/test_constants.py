"""Numbers in PTX text: PTX ISA, "Constants" and "Constant Expressions"."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.core.errors import PtxSyntaxError
from warploom.isa.instruction import Immediate
from warploom.ptx.constants import constant, integer
from warploom.ptx.cursor import Cursor
from warploom.ptx.lexer import tokenize


def read(text: str) -> Immediate:
    return constant(Cursor(tokenize(text + " ;", "test")))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("42", 42),
        ("0x1F", 31),
        ("0X1f", 31),
        ("0b101", 5),
        ("017", 15),
        ("0xFFFFFFFFFFFFFFFF", 2**64 - 1),
        ("9223372036854775808", 2**63),
        ("7U", 7),
        ("-1", -1),
        ("-1U", 2**64 - 1),
        ("-9223372036854775808", 2**63),  # the literal needs to be unsigned, minus keeps that
        ("-9223372036854775807-1", -(2**63)),
        ("~0", 2**64 - 1),
        ("!3", 0),
        ("!0", 1),
        ("+5", 5),
        ("WARP_SZ", 32),
        ("WARP_SZ*2", 64),
        ("(1<<4)|3", 19),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("10-4-3", 3),
        ("7/2", 3),
        ("-7/2", -3),
        ("7 % 4", 3),
        ("1<<3+1", 16),
        ("0xF0&0x3C", 0x30),
        ("5^1", 4),
        ("-8>>1", -4),
        ("0x8000000000000000>>63", 1),
        ("1<2", 1),
        ("-1<0U", 0),
        ("3==3", 1),
        ("3!=3", 0),
        ("2>=3", 0),
        ("1&&0||1", 1),
        ("1?2:3", 2),
        ("0?2:1?4:5", 4),
        ("(.u64)-1", 2**64 - 1),
        ("(.s64)0xFFFFFFFFFFFFFFFF", -1),
    ],
)
def test_integer_expressions(text: str, value: int) -> None:
    assert read(text) == Immediate(value)


@pytest.mark.parametrize(
    ("text", "bits", "width"),
    [
        ("0f3F800000", 0x3F800000, 32),
        ("0F00000001", 1, 32),
        ("0d3FF0000000000000", 0x3FF0000000000000, 64),
        ("1.0", 0x3FF0000000000000, 64),
        ("1.", 0x3FF0000000000000, 64),
        ("25e-1", 0x4004000000000000, 64),
        ("-2.0", 0xC000000000000000, 64),
        ("1.5+1", 0x4004000000000000, 64),
        ("1.0/2", 0x3FE0000000000000, 64),
    ],
)
def test_floats_keep_their_bits(text: str, bits: int, width: int) -> None:
    assert read(text) == Immediate(bits, width)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1/0", "division by zero"),
        ("1.5&1", "requires integers"),
        ("~1.5", "requires an integer"),
        ("(.s64)1.5", "requires an integer"),
        ("1+0f3F800000", "0f literal"),
        ("09", "a number"),
        ("0xG1", "a number"),
        ("0f3F80", "a number"),
        ("1+", "a number"),
        ("(1", r"`\)`"),
    ],
)
def test_what_is_no_number(text: str, reason: str) -> None:
    with pytest.raises(PtxSyntaxError, match="(?s)" + reason):
        read(text)


def test_an_integer_is_wanted() -> None:
    with pytest.raises(PtxSyntaxError, match=r"expected a size, found `1\.5`"):
        integer(Cursor(tokenize("1.5", "test")), "a size")


@given(st.integers(-(2**63) + 1, 2**64 - 1))
def test_every_integer_of_64_bits_is_read_back(value: int) -> None:
    assert read(str(value)) == Immediate(value)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0))
def test_decimal_floats_are_correctly_rounded(value: float) -> None:
    expected = struct.unpack("<Q", struct.pack("<d", value))[0]
    text = repr(value)
    assert read(text if "." in text or "e" in text else text + ".0") == Immediate(expected, 64)
