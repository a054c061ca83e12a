"""Conversions and moves: PTX ISA, "Data Movement and Conversion Instructions: cvt, mov, cvta".

`mov` of the address of a symbol, `mov` between a vector and its parts, and `cvta` depend on where
things lie and on registers' widths: the machines know them by name.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.types import U16, ScalarType
from warploom.isa.kinds import OpKind
from warploom.isa.narrow import HALVES, integer_to_odd, narrowed, wide
from warploom.isa.ops.common import BITS, FLOATS, INTEGERS, clamping, operands, result, rounding
from warploom.isa.spec import Modifiers, Semantics, Unit, declare, op
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
    reinterpret,
    resize,
    round_integral,
    saturate,
    select,
    truncate,
)

CONVERTED = ("u8", "s8", *INTEGERS)
NARROW = ("f16", "bf16")


def cvt(
    line: str, to: tuple[str, ...], of: tuple[str, ...], **choices: tuple[str, ...]
) -> Callable[[Semantics], Semantics]:
    """Declares a syntax line of `cvt`: its modifiers, and which types it converts to and from."""
    names = {"rnd": ROUNDINGS, "irnd": INTEGRAL_ROUNDINGS} | choices | {"dtype": to, "type": of}
    return op(f"cvt{line}.dtype.type", dst="d:dtype", src="a:type", unit=Unit.CONVERT, **names)


def limits(type: ScalarType) -> tuple[int, int]:
    """Returns the least and the greatest value of an integer type."""
    top = (1 << (type.bits - 1 if type.is_signed else type.bits)) - 1
    return (-top - 1 if type.is_signed else 0), top


def number(m: Modifiers, a: Term) -> Term:
    """Returns a float operand as an .f32 or .f64; `.ftz` is about an .f32."""
    if a.type in HALVES:
        return wide(a, HALVES[a.type])
    return operands(m, a)[0] if a.type.bits == 32 else a


def as_half(m: Modifiers, value: Term) -> Term:
    """Returns a value as the .f16 or .bf16 that is written."""
    target = m.scalar("dtype")
    value = saturate(value) if "sat" in m else value
    bits = narrowed(value, HALVES[target], rounding(m), **clamping(m))
    return reinterpret(truncate(bits, U16), target)


@cvt("{.sat}", CONVERTED, CONVERTED)
def integer_to_integer(m: Modifiers, a: Term) -> Term:
    """d = a, extended or truncated, or clamped with .sat
    PTX ISA, Data Movement and Conversion: cvt"""
    target = m.scalar("dtype")
    if "sat" in m:
        (low, high), (least, greatest) = limits(target), limits(a.type)
        a = minimum(maximum(a, max(low, least)), min(high, greatest))
    return resize(a, target)


@cvt(".rnd{.ftz}{.sat}", ("f32",), CONVERTED)
@cvt(".rnd{.sat}", ("f16", "f64"), CONVERTED)
@cvt(".rnd", ("bf16",), INTEGERS)
def integer_to_float(m: Modifiers, a: Term) -> Term:
    """d = a, rounded                               PTX ISA, Data Movement and Conversion: cvt"""
    if m.scalar("dtype") in HALVES:
        return as_half(m, integer_to_odd(a))
    return result(m, int_to_float(a, m.scalar("dtype"), rounding(m)))


@cvt(".irnd{.ftz}{.sat}", CONVERTED, ("f32",))
@cvt(".irnd{.sat}", CONVERTED, ("f16", "f64"))
@cvt(".irnd", INTEGERS, ("bf16",))
def float_to_integer(m: Modifiers, a: Term) -> Term:
    """d = a, rounded and clamped; a NaN gives 0, or only the top bit set
    PTX ISA, Data Movement and Conversion: cvt"""
    target, a = m.scalar("dtype"), number(m, a)
    value = float_to_int(round_integral(a, m.text("irnd", "")), target)
    if a.type.bits < 64 and target.bits < 64:
        return value
    return select(is_nan(a), constant(1 << (target.bits - 1), target), value)


@cvt(".rnd{.ftz}{.sat}", ("f32",), ("f64",))
@cvt("{.ftz}{.sat}", ("f64",), ("f32",))
@cvt("{.ftz}{.sat}", ("f32",), ("f16",))
@cvt("{.sat}", ("f64",), ("f16",))
@cvt("{.rnd}{.ftz}", ("f32",), ("bf16",))
@cvt("{.rnd}", ("f64",), ("bf16",))
def float_to_other_float(m: Modifiers, a: Term) -> Term:
    """d = a, rounded; .ftz applies to the .f32 side  PTX ISA, Data Movement and Conversion: cvt"""
    value = float_to_float(number(m, a), m.scalar("dtype"), rounding(m))
    return value if keeps_nan(m, a) else result(m, value)


def keeps_nan(m: Modifiers, a: Term) -> bool:
    """Returns whether a conversion gives a NaN with the operand's sign and payload: an H200 turns
    the .f32 ffc12345 into the .f64 fff82468a0000000."""
    return a.type.bits == 32 and m.scalar("dtype").bits == 64 and "sat" not in m


@cvt(".rnd{.ftz}{.sat}", ("f16",), ("f32",))
@cvt(".rnd{.sat}", ("f16",), ("f64",))
@cvt("{.rnd}", ("f16",), ("bf16",))
@cvt(".rnd{.ftz}", ("bf16",), ("f32",))
@cvt("{.rnd}", ("bf16",), ("f16",))
@cvt(".rnd", ("bf16",), ("f64",))
@cvt(".rnd.relu", NARROW, ("f32",), rnd=("rn", "rz"))
@cvt(".rnd{.relu}.satfinite", NARROW, ("f32",), rnd=("rn", "rz"))
@cvt(".rnd.satfinite.relu", NARROW, ("f32",), rnd=("rn", "rz"))
def float_to_half(m: Modifiers, a: Term) -> Term:
    """d = a, rounded; .relu replaces negative results by 0; .satfinite clamps to the finite range
    PTX ISA, Data Movement and Conversion: cvt"""
    return as_half(m, number(m, a))


@cvt("{.irnd}{.ftz}{.sat}", ("f32",), ("f32",))
@cvt("{.irnd}{.sat}", ("f64",), ("f64",))
@cvt("{.irnd}{.sat}", ("f16",), ("f16",))
@cvt("{.irnd}", ("bf16",), ("bf16",))
def float_to_same_float(m: Modifiers, a: Term) -> Term:
    """d = a, rounded to an integral value          PTX ISA, Data Movement and Conversion: cvt"""
    half, value = a.type in HALVES, number(m, a)
    if m["irnd"]:
        value = round_integral(value, m.text("irnd", ""))
    return as_half(m, value) if half else result(m, value)


@op(
    "mov.type",
    OpKind.MOVE,
    dst="d:type",
    src="a:type",
    unit=Unit.MOVE,
    type=("pred", *BITS, *INTEGERS, *FLOATS),
)
@op("mov.type", OpKind.MOVE, dst="d:type", src="a:type", unit=Unit.MOVE, type=("b128",))
def mov(_: Modifiers, a: Term) -> Term:
    """d = a                                        PTX ISA, Data Movement and Conversion: mov"""
    return a


@op(
    "mov.vec.type",
    OpKind.MOVE,
    dst="d:type*2",
    src="a:type*2",
    unit=Unit.MOVE,
    vec=("v2",),
    type=("b16", "b32", "b64", *INTEGERS, "f32", "f64"),
)
@op(
    "mov.vec.type",
    OpKind.MOVE,
    dst="d:type*4",
    src="a:type*4",
    unit=Unit.MOVE,
    vec=("v4",),
    type=("b16", "b32", "u16", "u32", "s16", "s32", "f32"),
)
def mov_vector(_: Modifiers, *elements: Term) -> tuple[Term, ...]:
    """d = a, element by element                    PTX ISA, Operands: Vectors as Operands"""
    return elements


declare(
    "cvta{.to}.space.size",
    OpKind.CONVERT_ADDRESS,
    dst="d:size",
    src="a:size",
    unit=Unit.CONVERT,
    doc="""d = a, converted from an address in .space to a generic address; with .to, the reverse
    PTX ISA, Data Movement and Conversion: cvta""",
    space=(
        *("const", "global", "local", "param", "param::entry"),
        *("shared", "shared::cta", "shared::cluster"),
    ),
    size=("u32", "u64"),
)
