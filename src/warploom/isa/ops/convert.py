"""Conversions and moves: PTX ISA, "Data Movement and Conversion Instructions: cvt, mov, cvta".

`mov` of the address of a symbol, `mov` between a vector and its parts, and `cvta` depend on where
things lie and on registers' widths: the machines know them by name.
"""

from __future__ import annotations

from warploom.core.types import ScalarType
from warploom.isa.ops.common import BITS, FLOATS, INTEGERS, operands, result, rounding
from warploom.isa.spec import Modifiers, Unit, declare, op
from warploom.isa.terms import (
    INTEGRAL_ROUNDINGS,
    ROUNDINGS,
    Term,
    constant,
    float_to_float,
    float_to_int,
    int_to_float,
    is_nan,
    maximum,
    minimum,
    resize,
    round_integral,
    select,
)

CONVERTED = ("u8", "s8", *INTEGERS)


def limits(type: ScalarType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    top = (1 << (type.bits - 1 if type.is_signed else type.bits)) - 1
    return (-top - 1 if type.is_signed else 0), top


@op(
    "cvt{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    dtype=CONVERTED,
    type=CONVERTED,
)
def integer_to_integer(m: Modifiers, a: Term) -> Term:
    """d = a, extended or cut; with .sat, clamped   PTX ISA, Data Movement and Conversion: cvt"""
    target = m.scalar("dtype")
    if "sat" in m:
        (low, high), (least, greatest) = limits(target), limits(a.type)
        a = minimum(maximum(a, max(low, least)), min(high, greatest))
    return resize(a, target)


@op(
    "cvt.rnd{.ftz}{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    rnd=ROUNDINGS,
    dtype=("f32",),
    type=CONVERTED,
)
@op(
    "cvt.rnd{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    rnd=ROUNDINGS,
    dtype=("f64",),
    type=CONVERTED,
)
def integer_to_float(m: Modifiers, a: Term) -> Term:
    """d = a, rounded                               PTX ISA, Data Movement and Conversion: cvt"""
    return result(m, int_to_float(a, m.scalar("dtype"), rounding(m)))


@op(
    "cvt.irnd{.ftz}{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    irnd=INTEGRAL_ROUNDINGS,
    dtype=CONVERTED,
    type=("f32",),
)
@op(
    "cvt.irnd{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    irnd=INTEGRAL_ROUNDINGS,
    dtype=CONVERTED,
    type=("f64",),
)
def float_to_integer(m: Modifiers, a: Term) -> Term:
    """d = a, rounded and clamped; of a NaN, 0 or the top bit
    PTX ISA, Data Movement and Conversion: cvt"""
    target = m.scalar("dtype")
    (a,) = operands(m, a)
    value = float_to_int(round_integral(a, m.text("irnd", "")), target)
    if a.type.bits < 64 and target.bits < 64:
        return value
    return select(is_nan(a), constant(1 << (target.bits - 1), target), value)


@op(
    "cvt.rnd{.ftz}{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    rnd=ROUNDINGS,
    dtype=("f32",),
    type=("f64",),
)
@op(
    "cvt{.ftz}{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    dtype=("f64",),
    type=("f32",),
)
def float_to_other_float(m: Modifiers, a: Term) -> Term:
    """d = a, rounded; .ftz is about its .f32 side  PTX ISA, Data Movement and Conversion: cvt"""
    source = operands(m, a)[0] if a.type.bits == 32 else a
    target = m.scalar("dtype")
    return result(m, float_to_float(source, target, rounding(m)))


@op(
    "cvt{.irnd}{.ftz}{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    irnd=INTEGRAL_ROUNDINGS,
    dtype=("f32",),
    type=("f32",),
)
@op(
    "cvt{.irnd}{.sat}.dtype.type",
    dst="d:dtype",
    src="a:type",
    unit=Unit.CONVERT,
    irnd=INTEGRAL_ROUNDINGS,
    dtype=("f64",),
    type=("f64",),
)
def float_to_same_float(m: Modifiers, a: Term) -> Term:
    """d = a, rounded to an integral value          PTX ISA, Data Movement and Conversion: cvt"""
    (a,) = operands(m, a)
    return result(m, round_integral(a, m.text("irnd", "")) if m["irnd"] else a)


@op(
    "mov.type",
    dst="d:type",
    src="a:type",
    unit=Unit.MOVE,
    type=("pred", *BITS, *INTEGERS, *FLOATS),
)
def mov(_: Modifiers, a: Term) -> Term:
    """d = a                                        PTX ISA, Data Movement and Conversion: mov"""
    return a


declare(
    "cvta{.to}.space.size",
    dst="d:size",
    src="a:size",
    unit=Unit.CONVERT,
    doc="""d = a as a generic address; with .to, a generic address as one of the space
    PTX ISA, Data Movement and Conversion: cvta""",
    space=("const", "global", "local", "shared", "shared::cta", "shared::cluster"),
    size=("u32", "u64"),
)
