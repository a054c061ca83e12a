"""Shared parts of the tables of instructions: lists of types, and the handling of float operands.

The instructions themselves are in the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import TypedDict

from warploom.core.types import PACKED, PRED, unsigned
from warploom.isa.spec import Modifiers
from warploom.isa.terms import (
    CANONICAL_NAN,
    Term,
    canonical,
    constant,
    float_abs,
    flush_subnormal,
    is_nan,
    pack,
    parts,
    reinterpret,
    saturate,
    select,
)

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED = ("s16", "s32", "s64")
BITS = ("b16", "b32", "b64")
FLOATS = ("f32", "f64")
PACKED_INTEGERS = ("u16x2", "s16x2")


def by_part(semantics: Callable[..., Term]) -> Callable[..., Term]:
    """Returns semantics that also take packed operands: applies the given ones to each part of the
    operands, and packs the results."""

    @wraps(semantics)
    def packed(m: Modifiers, *values: Term) -> Term:
        """Applies `semantics` to the values, or to each part of them if they are packed."""
        whole = m.scalar()
        if whole not in PACKED:
            return semantics(m, *values)
        type, _ = PACKED[whole]
        columns = zip(*(parts(v, type) for v in values), strict=True)
        return pack([semantics(m, *column) for column in columns], whole)

    return packed


def operands(m: Modifiers, *values: Term) -> tuple[Term, ...]:
    """Returns float operands as the instruction reads them: with `.ftz`, subnormals as zeros."""
    return tuple(flush_subnormal(v) for v in values) if "ftz" in m else values


def result(m: Modifiers, value: Term) -> Term:
    """Returns a float result as it is written: with `.ftz`, a subnormal as zero; then with `.sat`,
    clamped to [0, 1] and a NaN as 0, else any NaN as the canonical one."""
    if "ftz" in m:
        value = flush_subnormal(value)
    return saturate(value) if "sat" in m else canonical(value)


class Clamping(TypedDict):
    """The treatment of numbers that are too large or negative by `narrow.narrowed`."""

    finite: bool
    relu: bool


def clamping(m: Modifiers) -> Clamping:
    """Returns how to narrow numbers that are too large (`.satfinite`) or negative (`.relu`)."""
    return {"finite": "satfinite" in m, "relu": "relu" in m}


def rounding(m: Modifiers) -> str:
    """Returns the rounding mode; nearest even where none is written."""
    return m.text("rnd", "rn")


def nan_like(value: Term) -> Term:
    """Returns the canonical NaN in the type of `value`."""
    return constant(CANONICAL_NAN[value.type.bits], value.type)


def sign_bit(a: Term) -> Term:
    """Returns the sign bit of a float at its place, all other bits 0, as an integer of its
    width."""
    return reinterpret(a, unsigned(a.type.bits)) & (1 << (a.type.bits - 1))


def extreme(m: Modifiers, choose: Callable[[Term, Term], Term], *values: Term) -> Term:
    """Returns the least or the greatest of float values, by `choose`. `.abs` compares their
    absolute values; with `.NaN` the result is NaN if any value is, else only if all are; `.xorsign`
    sets its sign to the exclusive or of their signs."""
    sizes = [float_abs(v) for v in values] if "abs" in m else list(values)
    found = canonical(reduce(choose, sizes))
    if "xorsign" in m:
        sign = reduce(Term.__xor__, (sign_bit(v) for v in values))
        signed = reinterpret(reinterpret(found, sign.type) | sign, found.type)
        found = select(is_nan(found), found, signed)
    if "NaN" in m:
        found = select(any_of(*(is_nan(v) for v in values)), nan_like(found), found)
    return found


def any_of(*conditions: Term) -> Term:
    """Returns whether any of the predicates is true."""
    found = conditions[0]
    for condition in conditions[1:]:
        found = Term("or", PRED, (found, condition))
    return found
