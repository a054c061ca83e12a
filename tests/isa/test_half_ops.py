"""Half-precision instructions against exact rational arithmetic, rounded by ml_dtypes' formats."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_values import apply, apply_all, f32, one

FEW = settings(max_examples=150)
NAN = 0x7FFF


class Half:
    """One of the two formats, as these tests see it."""

    def __init__(self, name: str, dtype: type, places: int, least: int) -> None:
        self.name, self.dtype, self.places, self.least = name, dtype, places, least
        info = ml_dtypes.finfo(dtype)
        self.infinity = int(np.array(math.inf, dtype).view(np.uint16))
        self.largest = Fraction(float(info.max))

    def value(self, bits: int) -> float:
        return float(np.array(bits, np.uint16).view(self.dtype))

    def rounded(self, exact: Fraction, negative_zero: bool = False) -> int:
        """The bits next to a rational number: to nearest, ties to even, from the definition."""
        if exact == 0:
            return 0x8000 if negative_zero else 0
        size = abs(exact)
        exponent = max(math.floor(math.log2(size)) if size > Fraction(1, 1 << 200) else -999, -999)
        while Fraction(2) ** (exponent + 1) <= size:
            exponent += 1
        while Fraction(2) ** exponent > size and exponent > self.least:
            exponent -= 1
        step = Fraction(2) ** (max(exponent, self.least) - self.places)
        count = round(size / step)  # Python rounds ties to even
        if count * step > self.largest:
            bits = self.infinity
        else:
            bits = int(np.array(float(count * step), self.dtype).view(np.uint16))
        return bits | (0x8000 if exact < 0 else 0)

    @cached_property
    def finite(self) -> st.SearchStrategy[int]:
        field = st.integers(0, self.infinity - 1)
        ends = st.sampled_from([0, 1, 2, self.infinity - 1, 1 << self.places, self.infinity // 2])
        return st.builds(int.__or__, st.one_of(field, ends), st.sampled_from([0, 0x8000]))


F16 = Half("f16", np.float16, 10, -14)
BF16 = Half("bf16", ml_dtypes.bfloat16, 7, -126)
by_format = pytest.mark.parametrize("half", [F16, BF16], ids=lambda h: h.name)

OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


@by_format
@pytest.mark.parametrize("name", OPERATIONS)
@FEW
@given(st.data())
def test_arithmetic_rounds_once(half: Half, name: str, data: st.DataObject) -> None:
    a, b = data.draw(half.finite), data.draw(half.finite)
    x, y = half.value(a), half.value(b)
    exact = OPERATIONS[name](Fraction(x), Fraction(y))
    zero = math.copysign(1, {"add": x + y, "sub": x - y, "mul": x * y}[name]) < 0
    expected = half.rounded(exact, zero)
    assert one(f"{name}.{half.name}", a, b) == expected
    pair = one(f"{name}.{half.name}x2", a << 16 | 0x3C00, b << 16 | 0)
    assert pair >> 16 == expected


@by_format
@settings(max_examples=400)
@given(st.data())
def test_fma_rounds_once(half: Half, data: st.DataObject) -> None:
    a, b, c = (data.draw(half.finite) for _ in range(3))
    x, y, z = (half.value(v) for v in (a, b, c))
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    product_negative = math.copysign(1, x) * math.copysign(1, y) < 0
    zero = product_negative and math.copysign(1, z) < 0 if exact == 0 else False
    if exact == 0 and x * y == 0 and z == 0:
        zero = math.copysign(1, x) * math.copysign(1, y) < 0 and math.copysign(1, z) < 0
    assert one(f"fma.rn.{half.name}", a, b, c) == half.rounded(exact, zero)


def test_fma_of_a_midpoint_and_a_speck() -> None:
    # 257/128 * 1 lies halfway between two bf16 numbers; what c adds decides.
    a, b = (int(np.array(v, ml_dtypes.bfloat16).view(np.uint16)) for v in (129 / 64, 129 / 128))
    middle = Fraction(129, 64) * Fraction(129, 128)
    for speck in (2.0**-120, -(2.0**-120)):
        c = int(np.array(speck, ml_dtypes.bfloat16).view(np.uint16))
        assert one("fma.rn.bf16", a, b, c) == BF16.rounded(middle + Fraction(speck))


@by_format
def test_special_values(half: Half) -> None:
    one_bits = int(np.array(1.0, half.dtype).view(np.uint16))
    infinity, name = half.infinity, half.name
    assert one(f"add.{name}", infinity, infinity | 0x8000) == NAN
    assert one(f"mul.{name}", 0, infinity) == NAN
    assert one(f"fma.rn.{name}", infinity, 0, one_bits) == NAN
    assert one(f"add.{name}", half.infinity - 1, half.infinity - 1) == infinity
    assert one(f"add.{name}", infinity | 1, one_bits) == NAN
    assert one(f"neg.{name}", one_bits) == one_bits | 0x8000
    assert one(f"abs.{name}", 0x8001) == 1
    assert one(f"min.{name}", infinity | 1, one_bits) == one_bits
    assert one(f"min.NaN.{name}", infinity | 1, one_bits) == NAN
    assert one(f"max.{name}", infinity | 1, infinity | 3) == NAN
    assert one(f"max.{name}", 0x8000, 0) == 0
    assert one(f"min.{name}", 0, 0x8000) == 0x8000
    minus = one_bits | 0x8000
    assert one(f"max.xorsign.abs.{name}", minus, one_bits - 1) == minus
    assert one(f"min.xorsign.abs.{name}", minus, minus) == one_bits
    assert one(f"fma.rn.relu.{name}", minus, one_bits, 0) == 0
    assert one(f"fma.rn.relu.{name}", infinity | 1, one_bits, 0) == NAN


def test_saturation_and_flushing_of_f16() -> None:
    two, half = 0x4000, 0x3800
    assert one("add.sat.f16", two, two) == 0x3C00
    assert one("sub.sat.f16", half, two) == 0
    assert one("mul.sat.f16", 0x7C01, two) == 0
    assert one("add.sat.f16", half, 0) == half
    assert one("add.ftz.f16", 0x83FF, 0) == 0  # -0 + 0
    assert one("mul.ftz.f16", 0x8400, 0x3800) == 0x8000  # the result is subnormal
    assert one("mul.f16", 0x8400, 0x3800) == 0x8200
    assert one("neg.ftz.f16", 0x0001) == 0x8000
    assert one("abs.ftz.f16", 0x8001) == 0


@by_format
@FEW
@given(st.data())
def test_comparisons(half: Half, data: st.DataObject) -> None:
    bits = st.one_of(half.finite, st.sampled_from([NAN, half.infinity, half.infinity | 0x8000]))
    a, b, c, d = (data.draw(bits) for _ in range(4))
    x, y, z, w = (half.value(v) for v in (a, b, c, d))
    for cmp, low, high in (
        ("lt", x < y, z < w),
        ("geu", not x < y, not z < w),
        ("nan", x != x or y != y, z != z or w != w),
    ):
        assert one(f"setp.{cmp}.{half.name}", a, b) == low
        word = apply_all(f"setp.{cmp}.{half.name}x2", [c << 16 | a], [d << 16 | b])
        assert word == [[low], [high]]
        one_bits = int(np.array(1.0, half.dtype).view(np.uint16))
        both = one(f"set.{cmp}.{half.name}x2.{half.name}x2", c << 16 | a, d << 16 | b)
        assert both == (one_bits * low) | (one_bits * high) << 16
        mask = one(f"set.{cmp}.u32.{half.name}x2", c << 16 | a, d << 16 | b)
        assert mask == (0xFFFF * low) | (0xFFFF * high) << 16
        assert one(f"set.{cmp}.s32.{half.name}", a, b) == (0xFFFFFFFF if low else 0)


def test_mixed_precision() -> None:
    third = f32(1 / 3)
    assert one("add.f32.f16", 0x3C00, f32(0.5)) == f32(1.5)
    assert one("sub.rz.f32.bf16", 0x3F80, f32(2.0**-40)) == f32(1.0) - 1
    assert one("fma.rn.f32.f16", 0x4000, 0x4200, third) == f32(6 + float(np.float32(1 / 3)))
    assert one("add.sat.f32.bf16", 0x4000, f32(0.0)) == f32(1.0)


@pytest.mark.parametrize(
    ("opcode", "half", "function", "bound"),
    [
        ("ex2.approx.f16", F16, lambda x: mpmath.power(2, x), lambda e: 2**-9.9 * e),
        ("ex2.approx.ftz.bf16", BF16, lambda x: mpmath.power(2, x), lambda e: 2**-7 * e),
        ("tanh.approx.f16", F16, mpmath.tanh, lambda e: 2**-10.987),
        ("tanh.approx.bf16", BF16, mpmath.tanh, lambda e: 2**-8),
    ],
)
def test_approximations_stay_within_the_manuals_bounds(
    opcode: str,
    half: Half,
    function: Callable[[mpmath.mpf], mpmath.mpf],
    bound: Callable[[mpmath.mpf], mpmath.mpf],
) -> None:
    inputs = list(range(0, 1 << 16, 37))
    numbers = [b for b in inputs if -14 <= half.value(b) <= 14]
    for bits, got in zip(numbers, apply(opcode, numbers), strict=True):
        exact = function(mpmath.mpf(half.value(bits)))
        assert abs(half.value(got) - exact) <= bound(exact), (half.value(bits), half.value(got))
