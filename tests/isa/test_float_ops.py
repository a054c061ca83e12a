"""Floating-point instructions against exact rational arithmetic, and their special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_values import (
    INF32,
    INF64,
    MINUS32,
    MINUS64,
    NAN32,
    NAN64,
    apply,
    f32,
    f64,
    from_f32,
    from_f64,
    one,
)

FEW = settings(max_examples=30)
MODES = ("rn", "rz", "rm", "rp")


class Width:
    """One floating-point type, as these tests see it."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.name = f"f{bits}"
        self.float = {32: np.float32, 64: np.float64}[bits]
        self.infinity = {32: INF32, 64: INF64}[bits]
        self.nan = {32: NAN32, 64: NAN64}[bits]
        self.minus = {32: MINUS32, 64: MINUS64}[bits]
        self.largest = Fraction(float(np.finfo(self.float).max))

    def value(self, bits: int) -> float:
        return from_f32(bits) if self.bits == 32 else from_f64(bits)

    @cached_property
    def finite(self) -> st.SearchStrategy[int]:
        """Bits of finite numbers of every size, many with few or many low bits."""
        field = st.integers(0, self.infinity - 1)
        one = f32(1.0) if self.bits == 32 else f64(1.0)
        near_one = st.integers(one - 4, one + 4)
        ends = st.sampled_from([0, 1, 2, self.infinity - 1, 1 << (self.bits - 10)])
        sign = st.sampled_from([0, self.minus])
        return st.builds(int.__or__, st.one_of(field, near_one, ends), sign)


WIDTHS = [Width(32), Width(64)]
by_width = pytest.mark.parametrize("width", WIDTHS, ids=lambda w: w.name)
by_mode = pytest.mark.parametrize("mode", MODES)


def assert_rounded(width: Width, mode: str, got: int, sign: Callable[[Fraction], int]) -> None:
    """`got` is the number that is rounded in that mode; `sign(x)` compares it with any rational x.

    Uses nothing but the definition: `got` and its neighbors around the exact number.
    """
    value = width.float(width.value(got))
    with np.errstate(over="ignore"):
        above = np.nextafter(value, width.float(np.inf))
        below = np.nextafter(value, width.float(-np.inf))

    def side(bound: np.floating) -> int:
        if math.isinf(bound):
            return -1 if bound > 0 else 1
        return sign(Fraction(float(bound)))

    positive = sign(Fraction(0)) > 0
    if mode == "rm" or (mode == "rz" and positive):
        assert side(value) >= 0 > side(above)
    elif mode in ("rp", "rz"):
        assert side(below) > 0 >= side(value)
    else:
        _assert_nearest(width, got, sign)


def _assert_nearest(width: Width, got: int, sign: Callable[[Fraction], int]) -> None:
    """Nothing lies nearer than `got`; halfway, its last bit is 0."""
    size = got & (width.minus - 1)
    turned = -1 if got & width.minus else 1

    def middle(lower: int) -> Fraction:
        """Halfway from one size to the next; beyond the largest number, as if there were more."""
        start = Fraction(width.value(lower))
        gap = start - Fraction(width.value(lower - 1)) if lower == width.infinity - 1 else None
        return start + (gap or Fraction(width.value(lower + 1)) - start) / 2

    even = size % 2 == 0
    if size != width.infinity:
        over = sign(turned * middle(size)) * turned
        assert over < 0 or (over == 0 and even)
    if size:
        under = sign(turned * middle(size - 1)) * turned
        assert under > 0 or (under == 0 and even)


def rational(exact: Fraction) -> Callable[[Fraction], int]:
    return lambda x: (exact > x) - (exact < x)


OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


@by_width
@by_mode
@pytest.mark.parametrize("name", OPERATIONS)
@FEW
@given(data=st.data())
def test_two_operands_round_correctly(
    width: Width, mode: str, name: str, data: st.DataObject
) -> None:
    a, b = data.draw(width.finite), data.draw(width.finite)
    x, y = Fraction(width.value(a)), Fraction(width.value(b))
    if name == "div" and y == 0:
        return
    got = one(f"{name}.{mode}.{width.name}", a, b)
    assert_rounded(width, mode, got, rational(OPERATIONS[name](x, y)))


@by_width
@by_mode
@FEW
@given(data=st.data())
def test_fma_rounds_once(width: Width, mode: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(width.finite) for _ in range(3))
    x, y, z = (Fraction(width.value(bits)) for bits in (a, b, c))
    got = one(f"fma.{mode}.{width.name}", a, b, c)
    assert_rounded(width, mode, got, rational(x * y + z))


@by_width
@by_mode
@FEW
@given(data=st.data())
def test_sqrt_rounds_correctly(width: Width, mode: str, data: st.DataObject) -> None:
    a = data.draw(width.finite) & ~width.minus
    square = Fraction(width.value(a))

    def sign(x: Fraction) -> int:
        return 1 if x < 0 else (square > x * x) - (square < x * x)

    assert_rounded(width, mode, one(f"sqrt.{mode}.{width.name}", a), sign)


@by_width
def test_roots_that_lie_next_to_a_number(width: Width) -> None:
    """Where m * m is -7 modulo a high power of two, m * m + 7 fits a significand; its root lies
    above m by far less than a last place."""
    places = {32: 24, 64: 53}[width.bits]
    m = 1
    for place in range(3, places + 1):  # an odd root modulo 2^place, made one for 2^(place + 1)
        if (m * m + 7) % (1 << (place + 1)):
            m += 1 << (place - 1)
    assert m.bit_length() == places
    square = float(m * m + 7)
    assert int(square) == m * m + 7
    encode = f32 if width.bits == 32 else f64
    for mode, wanted in {"rn": m, "rz": m, "rm": m, "rp": m + 1}.items():
        assert one(f"sqrt.{mode}.{width.name}", encode(square)) == encode(float(wanted))


@by_width
@by_mode
@FEW
@given(data=st.data())
def test_rcp_rounds_correctly(width: Width, mode: str, data: st.DataObject) -> None:
    a = data.draw(width.finite)
    if a & ~width.minus:
        got = one(f"rcp.{mode}.{width.name}", a)
        assert_rounded(width, mode, got, rational(1 / Fraction(width.value(a))))


@by_mode
@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
@by_width
@FEW
@given(data=st.data())
def test_integers_convert_correctly_rounded(
    width: Width, mode: str, type: str, data: st.DataObject
) -> None:
    bits = int(type[1:])
    value = data.draw(st.integers(0, (1 << bits) - 1))
    number = value - (1 << bits) if type[0] == "s" and value >> (bits - 1) else value
    got = one(f"cvt.{mode}.{width.name}.{type}", value)
    assert_rounded(width, mode, got, rational(Fraction(number)))


@by_mode
@FEW
@given(bits=WIDTHS[1].finite)
def test_doubles_convert_to_singles_correctly_rounded(mode: str, bits: int) -> None:
    got = one(f"cvt.{mode}.f32.f64", bits)
    assert_rounded(WIDTHS[0], mode, got, rational(Fraction(from_f64(bits))))


@by_width
def test_sums_that_are_zero_have_the_sign_of_ieee_754(width: Width) -> None:
    """IEEE 754-2019, 6.3: +0 but for roundTowardNegative, unless both are zeros of one sign."""
    three = f32(3.0) if width.bits == 32 else f64(3.0)
    for mode in MODES:
        zero = width.minus if mode == "rm" else 0
        assert one(f"add.{mode}.{width.name}", three, three | width.minus) == zero
        assert one(f"sub.{mode}.{width.name}", three, three) == zero
        assert one(f"add.{mode}.{width.name}", 0, width.minus) == zero
        assert one(f"add.{mode}.{width.name}", width.minus, width.minus) == width.minus
        assert one(f"fma.{mode}.{width.name}", 0, three | width.minus, width.minus) == width.minus
        assert one(f"fma.{mode}.{width.name}", 0, three, width.minus) == zero


@by_width
@by_mode
def test_invalid_operations_give_the_canonical_nan(width: Width, mode: str) -> None:
    inf, minus, name = width.infinity, width.minus, width.name
    some_nan = width.infinity | 5
    for opcode, operands in [
        ("add", (inf, inf | minus)),
        ("sub", (inf, inf)),
        ("mul", (inf, 0)),
        ("div", (0, 0)),
        ("div", (inf, inf)),
        ("sqrt", (minus | 1,)),
        ("fma", (inf, 0, 0)),
        ("fma", (0, inf, some_nan)),
        ("fma", (inf, 1, inf | minus)),
        ("add", (some_nan, 0)),
        ("mul", (0, some_nan)),
        ("div", (some_nan, inf)),
        ("div", (inf, some_nan)),
        ("sqrt", (some_nan,)),
    ]:
        assert one(f"{opcode}.{mode}.{name}", *operands) == width.nan, (opcode, operands)


@by_width
@by_mode
def test_infinities(width: Width, mode: str) -> None:
    inf, minus, name = width.infinity, width.minus, width.name
    big = width.infinity - 1
    assert one(f"div.{mode}.{name}", 1, minus) == inf | minus
    assert one(f"div.{mode}.{name}", 1, inf | minus) == minus
    assert one(f"div.{mode}.{name}", inf | minus, big) == inf | minus
    assert one(f"sqrt.{mode}.{name}", minus) == minus
    assert one(f"sqrt.{mode}.{name}", inf) == inf
    assert one(f"fma.{mode}.{name}", big, big, inf | minus) == inf | minus
    towards_zero = mode in ("rz", "rm")
    assert one(f"mul.{mode}.{name}", big, big) == (big if towards_zero else inf)
    assert one(f"mul.{mode}.{name}", big, big | minus) == minus | (
        big if mode in ("rz", "rp") else inf
    )


def test_fma_does_not_round_to_a_wider_format_first() -> None:
    """(1 + 2^-12)^2 is halfway between two floats, and what is added too small for binary64."""
    factor, below = f32(1 + 2.0**-12), f32(1 + 2.0**-11)
    assert one("fma.rn.f32", factor, factor, f32(2.0**-80)) == below + 1
    assert one("fma.rn.f32", factor, factor, f32(-(2.0**-80))) == below
    assert one("fma.rn.f32", factor, factor, f32(0)) == below  # to even
    assert one("fma.rn.f32", factor, factor | 0x80000000, f32(-(2.0**-80))) == (below + 1) | (
        1 << 31
    )


def test_ftz_flushes_operands_and_results_to_the_zero_of_their_sign() -> None:
    tiny, least = f32(-(2.0**-149)), f32(2.0**-126)
    assert one("add.ftz.f32", tiny, 0x80000000) == 0x80000000
    assert one("mul.f32", least, f32(-0.5)) == 0x80400000
    assert one("mul.ftz.f32", least, f32(-0.5)) == 0x80000000
    assert one("fma.rn.ftz.f32", tiny, f32(2.0**100), f32(1.0)) == f32(1.0)
    assert one("abs.ftz.f32", tiny) == 0
    assert one("neg.ftz.f32", tiny) == 0
    assert one("rcp.approx.ftz.f32", tiny) == 0xFF800000
    assert one("sqrt.rn.ftz.f32", tiny) == 0x80000000
    assert one("rsqrt.approx.ftz.f32", tiny) == 0xFF800000


def test_sat_clamps_to_zero_and_one() -> None:
    cases = {2.0: 1.0, 0.25: 0.25, -3.0: 0.0, math.inf: 1.0, -math.inf: 0.0}
    for given_value, wanted in cases.items():
        assert one("add.sat.f32", f32(given_value), f32(-0.0)) == f32(wanted)
    assert one("add.sat.f32", NAN32, f32(1)) == 0
    assert one("cvt.sat.f64.f64", f64(-0.0)) == 0
    assert one("fma.rn.sat.f32", f32(-0.0), f32(1), f32(-0.0)) == 0


def test_min_and_max() -> None:
    assert one("min.f32", f32(0.0), f32(-0.0)) == f32(-0.0)
    assert one("min.f32", f32(-0.0), f32(0.0)) == f32(-0.0)
    assert one("max.f32", f32(-0.0), f32(0.0)) == f32(0.0)
    assert one("max.f64", f64(1.0), f64(2.0)) == f64(2.0)
    assert one("min.f32", 0xFFC00001, f32(2.0)) == f32(2.0)
    assert one("min.f32", f32(2.0), 0x7F800001) == f32(2.0)
    assert one("max.f32", 0xFFC00001, 0x7FC00001) == NAN32
    assert one("max.NaN.f32", 0xFFC00001, f32(2.0)) == NAN32
    assert one("min.NaN.f32", f32(1.0), f32(2.0)) == f32(1.0)
    assert one("min.ftz.f32", f32(2.0**-149), f32(1.0)) == 0


def test_abs_neg_copysign_turn_only_the_sign_bit() -> None:
    assert one("abs.f64", f64(-0.0)) == 0
    assert one("neg.f32", f32(0.0)) == f32(-0.0)
    assert one("copysign.f32", f32(-1.0), f32(5.0)) == f32(-5.0)
    assert one("copysign.f64", f64(1.0), f64(-math.inf)) == INF64


def test_testp() -> None:
    values = [f32(x) for x in (0.0, 1.0, 2.0**-149, -(2.0**-126))] + [INF32 | MINUS32, NAN32]
    wanted = {
        "finite": [1, 1, 1, 1, 0, 0],
        "infinite": [0, 0, 0, 0, 1, 0],
        "number": [1, 1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 0, 1],
        "normal": [0, 1, 0, 1, 0, 0],
        "subnormal": [0, 0, 1, 0, 0, 0],
    }
    for test, answers in wanted.items():
        assert apply(f"testp.{test}.f32", values) == answers, test


def test_div_approx_loses_large_divisors() -> None:
    """PTX ISA, div: for 2^126 < |b| < 2^128 the result is 0, or a NaN where a is infinite."""
    assert one("div.approx.f32", f32(2.0**127), f32(2.0**127)) == 0
    assert one("div.approx.f32", f32(-(2.0**127)), f32(2.0**127)) == MINUS32
    assert one("div.approx.f32", INF32, f32(2.0**127)) == NAN32
    assert one("div.approx.f32", f32(3.0), f32(2.0**126)) == f32(3.0 * 2.0**-126)


@FEW
@given(a=st.floats(2.0**-60, 2.0**60, width=32), b=st.floats(2.0**-60, 2.0**60, width=32))
def test_div_approx_is_within_two_ulp(a: float, b: float) -> None:
    got = Fraction(from_f32(one("div.approx.f32", f32(a), f32(b))))
    ulp = Fraction(float(np.spacing(np.float32(a / b))))
    assert abs(got - Fraction(a) / Fraction(b)) <= 2 * ulp


@pytest.mark.parametrize("name", ["rcp", "rsqrt"])
@given(upper=st.integers(0, (1 << 32) - 1), lower=st.integers(0, (1 << 32) - 1))
def test_coarse_double_functions_read_the_upper_word(name: str, upper: int, lower: int) -> None:
    """PTX ISA, rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the lower word is ignored."""
    opcode = f"{name}.approx.ftz.f64"
    assert one(opcode, upper << 32 | lower) == one(opcode, upper << 32)


@given(a=st.floats(1e-300, 1e300))
def test_inverse_roots_of_doubles(a: float) -> None:
    got = from_f64(one("rsqrt.approx.f64", f64(a)))
    assert got == pytest.approx(a**-0.5, rel=2.0**-20)


def test_the_inverse_root_of_any_nan_is_the_canonical_one() -> None:
    assert one("rsqrt.approx.f64", INF64 | MINUS64 | 1) == NAN64
    assert one("rsqrt.approx.f64", f64(-1.0)) == NAN64


@pytest.mark.parametrize(("name", "power"), [("rcp", -1.0), ("rsqrt", -0.5)])
def test_coarse_double_functions_keep_twenty_bits(name: str, power: float) -> None:
    for value in (1.0, 3.0, 0.7, 1e300, 1e-300, 12345.678):
        got = one(f"{name}.approx.ftz.f64", f64(value))
        assert got & 0xFFFFFFFF == 0
        assert from_f64(got) == pytest.approx(value**power, rel=2.0**-19)
    assert one(f"{name}.approx.ftz.f64", 0) == INF64
    assert one(f"{name}.approx.ftz.f64", INF64) == 0
    assert one(f"{name}.approx.ftz.f64", MINUS64 | 1) == INF64 | MINUS64
    assert from_f64(one(f"{name}.approx.ftz.f64", NAN64)) != from_f64(NAN64)
