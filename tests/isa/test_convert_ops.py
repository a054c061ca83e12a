"""Conversions and moves."""

from __future__ import annotations

import math
from fractions import Fraction

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
    integers,
    lanes_of,
    number,
    one,
)

from warploom.core.types import TYPES, ScalarType

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


def limits(type: ScalarType) -> tuple[int, int]:
    if type.is_signed:
        return -(1 << (type.bits - 1)), (1 << (type.bits - 1)) - 1
    return 0, (1 << type.bits) - 1


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
@settings(max_examples=5)
@given(data=st.data())
def test_integers_extend_wrap_and_clamp(source: str, target: str, data: st.DataObject) -> None:
    have, want = TYPES[source], TYPES[target]
    a = data.draw(lanes_of(integers(have.bits)))
    low, high = limits(want)
    numbers = [number(x, have) for x in a]
    wrapped = [x % (1 << want.bits) for x in numbers]
    clamped = [max(low, min(high, x)) % (1 << want.bits) for x in numbers]
    assert apply(f"cvt.{target}.{source}", a) == wrapped
    assert apply(f"cvt.sat.{target}.{source}", a) == clamped


ROUND = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("target", INTEGERS)
@settings(max_examples=40)
@given(bits=st.one_of(st.integers(0, (1 << 32) - 1), st.floats(-300, 300, width=32).map(f32)))
def test_floats_round_and_clamp_to_integers(mode: str, target: str, bits: int) -> None:
    value, want = from_f32(bits), TYPES[target]
    if not math.isfinite(value):
        return
    low, high = limits(want)
    wanted = max(low, min(high, ROUND[mode](Fraction(value)))) % (1 << want.bits)
    assert one(f"cvt.{mode}.{target}.f32", bits) == wanted
    assert one(f"cvt.{mode}.{target}.f64", f64(value)) == wanted


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("rni", [2.0, 4.0, -2.0, -0.0, 0.0]),
        ("rzi", [2.0, 3.0, -2.0, -0.0, 0.0]),
        ("rmi", [2.0, 3.0, -3.0, -1.0, 0.0]),
        ("rpi", [3.0, 4.0, -2.0, -0.0, 1.0]),
    ],
)
def test_floats_round_to_integral_floats(mode: str, expected: list[float]) -> None:
    values = [2.5, 3.5, -2.5, -0.25, 0.25]
    assert apply(f"cvt.{mode}.f32.f32", [f32(x) for x in values]) == [f32(x) for x in expected]
    assert apply(f"cvt.{mode}.f64.f64", [f64(x) for x in values]) == [f64(x) for x in expected]


def test_infinities_clamp() -> None:
    assert one("cvt.rzi.s32.f32", INF32) == 0x7FFFFFFF
    assert one("cvt.rzi.s32.f32", INF32 | MINUS32) == 0x80000000
    assert one("cvt.rzi.u32.f64", INF64 | MINUS64) == 0
    assert one("cvt.rzi.u64.f32", INF32) == (1 << 64) - 1


@pytest.mark.parametrize(
    ("opcode", "nan", "expected"),
    [
        ("cvt.rzi.s32.f32", NAN32, 0),
        ("cvt.rzi.u16.f32", NAN32, 0),
        ("cvt.rzi.s64.f32", NAN32, 1 << 63),
        ("cvt.rzi.u64.f32", NAN32, 1 << 63),
        ("cvt.rzi.s32.f64", NAN64, 1 << 31),
        ("cvt.rzi.u32.f64", NAN64, 1 << 31),
        ("cvt.rzi.s64.f64", NAN64, 1 << 63),
    ],
)
def test_a_nan_becomes_what_the_manual_says(opcode: str, nan: int, expected: int) -> None:
    """PTX ISA, cvt: 0 if the source is not .f64 and the target not 64 bits wide, else the top
    bit."""
    assert one(opcode, nan) == expected


def test_floats_change_width() -> None:
    assert one("cvt.f64.f32", f32(-1.5)) == f64(-1.5)
    assert one("cvt.f64.f32", 1) == f64(2.0**-149)
    assert one("cvt.ftz.f64.f32", 1 | MINUS32) == MINUS64
    assert one("cvt.f64.f32", 0x7F800001) == 0x7FF8_0000_2000_0000
    assert one("cvt.rn.f32.f64", f64(1e300)) == INF32
    assert one("cvt.rz.f32.f64", f64(1e300)) == INF32 - 1
    assert one("cvt.rn.ftz.f32.f64", f64(2.0**-140)) == 0
    assert one("cvt.rn.sat.f32.f64", f64(1.5)) == f32(1.0)
    assert one("cvt.rpi.ftz.s32.f32", 1) == 0
    assert one("cvt.rpi.s32.f32", 1) == 1


def test_halves_convert_to_each_other_and_wider_with_and_without_a_rounding() -> None:
    """1 + 2^-7 + 2^-8 lies halfway between two .bf16 numbers, of which 1 + 2^-6 is even; every
    .bf16 number is an .f32 and an .f64, whatever the rounding."""
    assert one("cvt.bf16.f16", 0x3C0C) == one("cvt.rn.bf16.f16", 0x3C0C) == 0x3F82
    assert one("cvt.rz.bf16.f16", 0x3C0C) == 0x3F81
    assert one("cvt.f16.bf16", 0x3F81) == one("cvt.rz.f16.bf16", 0x3F81) == 0x3C08
    assert one("cvt.rz.f32.bf16", 0x3F81) == f32(1 + 2.0**-7)
    assert one("cvt.rm.ftz.f32.bf16", 1) == 0
    assert one("cvt.rp.f64.bf16", 0x3F81) == f64(1 + 2.0**-7)


def test_moves_keep_every_bit() -> None:
    assert one("mov.f32", 0x7F800001) == 0x7F800001
    assert one("mov.b64", (1 << 64) - 3) == (1 << 64) - 3
    assert one("mov.pred", 1) == 1
