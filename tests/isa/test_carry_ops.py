"""Extended precision against Python's unbounded integers: the flag carries from word to word."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from opcode_values import apply_all, integers

from warploom.isa.spec import decode

FEW = settings(max_examples=60)
TYPES = ("u32", "s32", "u64", "s64")
by_type = pytest.mark.parametrize("type", TYPES)


def one_each(opcode: str, *operands: int) -> list[int]:
    """All results in one lane."""
    return [column[0] for column in apply_all(opcode, *([bits] for bits in operands))]


@pytest.mark.parametrize(("a", "b"), [(5, 3), (3, 5), (0, 0), (0, 1), (0xFFFFFFFF, 0)])
def test_additions_and_subtractions_share_one_flag(a: int, b: int) -> None:
    """ptxas gives `addc` after `sub.cc` the carry of `IADD3 d, P0, a, -b`, and `subc` after
    `add.cc` becomes `IADD3.X` over the complement with the carry of the addition."""
    no_borrow = one_each("sub.cc.u32", a, b)[1]
    assert one_each("addc.u32", 10, 20, no_borrow) == [31 if a >= b else 30]
    carry = one_each("add.cc.u32", a, b)[1]
    assert one_each("subc.u32", 30, 20, carry) == [10 if a + b >= 1 << 32 else 9]


@FEW
@given(integers(128), integers(128))
def test_four_words_make_one_long_sum(a: int, b: int) -> None:
    words, carry = 0, 0
    for place in range(0, 128, 32):
        x, y = (v >> place & 0xFFFFFFFF for v in (a, b))
        word, carry = one_each("addc.cc.u32", x, y, carry)
        words |= word << place
    assert words | carry << 128 == a + b


def test_the_flag_is_an_operand_that_no_text_shows() -> None:
    spec = decode("addc.cc.u32").spec
    assert [o.name for o in spec.operands if o.implicit] == ["%cc", "%cc"]
    assert [o.written for o in spec.operands if o.implicit] == [True, False]
