"""Integer arithmetic: PTX ISA, "Integer Arithmetic Instructions".

The forms that carry through the condition code are in `carry.py`, dot products in `dot.py`.
"""

from __future__ import annotations

from warploom.core.types import ScalarType, unsigned
from warploom.isa.ops.common import INTEGERS, PACKED_INTEGERS, SIGNED, by_part
from warploom.isa.spec import Modifiers, Unit, op
from warploom.isa.terms import (
    Term,
    constant,
    divide,
    high,
    maximum,
    minimum,
    remainder,
    select,
    shift_left,
    shift_right,
    truncate,
    widen,
)

WIDENABLE = ("u16", "u32", "s16", "s32")
WORDS = ("u32", "s32")
RECTIFIABLE = ("s32", "s16x2")
UNRECTIFIABLE = ("u16", "u32", "u64", "s16", "s64", "u16x2")


def clamp_to(value: Term, type: ScalarType) -> Term:
    """Returns a wider signed `value`, clamped to the range of the signed `type`."""
    top = (1 << (type.bits - 1)) - 1
    return truncate(minimum(maximum(value, -top - 1), top), type)


@op("add.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=PACKED_INTEGERS)
@by_part
def add_packed(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a + b for each half                      PTX ISA, Integer Arithmetic: add"""
    return a + b


@op("add.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=INTEGERS)
def add(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a + b                                    PTX ISA, Integer Arithmetic: add"""
    return a + b


@op("add.sat.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=("s32",))
def add_sat(m: Modifiers, a: Term, b: Term) -> Term:
    """d = clamp(a + b)                             PTX ISA, Integer Arithmetic: add"""
    return clamp_to(widen(a) + widen(b), m.scalar())


@op("sub.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=INTEGERS)
def sub(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a - b                                    PTX ISA, Integer Arithmetic: sub"""
    return a - b


@op("sub.sat.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=("s32",))
def sub_sat(m: Modifiers, a: Term, b: Term) -> Term:
    """d = clamp(a - b)                             PTX ISA, Integer Arithmetic: sub"""
    return clamp_to(widen(a) - widen(b), m.scalar())


@op("mul.lo.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=INTEGERS)
def mul_lo(_: Modifiers, a: Term, b: Term) -> Term:
    """d = low half of a * b                        PTX ISA, Integer Arithmetic: mul"""
    return a * b


@op("mul.hi.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=INTEGERS)
def mul_hi(_: Modifiers, a: Term, b: Term) -> Term:
    """d = high half of a * b                       PTX ISA, Integer Arithmetic: mul"""
    return high(widen(a) * widen(b))


@op("mul.wide.type", dst="d:wide", src="a:type, b:type", unit=Unit.INTEGER, type=WIDENABLE)
def mul_wide(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a * b in full width                      PTX ISA, Integer Arithmetic: mul"""
    return widen(a) * widen(b)


@op("mad.lo.type", dst="d:type", src="a:type, b:type, c:type", unit=Unit.INTEGER, type=INTEGERS)
def mad_lo(_: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = low half of (a * b) + c                  PTX ISA, Integer Arithmetic: mad"""
    return a * b + c


@op("mad.hi.type", dst="d:type", src="a:type, b:type, c:type", unit=Unit.INTEGER, type=INTEGERS)
def mad_hi(_: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = high half of (a * b) + c                 PTX ISA, Integer Arithmetic: mad"""
    return high(widen(a) * widen(b)) + c


@op("mad.hi.sat.type", dst="d:type", src="a:type, b:type, c:type", unit=Unit.INTEGER, type=("s32",))
def mad_hi_sat(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = clamp(high half of (a * b) + c)          PTX ISA, Integer Arithmetic: mad"""
    return clamp_to(widen(high(widen(a) * widen(b))) + widen(c), m.scalar())


@op("mad.wide.type", dst="d:wide", src="a:type, b:type, c:wide", unit=Unit.INTEGER, type=WIDENABLE)
def mad_wide(_: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c + a * b in full width                  PTX ISA, Integer Arithmetic: mad"""
    return widen(a) * widen(b) + c


def product24(a: Term, b: Term) -> Term:
    """Returns the 48-bit product of the low 24 bits of two words, in 64 bits."""
    return widen(_low24(a)) * widen(_low24(b))


def _low24(a: Term) -> Term:
    """Returns the low 24 bits as a word, extended by sign or zeros as the type of `a` says."""
    eight = constant(8, unsigned(32))
    return shift_right(shift_left(a, eight), eight)


def high24(product: Term, type: ScalarType) -> Term:
    """Returns bits 16 to 47 of a 48-bit product."""
    return truncate(shift_right(product, constant(16, unsigned(32))), type)


@op("mul24.lo.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=WORDS)
def mul24_lo(m: Modifiers, a: Term, b: Term) -> Term:
    """d = low 32 bits of a[23..0] * b[23..0]       PTX ISA, Integer Arithmetic: mul24"""
    return truncate(product24(a, b), m.scalar())


@op("mul24.hi.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=WORDS)
def mul24_hi(m: Modifiers, a: Term, b: Term) -> Term:
    """d = bits 47..16 of a[23..0] * b[23..0]       PTX ISA, Integer Arithmetic: mul24"""
    return high24(product24(a, b), m.scalar())


@op("mad24.lo.type", dst="d:type", src="a:type, b:type, c:type", unit=Unit.INTEGER, type=WORDS)
def mad24_lo(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c + low 32 bits of a[23..0] * b[23..0]   PTX ISA, Integer Arithmetic: mad24"""
    return truncate(product24(a, b), m.scalar()) + c


@op("mad24.hi.type", dst="d:type", src="a:type, b:type, c:type", unit=Unit.INTEGER, type=WORDS)
def mad24_hi(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c + bits 47..16 of a[23..0] * b[23..0]   PTX ISA, Integer Arithmetic: mad24"""
    return high24(product24(a, b), m.scalar()) + c


@op(
    "mad24.hi.sat.type",
    dst="d:type",
    src="a:type, b:type, c:type",
    unit=Unit.INTEGER,
    type=("s32",),
)
def mad24_hi_sat(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = clamp(c + bits 47..16 of a[23..0] * b[23..0])  PTX ISA, Integer Arithmetic: mad24"""
    product = shift_right(product24(a, b), constant(16, unsigned(32)))
    return clamp_to(widen(truncate(product, m.scalar())) + widen(c), m.scalar())


@op("sad.type", dst="d:type", src="a:type, b:type, c:type", unit=Unit.INTEGER, type=INTEGERS)
def sad(_: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c + |a - b|                              PTX ISA, Integer Arithmetic: sad"""
    return c + select(a < b, b - a, a - b)


@op("div.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=INTEGERS)
def div(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a / b, rounded towards zero              PTX ISA, Integer Arithmetic: div"""
    return divide(a, b)


@op("rem.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=INTEGERS)
def rem(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a - (a / b) * b                          PTX ISA, Integer Arithmetic: rem"""
    return remainder(a, b)


@op("abs.type", dst="d:type", src="a:type", unit=Unit.INTEGER, type=SIGNED)
def absolute(_: Modifiers, a: Term) -> Term:
    """d = |a|                                      PTX ISA, Integer Arithmetic: abs"""
    return maximum(a, -a)


@op("neg.type", dst="d:type", src="a:type", unit=Unit.INTEGER, type=SIGNED)
def negate(_: Modifiers, a: Term) -> Term:
    """d = -a                                       PTX ISA, Integer Arithmetic: neg"""
    return -a


@op("min.relu.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=RECTIFIABLE)
@op("min.type{.relu}", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=RECTIFIABLE)
@op("min.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=UNRECTIFIABLE)
@by_part
def smaller(m: Modifiers, a: Term, b: Term) -> Term:
    """d = min(a, b), but 0 with .relu if the minimum is negative; for packed types, in each half
    PTX ISA, Integer Arithmetic: min"""
    return maximum(minimum(a, b), 0) if "relu" in m else minimum(a, b)


@op("max.relu.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=RECTIFIABLE)
@op("max.type{.relu}", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=RECTIFIABLE)
@op("max.type", dst="d:type", src="a:type, b:type", unit=Unit.INTEGER, type=UNRECTIFIABLE)
@by_part
def larger(m: Modifiers, a: Term, b: Term) -> Term:
    """d = max(a, b), but 0 with .relu if the maximum is negative; for packed types, in each half
    PTX ISA, Integer Arithmetic: max"""
    return maximum(maximum(a, b), 0) if "relu" in m else maximum(a, b)
