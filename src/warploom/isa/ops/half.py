"""Arithmetic on .f16 and .bf16, alone and in pairs: PTX ISA, "Half Precision Floating Point
Instructions" and "Mixed Precision Floating Point Instructions".

The numbers are computed wider and rounded once. A sum, a difference or a product of two of them in
.f32 may be rounded a second time without harm: its 24 bits are at least twice theirs and two more
(Figueroa, "When Is Double Rounding Innocuous?", 1995). A fused multiply-add is not so lucky; see
`narrow.multiply_add`.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.types import U16, ScalarType, unsigned
from warploom.isa.narrow import HALVES, flush_narrow, multiply_add, narrowed, wide
from warploom.isa.ops.approximate import exp2, tanh_of
from warploom.isa.ops.common import by_part, extreme, result, rounding
from warploom.isa.spec import Modifiers, Unit, op
from warploom.isa.terms import (
    ROUNDINGS,
    Term,
    float_max,
    float_min,
    float_op,
    is_nan,
    reinterpret,
    saturate,
    select,
    truncate,
)

HALF_TYPES, BRAIN_TYPES = ("f16", "f16x2"), ("bf16", "bf16x2")
NEAREST = ("rn",)
ONE, TWO, THREE = "a:type", "a:type, b:type", "a:type, b:type, c:type"


Function = Callable[..., Term]


def forms(
    half: tuple[str, ...], brain: tuple[str, ...], src: str
) -> Callable[[Function], Function]:
    """Declares syntax lines of .f16 and of .bf16, each with its packed type."""

    def register(semantics: Function) -> Function:
        """Declares the syntax lines of .f16 and of .bf16, each also for packed operands."""
        packed = by_part(semantics)
        for lines, types in ((half, HALF_TYPES), (brain, BRAIN_TYPES)):
            for line in lines:
                names = {"rnd": NEAREST, "type": types}
                op(line, dst="d:type", src=src, unit=Unit.FLOAT, **names)(packed)
        return semantics

    return register


def values(m: Modifiers, *halves: Term) -> tuple[Term, ...]:
    """Returns operands as .f32; `.ftz` flushes subnormals of their own format."""
    found = tuple(wide(h, HALVES[h.type]) for h in halves)
    if "ftz" not in m:
        return found
    return tuple(flush_narrow(v, HALVES[h.type]) for v, h in zip(found, halves, strict=True))


def as_half(m: Modifiers, value: Term, type: ScalarType) -> Term:
    """Returns a result as it is written: clamped to [0, 1] or from 0 on, rounded, flushed."""
    format = HALVES[type]
    if "sat" in m:
        value = saturate(value)
    bits = narrowed(value, format, relu="relu" in m)
    if "ftz" in m:
        normal = (bits & (format.sign - 1)) >= (1 << format.fraction)
        bits = select(normal, bits, bits & format.sign)
    return reinterpret(truncate(bits, U16), type)


@forms(("add{.rnd}{.ftz}{.sat}.type",), ("add{.rnd}.type",), TWO)
def add(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a + b                                    PTX ISA, Half Precision: add"""
    return as_half(m, float_op("fadd", "rn", *values(m, a, b)), a.type)


@forms(("sub{.rnd}{.ftz}{.sat}.type",), ("sub{.rnd}.type",), TWO)
def sub(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a - b                                    PTX ISA, Half Precision: sub"""
    return as_half(m, float_op("fsub", "rn", *values(m, a, b)), a.type)


@forms(("mul{.rnd}{.ftz}{.sat}.type",), ("mul{.rnd}.type",), TWO)
def mul(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a * b                                    PTX ISA, Half Precision: mul"""
    return as_half(m, float_op("fmul", "rn", *values(m, a, b)), a.type)


@forms(
    ("fma.rnd{.ftz}{.sat}.type", "fma.rnd{.ftz}.relu.type"),
    ("fma.rnd{.relu}.type",),
    THREE,
)
def fma(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = a * b + c, rounded once                  PTX ISA, Half Precision: fma"""
    return as_half(m, multiply_add(*values(m, a, b, c)), a.type)


@forms(("neg{.ftz}.type",), ("neg.type",), ONE)
def negate(m: Modifiers, a: Term) -> Term:
    """d = -a                                       PTX ISA, Half Precision: neg"""
    return signless(m, a, lambda bits, sign: bits ^ sign)


@forms(("abs{.ftz}.type",), ("abs.type",), ONE)
def absolute(m: Modifiers, a: Term) -> Term:
    """d = |a|                                      PTX ISA, Half Precision: abs"""
    return signless(m, a, lambda bits, sign: bits & ~sign)


def signless(m: Modifiers, a: Term, change: Callable[[Term, Term], Term]) -> Term:
    """Returns `a` with its sign bit changed by `change` and all other bits kept, also those of a
    NaN; with `.ftz`, of a subnormal only the sign is kept before."""
    bits, format = reinterpret(a, unsigned(16)), HALVES[a.type]
    sign = Term("const", bits.type, (), format.sign)
    if "ftz" in m:
        normal = (bits & (format.sign - 1)) >= (1 << format.fraction)
        bits = select(normal, bits, bits & format.sign)
    return reinterpret(change(bits, sign), a.type)


@forms(
    ("min{.ftz}{.NaN}.type", "min{.ftz}{.NaN}.xorsign.abs.type"),
    ("min{.NaN}.type", "min{.NaN}.xorsign.abs.type"),
    TWO,
)
def smaller(m: Modifiers, a: Term, b: Term) -> Term:
    """d = min(a, b); a NaN operand is ignored, or returned if .NaN is given
    PTX ISA, Half Precision: min"""
    return as_half(m, extreme(m, float_min, *values(m, a, b)), a.type)


@forms(
    ("max{.ftz}{.NaN}.type", "max{.ftz}{.NaN}.xorsign.abs.type"),
    ("max{.NaN}.type", "max{.NaN}.xorsign.abs.type"),
    TWO,
)
def larger(m: Modifiers, a: Term, b: Term) -> Term:
    """d = max(a, b); a NaN operand is ignored, or returned if .NaN is given
    PTX ISA, Half Precision: max"""
    return as_half(m, extreme(m, float_max, *values(m, a, b)), a.type)


@forms(("ex2.approx.type",), ("ex2.approx.ftz.type",), ONE)
def ex2(m: Modifiers, a: Term) -> Term:
    """d = 2^a                                      PTX ISA, Half Precision: ex2"""
    (value,) = values(m, a)
    return as_half(m, select(is_nan(value), value, exp2(value)), a.type)


@forms(("tanh.approx.type",), ("tanh.approx.type",), ONE)
def tanh(m: Modifiers, a: Term) -> Term:
    """d = tanh(a)                                  PTX ISA, Half Precision: tanh"""
    (value,) = values(m, a)
    return as_half(m, select(is_nan(value), value, tanh_of(value)), a.type)


# ---- mixed precision ----------------------------------------------------------------------------

MIXED = {"rnd": ROUNDINGS, "atype": ("f16", "bf16")}


@op("add{.rnd}{.sat}.f32.atype", dst="d:f32", src="a:atype, c:f32", unit=Unit.FLOAT, **MIXED)
def add_mixed(m: Modifiers, a: Term, c: Term) -> Term:
    """d = a + c, with a in half precision          PTX ISA, Mixed Precision: add"""
    return result(m, float_op("fadd", rounding(m), wide(a, HALVES[a.type]), c))


@op("sub{.rnd}{.sat}.f32.atype", dst="d:f32", src="a:atype, c:f32", unit=Unit.FLOAT, **MIXED)
def sub_mixed(m: Modifiers, a: Term, c: Term) -> Term:
    """d = a - c, with a in half precision          PTX ISA, Mixed Precision: sub"""
    return result(m, float_op("fsub", rounding(m), wide(a, HALVES[a.type]), c))


@op(
    "fma.rnd{.sat}.f32.atype",
    dst="d:f32",
    src="a:atype, b:atype, c:f32",
    unit=Unit.FLOAT,
    **MIXED,
)
def fma_mixed(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = a * b + c, with a and b in half precision   PTX ISA, Mixed Precision: fma"""
    x, y = (wide(v, HALVES[v.type]) for v in (a, b))
    return result(m, float_op("fma", rounding(m), x, y, c))
