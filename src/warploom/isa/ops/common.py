"""What the tables of instructions share: lists of types, and how float operands come and go.

The instructions themselves are in the other modules of this package.
"""

from __future__ import annotations

from warploom.core.types import PRED
from warploom.isa.spec import Modifiers
from warploom.isa.terms import (
    CANONICAL_NAN,
    Term,
    canonical,
    constant,
    flush_subnormal,
    saturate,
)

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED = ("s16", "s32", "s64")
BITS = ("b16", "b32", "b64")
FLOATS = ("f32", "f64")


def operands(m: Modifiers, *values: Term) -> tuple[Term, ...]:
    """Float operands as the instruction sees them: `.ftz` flushes subnormals."""
    return tuple(flush_subnormal(v) for v in values) if "ftz" in m else values


def result(m: Modifiers, value: Term) -> Term:
    """A float result as it is written: flushed, then clamped to [0, 1] or with its NaN closed."""
    if "ftz" in m:
        value = flush_subnormal(value)
    return saturate(value) if "sat" in m else canonical(value)


def rounding(m: Modifiers) -> str:
    """The rounding mode; nearest even where none is written."""
    return m.text("rnd", "rn")


def nan_like(value: Term) -> Term:
    """The canonical NaN in the type of `value`."""
    return constant(CANONICAL_NAN[value.type.bits], value.type)


def any_of(*conditions: Term) -> Term:
    """True where one of the predicates is."""
    found = conditions[0]
    for condition in conditions[1:]:
        found = Term("or", PRED, (found, condition))
    return found
