"""Conversions to and from narrow formats: all their numbers, and rounding by the definition."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_values import apply, f32, f64, from_f32, integers, one, signed

FEW = settings(max_examples=120)
DTYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
NANS = {"f16": 0x7FFF, "bf16": 0x7FFF, "e4m3": 0x7F, "e5m2": 0x7F}
SIGN = {"f16": 15, "bf16": 15, "e4m3": 7, "e5m2": 7, "e2m3": 5, "e3m2": 5, "e2m1": 3}
SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


def numbers_of(name: str) -> list[Fraction]:
    """All numbers from 0 on: the index of each is its bits."""
    whole = np.uint16 if SIGN[name] == 15 else np.uint8
    with np.errstate(invalid="ignore"):  # signalling NaNs are among them
        values = np.arange(1 << SIGN[name]).astype(whole).view(DTYPES[name]).astype(np.float64)
    return [Fraction(float(v)) for v in values if math.isfinite(v)]


NUMBERS = {name: numbers_of(name) for name in DTYPES}


def rounded(name: str, exact: Fraction, mode: str, *, finite: bool) -> int:
    """The bits of the format's number next to `exact`."""
    size, numbers = abs(exact), NUMBERS[name]
    sign = (1 << SIGN[name]) if exact < 0 else 0
    above = bisect_left(numbers, size)
    if above < len(numbers) and numbers[above] == size:
        return sign | above
    below = above - 1
    # Beyond the largest number the next one would be as far again as the one before.
    following = numbers[above] if above < len(numbers) else 2 * numbers[-1] - numbers[-2]
    if mode == "rn":
        halfway = (numbers[below] + following) / 2
        up = size > halfway or (size == halfway and above % 2 == 0)
    else:
        up = {"rz": False, "rm": exact < 0, "rp": exact > 0}[mode]
    found = above if up or size > following else below
    if size > following:
        found = (
            len(numbers) if mode == "rn" or {"rm": exact < 0, "rp": exact > 0}.get(mode) else below
        )
    return sign | (min(found, len(numbers) - 1) if finite else found)


def floats() -> st.SearchStrategy[int]:
    """Bits of finite singles; many near numbers of the narrow formats and halfway between."""
    near = [
        f32(float((a + b) / 2 * scale))
        for name in DTYPES
        for a, b in zip(NUMBERS[name][::7], NUMBERS[name][1::7], strict=False)
        for scale in (1, -1)
        if b < 2**127
    ]
    around = st.builds(lambda b, d: max(0, b + d), st.sampled_from(near), st.integers(-1, 1))
    return st.one_of(integers(32), around).filter(lambda b: (b >> 23 & 0xFF) != 0xFF)


def test_the_two_formats_of_halves_have_the_numbers_of_ml_dtypes() -> None:
    for name in ("f16", "bf16"):
        bits = list(range(1 << 16))
        got = np.array(apply(f"cvt.f32.{name}", bits), np.uint32).view(np.float32)
        expected = np.arange(1 << 16).astype(np.uint16).view(DTYPES[name]).astype(np.float32)
        same = (got == expected) & (np.signbit(got) == np.signbit(expected))
        assert (same | (np.isnan(got) & np.isnan(expected))).all()


@pytest.mark.parametrize("name", SMALL)
def test_small_formats_have_the_numbers_of_ml_dtypes(name: str) -> None:
    count = 2 << SIGN[name]
    bits = np.arange(count).astype(np.uint8)
    with np.errstate(invalid="ignore"):
        expected = bits.view(DTYPES[name]).astype(np.float16)
    got = apply(f"cvt.rn.f16x2.{name}x2", bits.tolist())
    halves = np.array([g & 0xFFFF for g in got]).astype(np.uint16).view(np.float16)
    same = (halves == expected) & (np.signbit(halves) == np.signbit(expected))
    assert (same | (np.isnan(halves) & np.isnan(expected))).all()


@pytest.mark.parametrize("name", ["f16", "bf16"])
@FEW
@given(bits=floats(), mode=st.sampled_from(("rn", "rz", "rm", "rp")))
def test_rounding_a_single_to_a_half(name: str, bits: int, mode: str) -> None:
    exact = Fraction(from_f32(bits))
    zero = 0x8000 if bits >> 31 and exact == 0 else 0
    assert (
        one(f"cvt.{mode}.{name}.f32", bits) | zero
        == rounded(name, exact, mode, finite=False) | zero
    )
    if mode in ("rn", "rz"):
        limited = rounded(name, exact, mode, finite=True)
        assert one(f"cvt.{mode}.satfinite.{name}.f32", bits) | zero == limited | zero
        positive = 0 if bits >> 31 else rounded(name, exact, mode, finite=False)
        assert one(f"cvt.{mode}.relu.{name}.f32", bits) == positive


@pytest.mark.parametrize("name", SMALL)
@FEW
@given(a=floats(), b=floats())
def test_rounding_singles_to_small_formats(name: str, a: int, b: int) -> None:
    found = []
    for bits in (a, b):
        exact = Fraction(from_f32(bits))
        size = rounded(name, abs(exact), "rn", finite=True)
        found.append(size | (bits >> 31) << SIGN[name])
    width = 4 if name == "e2m1" else 8
    assert one(f"cvt.rn.satfinite.{name}x2.f32", a, b) == found[0] << width | found[1]
    relu = [0 if bits >> 31 else f for bits, f in zip((a, b), found, strict=True)]
    assert one(f"cvt.rn.satfinite.relu.{name}x2.f32", a, b) == relu[0] << width | relu[1]


def test_what_is_no_number() -> None:
    nan, infinity = 0xFFC00001, 0x7F800000
    for name in ("f16", "bf16"):
        full = {"f16": 0x7C00, "bf16": 0x7F80}[name]
        assert one(f"cvt.rn.{name}.f32", nan) == 0x7FFF
        assert one(f"cvt.rz.{name}.f32", infinity) == full
        assert one(f"cvt.rn.satfinite.{name}.f32", infinity) == full - 1
        assert one(f"cvt.rn.relu.{name}.f32", nan) == 0x7FFF
    for name in SMALL:
        largest = len(NUMBERS[name]) - 1
        width = 4 if name == "e2m1" else 8
        got = one(f"cvt.rn.satfinite.{name}x2.f32", nan, infinity | 1 << 31)
        assert got >> width == NANS.get(name, largest)
        assert got & ((1 << width) - 1) == largest | 1 << SIGN[name]


@FEW
@given(bits=floats())
def test_tf32_keeps_ten_bits(bits: int) -> None:
    step = 1 << 13
    down = bits & ~(step - 1)
    away = (bits + step // 2) & ~(step - 1)
    assert one("cvt.rz.tf32.f32", bits) == down
    assert one("cvt.rna.tf32.f32", bits) == away
    tie = bits & (step - 1) == step // 2
    assert one("cvt.rn.tf32.f32", bits) == (
        (down if not bits & step else down + step) if tie else away
    )


@FEW
@given(value=integers(64))
def test_integers_round_once(value: int) -> None:
    for type, number in (("u64", value), ("s64", signed(value, 64))):
        for mode in ("rn", "rz", "rm", "rp"):
            expected = rounded("bf16", Fraction(number), mode, finite=False)
            assert one(f"cvt.{mode}.bf16.{type}", value) == expected
            expected = rounded("f16", Fraction(number), mode, finite=False)
            assert one(f"cvt.{mode}.f16.{type}", value) == expected


@FEW
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_round_once(value: float) -> None:
    for name in ("f16", "bf16"):
        expected = rounded(name, Fraction(value), "rn", finite=False)
        zero = 0x8000 if math.copysign(1, value) < 0 and value == 0 else 0
        assert one(f"cvt.rn.{name}.f64", f64(value)) == expected | zero


def test_halves_to_integers_and_integral_halves() -> None:
    assert one("cvt.rni.s32.f16", 0xC100) == (-2) % (1 << 32)  # -2.5
    assert one("cvt.rmi.s16.bf16", 0xC020) == (-3) % (1 << 16)  # -2.5
    assert one("cvt.rzi.u8.f16", 0x7BFF) == 255
    assert one("cvt.rzi.s32.f16", 0x7E00) == 0
    assert one("cvt.rpi.f16.f16", 0x3C01) == 0x4000
    assert one("cvt.rn.bf16.f16", 0x3C01) == 0x3F80
    assert one("cvt.rp.bf16.f16", 0x3C01) == 0x3F81
    assert one("cvt.sat.f16.f16", 0x4000) == 0x3C00


@FEW
@given(a=floats(), b=floats(), rbits=integers(32))
def test_random_rounding_adds_below_the_last_place(a: int, b: int, rbits: int) -> None:
    got = one("cvt.rs.satfinite.bf16x2.f32", a, b, rbits)
    for bits, random, half in ((a, rbits >> 16, got >> 16), (b, rbits & 0xFFFF, got & 0xFFFF)):
        size = min((bits & 0x7FFFFFFF) + random >> 16, 0x7F7F)
        assert half == size | (bits >> 16 & 0x8000)


def test_random_rounding_of_four() -> None:
    # 1.5 quanta of e4m3 above 16: a random half of the quantum or more rounds up.
    value = f32(16 + 3.0)
    for random, low in ((0, 0x58 + 1), (0x7FFF, 0x59), (0x8000, 0x5A), (0xFFFF, 0x5A)):
        got = one("cvt.rs.satfinite.e4m3x4.f32", value, value, value, value, random)
        assert got == 0x59590000 | low << 8 | low


def test_scales() -> None:
    assert one("cvt.rz.ue8m0x2.f32", f32(1.0), f32(3.0)) == 127 << 8 | 128
    assert one("cvt.rp.ue8m0x2.f32", f32(-1.0), f32(3.0)) == 127 << 8 | 129
    assert one("cvt.rp.ue8m0x2.f32", 0, 0x00400001) == 1  # just above 2^-127
    assert one("cvt.rz.ue8m0x2.f32", 0x7F800000, 0x7FC00000) == 0xFFFF
    assert one("cvt.rz.satfinite.ue8m0x2.f32", 0x7F800000, 0x7FC00000) == 0xFEFF
    assert one("cvt.rz.ue8m0x2.bf16x2", 0x40403F80) == 128 << 8 | 127
    assert one("cvt.rn.bf16x2.ue8m0x2", 127 << 8 | 0) == 0x3F800040
    assert one("cvt.rn.bf16x2.ue8m0x2", 0xFF01) == 0x7FFF0080


@FEW
@given(a=integers(32), b=integers(32), c=integers(32))
def test_packing_integers(a: int, b: int, c: int) -> None:
    for name in ("u16", "s16", "u2", "s2", "u4", "s4", "u8", "s8"):
        bits = int(name[1:])
        low, high = (
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "s" else (0, (1 << bits) - 1)
        )
        first, second = (max(low, min(high, signed(v, 32))) % (1 << bits) for v in (a, b))
        pair = first << bits | second
        if bits == 16:
            assert one(f"cvt.pack.sat.{name}.s32", a, b) == pair
        else:
            expected = (c << 2 * bits | pair) % (1 << 32)
            assert one(f"cvt.pack.sat.{name}.s32.b32", a, b, c) == expected
