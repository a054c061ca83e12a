"""The approximated functions: the manual's error bounds on a sample, and its special values."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from opcode_values import INF32, MINUS32, NAN32, apply, f32, one

LEAST = f32(2.0**-126)
TINY = f32(2.0**-149)

Bound = Callable[[float, float], float]


def relative(bits: float) -> Bound:
    return lambda x, exact: 2.0**bits * abs(exact)


def absolute(bits: float) -> Bound:
    return lambda x, exact: 2.0**bits


def in_ulp(count: float) -> Bound:
    return lambda x, exact: count * float(np.spacing(np.float32(abs(exact))))


def log_bound(x: float, exact: float) -> float:
    """PTX ISA, lg2: absolute 2^-22 between 0.5 and 2, relative 2^-22 elsewhere."""
    return 2.0**-22 if 0.5 < x < 2 else 2.0**-22 * abs(exact)


SAMPLE = np.random.default_rng(7)
LINEAR, PERIOD = SAMPLE.uniform(-126, 127.9, 400), SAMPLE.uniform(-math.pi, math.pi, 400)
TURNS = SAMPLE.uniform(-100 * math.pi, 100 * math.pi, 300)
SIZES = 2.0 ** SAMPLE.uniform(-126, 127.9, 300)
AROUND_ONE = SAMPLE.uniform(0.5, 2.0, 400)
SMALL = SAMPLE.uniform(-5, 5, 400)


@pytest.mark.parametrize(
    ("name", "function", "sample", "bound"),
    [
        ("ex2", lambda x: mpmath.power(2, x), LINEAR, in_ulp(2)),
        ("lg2", lambda x: mpmath.log(x, 2), SIZES, log_bound),
        ("lg2", lambda x: mpmath.log(x, 2), AROUND_ONE, log_bound),
        ("sin", mpmath.sin, PERIOD, absolute(-20.5)),
        ("cos", mpmath.cos, PERIOD, absolute(-20.5)),
        ("sin", mpmath.sin, TURNS, absolute(-14.7)),
        ("cos", mpmath.cos, TURNS, absolute(-14.7)),
        ("tanh", mpmath.tanh, SMALL, relative(-11)),
        ("tanh", mpmath.tanh, SIZES, relative(-11)),
        ("rcp", lambda x: 1 / mpmath.mpf(x), SIZES, in_ulp(1)),
        ("sqrt", mpmath.sqrt, SIZES, relative(-23)),
        ("rsqrt", lambda x: 1 / mpmath.sqrt(x), SIZES, relative(-22.9)),
    ],
)
def test_errors_stay_within_the_manuals_bounds(
    name: str, function: Callable[[mpmath.mpf], mpmath.mpf], sample: np.ndarray, bound: Bound
) -> None:
    singles = sample.astype(np.float32)
    got = apply(f"{name}.approx.f32", singles.view(np.uint32).tolist())
    with mpmath.workprec(120):
        for x, bits in zip(singles.tolist(), got, strict=True):
            exact = function(mpmath.mpf(x))
            found = mpmath.mpf(float(np.uint32(bits).view(np.float32)))
            assert abs(found - exact) <= bound(x, float(exact)), (x, found, exact)


@pytest.mark.parametrize(
    ("opcode", "value", "expected"),
    [
        ("ex2.approx.f32", INF32 | MINUS32, 0),
        ("ex2.approx.f32", INF32, INF32),
        ("ex2.approx.f32", 0, f32(1.0)),
        ("ex2.approx.f32", MINUS32, f32(1.0)),
        ("ex2.approx.f32", TINY, f32(1.0)),
        ("ex2.approx.f32", NAN32, NAN32),
        ("ex2.approx.f32", f32(128.0), INF32),
        ("ex2.approx.f32", f32(-149.0), 1),
        ("ex2.approx.f32", f32(-127.0), 0x00400000),
        ("ex2.approx.ftz.f32", f32(-127.0), 0),
        ("ex2.approx.f32", f32(10.0), f32(1024.0)),
        ("lg2.approx.f32", INF32 | MINUS32, NAN32),
        ("lg2.approx.f32", f32(-1.0), NAN32),
        ("lg2.approx.f32", 0, INF32 | MINUS32),
        ("lg2.approx.f32", MINUS32, INF32 | MINUS32),
        ("lg2.approx.f32", INF32, INF32),
        ("lg2.approx.f32", NAN32, NAN32),
        ("lg2.approx.f32", TINY, f32(-149.0)),
        ("lg2.approx.ftz.f32", TINY, INF32 | MINUS32),
        ("lg2.approx.f32", f32(1.0), 0),
        ("lg2.approx.f32", f32(2.0**40), f32(40.0)),
        ("sin.approx.f32", 0, 0),
        ("sin.approx.f32", MINUS32, MINUS32),
        ("sin.approx.ftz.f32", MINUS32 | 1, MINUS32),
        ("sin.approx.f32", INF32, NAN32),
        ("sin.approx.f32", INF32 | MINUS32, NAN32),
        ("sin.approx.f32", NAN32, NAN32),
        ("cos.approx.f32", 0, f32(1.0)),
        ("cos.approx.f32", TINY, f32(1.0)),
        ("cos.approx.f32", INF32, NAN32),
        ("cos.approx.f32", 0xFFFFFFFF, NAN32),
        ("tanh.approx.f32", INF32 | MINUS32, f32(-1.0)),
        ("tanh.approx.f32", INF32, f32(1.0)),
        ("tanh.approx.f32", MINUS32, MINUS32),
        ("tanh.approx.f32", 0, 0),
        ("tanh.approx.f32", TINY, TINY),
        ("tanh.approx.f32", NAN32, NAN32),
        ("rcp.approx.f32", INF32 | MINUS32, MINUS32),
        ("rcp.approx.f32", MINUS32, INF32 | MINUS32),
        ("rcp.approx.f32", 0, INF32),
        ("rcp.approx.ftz.f32", f32(2.0**127), 0),
        ("sqrt.approx.f32", MINUS32, MINUS32),
        ("sqrt.approx.f32", f32(-1.0), NAN32),
        ("rsqrt.approx.f32", MINUS32, INF32 | MINUS32),
        ("rsqrt.approx.f32", INF32, 0),
        ("rsqrt.approx.f32", f32(-1.0), NAN32),
        ("rsqrt.approx.f32", f32(0.25), f32(2.0)),
    ],
)
def test_special_values(opcode: str, value: int, expected: int) -> None:
    assert one(opcode, value) == expected


def test_sine_and_cosine_of_anything_finite_stay_within_one() -> None:
    huge = np.array([1e6, 1e10, -1e20, 3e38, -3.4e38, 2.0**31, -(2.0**33)], np.float32)
    for name in ("sin", "cos"):
        got = apply(f"{name}.approx.f32", huge.view(np.uint32).tolist())
        values = np.array(got, np.uint32).view(np.float32)
        assert np.all(np.abs(values) <= 1.0)
