"""The functions that the hardware approximates: PTX ISA, "Floating Point Instructions".

The manual bounds their error and fixes their special values, but not their bits. Here each is a
polynomial in fused multiply-adds, so that every machine gets the same bits. The coefficients are
minimax fits, rounded to single precision.
"""

from __future__ import annotations

from warploom.core.types import F32, S32, U32
from warploom.isa.ops.common import nan_like, operands, result
from warploom.isa.spec import Modifiers, Unit, op
from warploom.isa.terms import (
    Term,
    constant,
    eq,
    float_abs,
    float_constant,
    float_max,
    float_min,
    float_neg,
    float_op,
    float_to_int,
    int_to_float,
    is_nan,
    ne,
    reinterpret,
    round_integral,
    select,
    shift_left,
    shift_right,
)

INFINITY = float("inf")
SINGLE = ("f32",)

# (2^f - 1) / f on [-1/2, 1/2], in f; relative error of 2^f below 2^-28.
EXP2 = (
    *("0x1.62e43p-1", "0x1.ebfbep-3", "0x1.c6aec2p-5"),
    *("0x1.3b2a72p-7", "0x1.5f4e2cp-10", "0x1.43e9d6p-13"),
)
# log2(1 + f) / f from sqrt(1/2) to sqrt(2), in f; error below 2^-24.
LOG2 = (
    *("0x1.715476p+0", "-0x1.71546cp-1", "0x1.ec73bep-2"),
    *("-0x1.715f9ap-2", "0x1.26d982p-2", "-0x1.e8cee0p-3"),
    *("0x1.b8c14ap-3", "-0x1.abe504p-3", "0x1.08baeap-3"),
)
# (sin(r) / r - 1) / r^2 and (cos(r) - 1) / r^2 on [-pi/4, pi/4], in r^2; errors below 2^-28.
SIN = ("-0x1.555546p-3", "0x1.110760p-7", "-0x1.994eb2p-13")
COS = ("-0x1.000000p-1", "0x1.55553ep-5", "-0x1.6c087ep-10", "0x1.993430p-16")
# (tanh(x) / x - 1) / x^2 on [-0.6, 0.6], in x^2; error below 2^-23.
TANH = ("-0x1.555378p-2", "0x1.10a930p-3", "-0x1.abe08cp-5", "0x1.0040dep-6")
# pi/2 as a sum of three floats, of which each takes up where the one before ends.
HALF_PI = ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50")
TWO_OVER_PI = "0x1.45f306p-1"
TWO_LOG2_E = "0x1.715476p+1"


def number(text: str | float) -> Term:
    """Returns a single-precision constant, from hexadecimal text or a value that is exact in it."""
    return float_constant(float.fromhex(text) if isinstance(text, str) else text, F32)


def fma(a: Term, b: Term, c: Term) -> Term:
    """Returns a * b + c, rounded once, to nearest."""
    return float_op("fma", "rn", a, b, c)


def mul(a: Term, b: Term) -> Term:
    """Returns a * b, rounded to nearest."""
    return float_op("fmul", "rn", a, b)


def polynomial(x: Term, coefficients: tuple[str, ...]) -> Term:
    """Returns the polynomial in `x`, coefficients from the constant term up, by Horner's rule."""
    *rest, value = (number(c) for c in coefficients)
    for coefficient in reversed(rest):
        value = fma(value, x, coefficient)
    return value


def nearest_integer(x: Term) -> Term:
    """Returns `x` rounded to the nearest integer, as .s32."""
    return float_to_int(round_integral(x, "rni"), S32)


def power_of_two(exponent: Term) -> Term:
    """Returns 2^exponent for an .s32 from -126 to 127."""
    return reinterpret(shift_left(exponent + 127, constant(23, U32)), F32)


def exp2(x: Term) -> Term:
    """Returns 2^x; some number for a NaN.

    The power is applied in two halves, of which only the second can overflow or round.
    """
    bounded = float_min(float_max(x, number(-160.0)), number(130.0))
    whole = nearest_integer(bounded)
    fraction = float_op("fsub", "rn", bounded, int_to_float(whole, F32, "rn"))
    mantissa = fma(polynomial(fraction, EXP2), fraction, number(1.0))
    half = shift_right(whole, constant(1, U32))
    return mul(mul(mantissa, power_of_two(half)), power_of_two(whole - half))


@op("ex2.approx{.ftz}.type", dst="d:type", src="a:type", unit=Unit.FLOAT, type=SINGLE)
def ex2(m: Modifiers, a: Term) -> Term:
    """d = 2^a                                      PTX ISA, Floating Point: ex2"""
    (a,) = operands(m, a)
    return result(m, select(is_nan(a), nan_like(a), exp2(a)))


def log2(x: Term) -> Term:
    """Returns log2 of a positive finite x, which is 2^k (1 + f) with 1 + f around 1."""
    tiny = x < number(2.0**-126)
    bits = reinterpret(select(tiny, mul(x, number(2.0**24)), x), S32)
    root_half = 0x3F3504F3  # the bits of sqrt(1/2)
    exponent = shift_right(bits - root_half, constant(23, U32))
    near_one = reinterpret(bits - shift_left(exponent, constant(23, U32)), F32)
    fraction = float_op("fsub", "rn", near_one, number(1.0))
    whole = exponent - select(tiny, constant(24, S32), 0)
    return fma(polynomial(fraction, LOG2), fraction, int_to_float(whole, F32, "rn"))


@op("lg2.approx{.ftz}.type", dst="d:type", src="a:type", unit=Unit.FLOAT, type=SINGLE)
def lg2(m: Modifiers, a: Term) -> Term:
    """d = log2(a)                                  PTX ISA, Floating Point: lg2"""
    (a,) = operands(m, a)
    finite = select(a < number(INFINITY), log2(a), number(INFINITY))
    at_zero = select(eq(a, number(0.0)), number(-INFINITY), nan_like(a))
    return result(m, select(a > number(0.0), finite, at_zero))


def turned(x: Term, quarter: int) -> Term:
    """Returns sin(x + quarter * pi/2); some number for a NaN or an infinity.

    Beyond about 10^6 the reduced angle loses its digits (the manual promises none there); it is
    held in its range so that the result stays within [-1, 1].
    """
    turns = nearest_integer(mul(x, number(TWO_OVER_PI)))
    count = float_neg(int_to_float(turns, F32, "rn"))
    reduced = x
    for part in HALF_PI:
        reduced = fma(count, number(part), reduced)
    angle = select(eq(turns, 0), x, reduced)  # a zero keeps its sign
    eighth = number("0x1.921fb6p-1")
    angle = float_max(float_min(angle, eighth), float_neg(eighth))
    square = mul(angle, angle)
    sine = mul(angle, fma(polynomial(square, SIN), square, number(1.0)))
    cosine = fma(polynomial(square, COS), square, number(1.0))
    quadrant = turns + quarter
    value = select(ne(quadrant & 1, 0), cosine, sine)
    return select(ne(quadrant & 2, 0), float_neg(value), value)


def periodic(m: Modifiers, a: Term, quarter: int) -> Term:
    """Returns sin(a + quarter * pi/2); a NaN for a NaN and for an infinity."""
    (a,) = operands(m, a)
    finite = float_abs(a) < number(INFINITY)
    return result(m, select(finite, turned(a, quarter), nan_like(a)))


@op("sin.approx{.ftz}.type", dst="d:type", src="a:type", unit=Unit.FLOAT, type=SINGLE)
def sin(m: Modifiers, a: Term) -> Term:
    """d = sin(a)                                   PTX ISA, Floating Point: sin"""
    return periodic(m, a, 0)


@op("cos.approx{.ftz}.type", dst="d:type", src="a:type", unit=Unit.FLOAT, type=SINGLE)
def cos(m: Modifiers, a: Term) -> Term:
    """d = cos(a)                                   PTX ISA, Floating Point: cos"""
    return periodic(m, a, 1)


@op("tanh.approx.type", dst="d:type", src="a:type", unit=Unit.FLOAT, type=SINGLE)
def tanh(m: Modifiers, a: Term) -> Term:
    """d = tanh(a)                                  PTX ISA, Floating Point: tanh"""
    return result(m, select(is_nan(a), nan_like(a), tanh_of(a)))


def tanh_of(a: Term) -> Term:
    """Returns tanh(a); some number for a NaN."""
    size, square = float_abs(a), mul(a, a)
    small = mul(a, fma(polynomial(square, TANH), square, number(1.0)))
    grown = float_op("fadd", "rn", exp2(mul(size, number(TWO_LOG2_E))), number(1.0))
    large = float_op("fsub", "rn", number(1.0), float_op("fdiv", "rn", number(2.0), grown))
    signed = select(a < number(0.0), float_neg(large), large)
    return select(size < number("0x1.333332p-1"), small, signed)
