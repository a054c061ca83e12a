"""Floating-point arithmetic on .f32 and .f64: PTX ISA, "Floating Point Instructions".

Functions that the hardware approximates by tables are in `approximate.py`.
"""

from __future__ import annotations

from warploom.core.types import F64, PRED, unsigned
from warploom.isa.ops.common import FLOATS, by_part, extreme, operands, result, rounding, sign_bit
from warploom.isa.spec import Modifiers, Operation, Unit, decode, op
from warploom.isa.terms import (
    ROUNDINGS,
    Term,
    canonical,
    float_abs,
    float_constant,
    float_max,
    float_min,
    float_neg,
    float_op,
    float_to_float,
    is_nan,
    reinterpret,
    select,
)

SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}
SINGLE, DOUBLE, PAIR = ("f32",), ("f64",), ("f32x2",)
ONE, TWO, THREE = "a:type", "a:type, b:type", "a:type, b:type, c:type"
UP_TO_THREE = f"{THREE}?"


@op(
    "add{.rnd}{.ftz}{.sat}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE
)
@op("add{.rnd}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
@op("add{.rnd}{.ftz}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=PAIR)
@by_part
def add(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a + b                                    PTX ISA, Floating Point: add"""
    return result(m, float_op("fadd", rounding(m), *operands(m, a, b)))


@op(
    "sub{.rnd}{.ftz}{.sat}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE
)
@op("sub{.rnd}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
@op("sub{.rnd}{.ftz}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=PAIR)
@by_part
def sub(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a - b                                    PTX ISA, Floating Point: sub"""
    return result(m, float_op("fsub", rounding(m), *operands(m, a, b)))


@op(
    "mul{.rnd}{.ftz}{.sat}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE
)
@op("mul{.rnd}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
@op("mul{.rnd}{.ftz}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=PAIR)
@by_part
def mul(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a * b                                    PTX ISA, Floating Point: mul"""
    return result(m, float_op("fmul", rounding(m), *operands(m, a, b)))


@op(
    "fma.rnd{.ftz}{.sat}.type", dst="d:type", src=THREE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE
)
@op(
    "mad.rnd{.ftz}{.sat}.type", dst="d:type", src=THREE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE
)
@op("fma.rnd.type", dst="d:type", src=THREE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
@op("fma.rnd{.ftz}.type", dst="d:type", src=THREE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=PAIR)
@op("mad.rnd.type", dst="d:type", src=THREE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
@by_part
def fma(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = a * b + c, rounded once                  PTX ISA, Floating Point: fma, mad"""
    return result(m, float_op("fma", rounding(m), *operands(m, a, b, c)))


PRODUCT_BITS_DROPPED = 29
"""Bits of the fraction of a double beyond the 23 of a float."""


@op("mad{.ftz}{.sat}.type", dst="d:type", src=THREE, unit=Unit.FLOAT, type=SINGLE)
def mad_truncated(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = a * b + c, with a * b truncated to 23 fraction bits   PTX ISA, Floating Point: mad, sm_1x

    A sum with zero is that of `mul` and `add`. The product of two floats is exact as a double, and
    so is the sum, unless the smaller summand is below the last bit of the larger by far.
    """
    a, b, c = operands(m, a, b, c)
    wide = [float_to_float(value, F64, "rn") for value in (a, b, c)]
    exact = reinterpret(float_op("fmul", "rn", *wide[:2]), unsigned(64))
    product = reinterpret(exact & ~((1 << PRODUCT_BITS_DROPPED) - 1), F64)
    both = float_to_float(float_op("fadd", "rn", product, wide[2]), a.type, "rn")
    (rounded,) = operands(m, float_op("fmul", "rn", a, b))
    with_zero = float_op("fadd", "rn", rounded, c)
    is_zero = float_abs(c) <= float_constant(0.0, c.type)
    return result(m, select(is_zero, with_zero, both))


def fused(operation: Operation) -> Operation:
    """Returns what a `mad` without a rounding mode, of code for compute capability 1.x, is on later
    devices: `fma.rn.ftz.f32`; other operations unchanged (PTX ISA, Floating Point: mad)."""
    if operation.spec.semantics is not mad_truncated:
        return operation
    saturates = ".sat" if "sat" in operation.modifiers else ""
    return decode(f"fma.rn.ftz{saturates}.f32")


@op("div.full{.ftz}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, type=SINGLE)
@op("div.rnd{.ftz}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE)
@op("div.rnd.type", dst="d:type", src=TWO, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
def div(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a / b (.full is rounded correctly; on GPUs, its error is up to 2 ulp)
    PTX ISA, Floating Point: div"""
    return result(m, float_op("fdiv", rounding(m), *operands(m, a, b)))


@op("div.approx{.ftz}.type", dst="d:type", src=TWO, unit=Unit.FLOAT, type=SINGLE)
def div_approx(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a * (1 / b), where 1 / b is 0 for |b| > 2^126  PTX ISA, Floating Point: div"""
    a, b = operands(m, a, b)
    inverse = float_op("fdiv", "rn", float_constant(1.0, b.type), b)
    vanishes = float_abs(b) > float_constant(2.0**126, b.type)
    flushed = select(vanishes, signed_zero(b), inverse)
    return result(m, float_op("fmul", "rn", a, flushed))


def signed_zero(a: Term) -> Term:
    """Returns the zero with the sign of `a`."""
    return reinterpret(sign_bit(a), a.type)


@op("rcp.approx{.ftz}.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=SINGLE)
@op("rcp.rnd{.ftz}.type", dst="d:type", src=ONE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE)
@op("rcp.rnd.type", dst="d:type", src=ONE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
def rcp(m: Modifiers, a: Term) -> Term:
    """d = 1 / a                                    PTX ISA, Floating Point: rcp"""
    (a,) = operands(m, a)
    return result(m, float_op("fdiv", rounding(m), float_constant(1.0, a.type), a))


@op("sqrt.approx{.ftz}.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=SINGLE)
@op("sqrt.rnd{.ftz}.type", dst="d:type", src=ONE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=SINGLE)
@op("sqrt.rnd.type", dst="d:type", src=ONE, unit=Unit.FLOAT, rnd=ROUNDINGS, type=DOUBLE)
def sqrt(m: Modifiers, a: Term) -> Term:
    """d = square root of a                         PTX ISA, Floating Point: sqrt"""
    return result(m, float_op("fsqrt", rounding(m), *operands(m, a)))


@op("rsqrt.approx{.ftz}.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=SINGLE)
@op("rsqrt.approx.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=DOUBLE)
def rsqrt(m: Modifiers, a: Term) -> Term:
    """d = 1 / square root of a                     PTX ISA, Floating Point: rsqrt"""
    return result(m, inverse_root(*operands(m, a)))


def inverse_root(a: Term) -> Term:
    """Returns 1 / square root of `a`, each step rounded to nearest."""
    return float_op("fdiv", "rn", float_constant(1.0, a.type), float_op("fsqrt", "rn", a))


def upper_word(a: Term) -> Term:
    """Returns a double with its low 32 bits cleared."""
    return reinterpret(reinterpret(a, unsigned(64)) & ~0xFFFF_FFFF, a.type)


@op("rcp.approx.ftz.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=DOUBLE)
def rcp_coarse(m: Modifiers, a: Term) -> Term:
    """d = upper word of 1 / (upper word of a)      PTX ISA, Floating Point: rcp.approx.ftz.f64"""
    (a,) = operands(m, upper_word(a))
    return upper_word(result(m, float_op("fdiv", "rn", float_constant(1.0, a.type), a)))


@op("rsqrt.approx.ftz.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=DOUBLE)
def rsqrt_coarse(m: Modifiers, a: Term) -> Term:
    """d = upper word of 1 / square root of (upper word of a)
    PTX ISA, Floating Point: rsqrt.approx.ftz.f64"""
    (a,) = operands(m, upper_word(a))
    return upper_word(result(m, inverse_root(a)))


@op("abs{.ftz}.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=SINGLE)
@op("abs.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=DOUBLE)
def absolute(m: Modifiers, a: Term) -> Term:
    """d = |a|                                      PTX ISA, Floating Point: abs"""
    return of_single_nan(float_abs(*operands(m, a)))


@op("neg{.ftz}.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=SINGLE)
@op("neg.type", dst="d:type", src=ONE, unit=Unit.FLOAT, type=DOUBLE)
def negate(m: Modifiers, a: Term) -> Term:
    """d = -a                                       PTX ISA, Floating Point: neg"""
    return of_single_nan(float_neg(*operands(m, a)))


def of_single_nan(value: Term) -> Term:
    """Returns the canonical NaN for an .f32 that is one: ptxas makes `neg.f32` and `abs.f32` sums
    with -0, whose NaN an H200 gives. An .f64 is returned as it is."""
    return canonical(value) if value.type.bits == 32 else value


@op("min{.ftz}{.NaN}.type", dst="d:type", src=UP_TO_THREE, unit=Unit.FLOAT, type=SINGLE)
@op("min{.ftz}{.NaN}.abs.type", dst="d:type", src=THREE, unit=Unit.FLOAT, type=SINGLE)
@op("min{.ftz}{.NaN}.xorsign.abs.type", dst="d:type", src=TWO, unit=Unit.FLOAT, type=SINGLE)
@op("min.type", dst="d:type", src=TWO, unit=Unit.FLOAT, type=DOUBLE)
def smaller(m: Modifiers, *values: Term) -> Term:
    """d = min(a, b) or min(a, b, c); a NaN operand is ignored, or returned if .NaN is given
    PTX ISA, Floating Point: min"""
    return extreme(m, float_min, *operands(m, *values))


@op("max{.ftz}{.NaN}.type", dst="d:type", src=UP_TO_THREE, unit=Unit.FLOAT, type=SINGLE)
@op("max{.ftz}{.NaN}.abs.type", dst="d:type", src=THREE, unit=Unit.FLOAT, type=SINGLE)
@op("max{.ftz}{.NaN}.xorsign.abs.type", dst="d:type", src=TWO, unit=Unit.FLOAT, type=SINGLE)
@op("max.type", dst="d:type", src=TWO, unit=Unit.FLOAT, type=DOUBLE)
def larger(m: Modifiers, *values: Term) -> Term:
    """d = max(a, b) or max(a, b, c); a NaN operand is ignored, or returned if .NaN is given
    PTX ISA, Floating Point: max"""
    return extreme(m, float_max, *operands(m, *values))


@op(
    "testp.test.type",
    dst="p:pred",
    src=ONE,
    unit=Unit.FLOAT,
    test=("finite", "infinite", "number", "notanumber", "normal", "subnormal"),
    type=FLOATS,
)
def testp(m: Modifiers, a: Term) -> Term:
    """p is true if a has the property              PTX ISA, Floating Point: testp"""
    size, test = float_abs(a), m.text("test", "")
    infinity = float_constant(float("inf"), a.type)
    smallest = float_constant(SMALLEST_NORMAL[a.type.bits], a.type)
    if test == "infinite":
        return size >= infinity
    if test == "notanumber":
        return is_nan(a)
    if test == "number":
        return ~is_nan(a)
    if test == "finite":
        return size < infinity
    if test == "normal":
        return Term("and", PRED, (size >= smallest, size < infinity))
    return Term("and", PRED, (size > 0, size < smallest))


@op("copysign.type", dst="d:type", src=TWO, unit=Unit.FLOAT, type=FLOATS)
def copysign(_: Modifiers, a: Term, b: Term) -> Term:
    """d = b with the sign of a                     PTX ISA, Floating Point: copysign"""
    magnitude = reinterpret(float_abs(b), unsigned(b.type.bits))
    return reinterpret(sign_bit(a) | magnitude, b.type)
