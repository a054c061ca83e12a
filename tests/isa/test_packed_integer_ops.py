"""Packed integers, dot products, masks and bit searches against Python integers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_values import integers, one, signed

FEW = settings(max_examples=80)
WORD = integers(32)
NONE = 0xFFFFFFFF


def split(word: int, bits: int, *, sign: bool) -> list[int]:
    parts = [word >> place & ((1 << bits) - 1) for place in range(0, 32, bits)]
    return [signed(p, bits) for p in parts] if sign else parts


def join(parts: list[int], bits: int) -> int:
    return sum((p & ((1 << bits) - 1)) << (bits * i) for i, p in enumerate(parts))


PACKED: list[tuple[str, Callable[[int, int], int]]] = [
    ("add.u16x2", lambda a, b: a + b),
    ("add.s16x2", lambda a, b: a + b),
    ("min.u16x2", min),
    ("max.u16x2", max),
    ("min.s16x2", min),
    ("max.s16x2", max),
    ("min.relu.s16x2", lambda a, b: max(0, min(a, b))),
    ("max.s16x2.relu", lambda a, b: max(0, a, b)),
]


@pytest.mark.parametrize(("opcode", "expected"), PACKED)
@FEW
@given(a=WORD, b=WORD)
def test_packed_halves(opcode: str, expected: Callable[[int, int], int], a: int, b: int) -> None:
    pairs = zip(*(split(v, 16, sign=".s" in opcode) for v in (a, b)), strict=True)
    assert one(opcode, a, b) == join([expected(x, y) for x, y in pairs], 16)


@pytest.mark.parametrize("atype", ["u32", "s32"])
@pytest.mark.parametrize("btype", ["u32", "s32"])
@FEW
@given(a=WORD, b=WORD, c=WORD)
def test_dot_products(atype: str, btype: str, a: int, b: int, c: int) -> None:
    signs = [t == "s32" for t in (atype, btype)]
    bytes_of_b = split(b, 8, sign=signs[1])
    four = sum(x * y for x, y in zip(split(a, 8, sign=signs[0]), bytes_of_b, strict=True))
    assert one(f"dp4a.{atype}.{btype}", a, b, c) == (four + c) % (1 << 32)
    for half, chosen in (("lo", bytes_of_b[:2]), ("hi", bytes_of_b[2:])):
        two = sum(x * y for x, y in zip(split(a, 16, sign=signs[0]), chosen, strict=True))
        assert one(f"dp2a.{half}.{atype}.{btype}", a, b, c) == (two + c) % (1 << 32)


@FEW
@given(a=integers(8), b=integers(8))
def test_bit_masks(a: int, b: int) -> None:
    def ones(first: int, count: int) -> int:
        return sum(1 << i for i in range(first, min(32, first + count)))

    assert one("bmsk.clamp.b32", a, b) == ones(a, b)
    assert one("bmsk.wrap.b32", a, b) == ones(a % 32, b % 32)


@FEW
@given(a=WORD, b=integers(8))
def test_extending_some_low_bits(a: int, b: int) -> None:
    for mode, bits in (("clamp", min(b, 32)), ("wrap", b % 32)):
        low = a & ((1 << bits) - 1)
        assert one(f"szext.{mode}.u32", a, b) == low
        value = signed(low, bits) if bits else 0
        assert one(f"szext.{mode}.s32", a, b) == value % (1 << 32)


def nth_set(mask: int, base: int, offset: int) -> int:
    """PTX ISA, fns: the search that its pseudo-code makes."""
    if offset == 0:
        return base if mask >> base & 1 else NONE
    step = 1 if offset > 0 else -1
    places = range(base, 32 if step > 0 else -1, step)
    found = [p for p in places if mask >> p & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else NONE


@settings(max_examples=300)
@given(mask=WORD, base=st.integers(0, 31), offset=st.integers(-33, 33))
def test_the_nth_set_bit(mask: int, base: int, offset: int) -> None:
    assert one("fns.b32", mask, base, offset % (1 << 32)) == nth_set(mask, base, offset)
