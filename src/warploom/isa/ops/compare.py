"""Comparison and selection: PTX ISA, "Comparison and Selection Instructions"."""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.types import PACKED, PRED, U16, ScalarType
from warploom.isa.kinds import OpKind
from warploom.isa.ops.common import BITS, FLOATS, INTEGERS, any_of, operands
from warploom.isa.ops.half import values
from warploom.isa.spec import Modifiers, Semantics, Unit, op
from warploom.isa.terms import (
    Term,
    compare,
    constant,
    is_nan,
    pack,
    parts,
    select,
)

EQUALITY = ("eq", "ne")
ORDER = (*EQUALITY, "lt", "le", "gt", "ge")
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOAT_ORDER = (*ORDER, *(f"{name}u" for name in ORDER), "num", "nan")
BOOLEAN = ("and", "or", "xor")
VALUES = (*BITS, *INTEGERS, *FLOATS)
SET_TYPES = ("u32", "s32", "f32")

Families = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
"""The relations of some types; `.ftz` where they take it."""

SIGNED_TYPES, UNSIGNED_TYPES = ("s16", "s32", "s64"), ("u16", "u32", "u64")
INTEGRAL: Families = (
    ("", EQUALITY, BITS),
    ("", ORDER, SIGNED_TYPES),
    ("", (*ORDER, *UNSIGNED), UNSIGNED_TYPES),
)
SCALARS: Families = (*INTEGRAL, ("{.ftz}", FLOAT_ORDER, ("f32",)), ("", FLOAT_ORDER, ("f64",)))
HALVES: Families = (("{.ftz}", FLOAT_ORDER, ("f16",)), ("", FLOAT_ORDER, ("bf16",)))
HALF_PAIR: Families = (("{.ftz}", FLOAT_ORDER, ("f16x2",)),)
BRAIN_PAIR: Families = (("", FLOAT_ORDER, ("bf16x2",)),)
TO_HALF: Families = (*SCALARS, ("{.ftz}", FLOAT_ORDER, ("f16",)))
TO_BRAIN: Families = (*INTEGRAL, ("", FLOAT_ORDER, ("f16", "bf16", "f32", "f64")))
INTEGER_RESULTS = ("u16", "s16", "u32", "s32")
HALF_RESULTS, BRAIN_RESULTS = ("f16x2", "u32", "s32"), ("bf16x2", "u32", "s32")
JOINS = {"bool": BOOLEAN}
ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
"""The bits of 1.0."""


def holds(m: Modifiers, a: Term, b: Term) -> Term:
    """Returns whether a and b stand in the relation that the modifiers name."""
    name = m.text("cmp", "")
    if not a.type.is_float:
        return compare(UNSIGNED.get(name, name), a, b)
    a, b = values(m, a, b) if a.type.bits == 16 else operands(m, a, b)
    unordered = any_of(is_nan(a), is_nan(b))
    if name in ("num", "nan"):
        return unordered if name == "nan" else ~unordered
    ordered = compare(name[:2], a, b)
    return any_of(ordered, unordered) if name.endswith("u") else ordered


def combined(m: Modifiers, condition: Term, c: Term) -> Term:
    """Returns `condition` joined with the third operand by `.and`, `.or` or `.xor`."""
    return Term(m.text("bool", ""), PRED, (condition, c))


def as_value(type: ScalarType, condition: Term) -> Term:
    """Returns what `set` writes: all ones or 1.0 for true, zeros for false."""
    return select(condition, constant(ONE.get(type.name, -1), type), 0)


def comparison(
    syntax: str, dst: str, src: str, families: Families, **choices: tuple[str, ...]
) -> Callable[[Semantics], Semantics]:
    """Declares an instruction that compares, for each family of types and its relations.

    `{ftz}` in the syntax is where floats take that modifier.
    """

    kind = OpKind.COMPARE if syntax.startswith("setp") else OpKind.COMPUTE

    def register(semantics: Semantics) -> Semantics:
        """Declares a syntax line for each family."""
        for ftz, relations, types in families:
            line = syntax.replace("{ftz}", ftz)
            names = {"cmp": relations, "type": types, **choices}
            op(line, kind, dst=dst, src=src, unit=Unit.LOGIC, **names)(semantics)
        return semantics

    return register


COMPARED, JOINED = "a:type, b:type", "a:type, b:type, c:pred"


@comparison("setp.cmp{ftz}.type", "p:pred", COMPARED, SCALARS)
def setp(m: Modifiers, a: Term, b: Term) -> tuple[Term, Term]:
    """p = a cmp b; q = !p                          PTX ISA, Comparison and Selection: setp"""
    condition = holds(m, a, b)
    return condition, ~condition


@comparison("setp.cmp.bool{ftz}.type", "p:pred", JOINED, SCALARS, bool=BOOLEAN)
def setp_bool(m: Modifiers, a: Term, b: Term, c: Term) -> tuple[Term, Term]:
    """p = (a cmp b) bool c; q = !(a cmp b) bool c  PTX ISA, Comparison and Selection: setp"""
    condition = holds(m, a, b)
    return combined(m, condition, c), combined(m, ~condition, c)


@comparison("setp.cmp{ftz}.type", "p:pred", COMPARED, HALVES)
def setp_half(m: Modifiers, a: Term, b: Term) -> Term:
    """p = a cmp b                                  PTX ISA, Half Precision Comparison: setp"""
    return holds(m, a, b)


@comparison("setp.cmp.bool{ftz}.type", "p:pred", JOINED, HALVES, bool=BOOLEAN)
def setp_half_bool(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """p = (a cmp b) bool c                         PTX ISA, Half Precision Comparison: setp"""
    return combined(m, holds(m, a, b), c)


@comparison("setp.cmp{ftz}.type", "p:pred", COMPARED, (*HALF_PAIR, *BRAIN_PAIR))
def setp_pair(m: Modifiers, a: Term, b: Term) -> tuple[Term, ...]:
    """p = a cmp b for the low halves; q = a cmp b for the high halves
    PTX ISA, Half Precision Comparison: setp"""
    return tuple(holds(m, x, y) for x, y in by_halves(m, a, b))


@comparison("setp.cmp.bool{ftz}.type", "p:pred", JOINED, (*HALF_PAIR, *BRAIN_PAIR), bool=BOOLEAN)
def setp_pair_bool(m: Modifiers, a: Term, b: Term, c: Term) -> tuple[Term, ...]:
    """p = (a cmp b) bool c for the low halves; q = (a cmp b) bool c for the high halves
    PTX ISA, Half Precision Comparison: setp"""
    return tuple(combined(m, holds(m, x, y), c) for x, y in by_halves(m, a, b))


def by_halves(m: Modifiers, a: Term, b: Term) -> list[tuple[Term, Term]]:
    """Returns the low halves of a and b, then the high ones."""
    type, _ = PACKED[m.scalar()]
    return list(zip(parts(a, type), parts(b, type), strict=True))


@comparison("set.cmp{ftz}.dtype.type", "d:dtype", COMPARED, SCALARS, dtype=SET_TYPES)
@comparison("set.cmp{ftz}.dtype.type", "d:dtype", COMPARED, HALVES, dtype=INTEGER_RESULTS)
@comparison("set.cmp{ftz}.dtype.type", "d:dtype", COMPARED, TO_HALF, dtype=("f16",))
@comparison("set.cmp{ftz}.dtype.type", "d:dtype", COMPARED, TO_BRAIN, dtype=("bf16",))
def set_value(m: Modifiers, a: Term, b: Term) -> Term:
    """d = (a cmp b) ? ~0 or 1.0 : 0                PTX ISA, Comparison and Selection: set"""
    return as_value(m.scalar("dtype"), holds(m, a, b))


@comparison("set.cmp.bool{ftz}.dtype.type", "d:dtype", JOINED, SCALARS, dtype=SET_TYPES, **JOINS)
@comparison(
    "set.cmp.bool{ftz}.dtype.type", "d:dtype", JOINED, HALVES, dtype=INTEGER_RESULTS, **JOINS
)
@comparison("set.cmp.bool{ftz}.dtype.type", "d:dtype", JOINED, TO_HALF, dtype=("f16",), **JOINS)
@comparison("set.cmp.bool{ftz}.dtype.type", "d:dtype", JOINED, TO_BRAIN, dtype=("bf16",), **JOINS)
def set_value_bool(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = ((a cmp b) bool c) ? ~0 or 1.0 : 0       PTX ISA, Comparison and Selection: set"""
    return as_value(m.scalar("dtype"), combined(m, holds(m, a, b), c))


@comparison("set.cmp{ftz}.dtype.type", "d:dtype", COMPARED, HALF_PAIR, dtype=HALF_RESULTS)
@comparison("set.cmp{ftz}.dtype.type", "d:dtype", COMPARED, BRAIN_PAIR, dtype=BRAIN_RESULTS)
def set_pair(m: Modifiers, a: Term, b: Term) -> Term:
    """d = (a cmp b) ? ~0 or 1.0 : 0 in each half   PTX ISA, Half Precision Comparison: set"""
    return pair_value(m, [holds(m, x, y) for x, y in by_halves(m, a, b)])


@comparison(
    "set.cmp.bool{ftz}.dtype.type", "d:dtype", JOINED, HALF_PAIR, dtype=HALF_RESULTS, **JOINS
)
@comparison(
    "set.cmp.bool{ftz}.dtype.type", "d:dtype", JOINED, BRAIN_PAIR, dtype=BRAIN_RESULTS, **JOINS
)
def set_pair_bool(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = ((a cmp b) bool c) ? ~0 or 1.0 : 0 in each half
    PTX ISA, Half Precision Comparison: set"""
    return pair_value(m, [combined(m, holds(m, x, y), c) for x, y in by_halves(m, a, b)])


def pair_value(m: Modifiers, conditions: list[Term]) -> Term:
    """Returns what `set` writes for two halves."""
    whole = m.scalar("dtype")
    type, _ = PACKED.get(whole, (U16, 2))
    return pack([as_value(type, condition) for condition in conditions], whole)


@op(
    "selp.type",
    dst="d:type",
    src="a:type, b:type, c:pred",
    unit=Unit.LOGIC,
    type=VALUES,
)
def selp(_: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c ? a : b                                PTX ISA, Comparison and Selection: selp"""
    return select(c, a, b)


@op(
    "slct.dtype.type",
    dst="d:dtype",
    src="a:dtype, b:dtype, c:type",
    unit=Unit.LOGIC,
    dtype=VALUES,
    type=("s32",),
)
@op(
    "slct{.ftz}.dtype.type",
    dst="d:dtype",
    src="a:dtype, b:dtype, c:type",
    unit=Unit.LOGIC,
    dtype=VALUES,
    type=("f32",),
)
def slct(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = (c >= 0) ? a : b                         PTX ISA, Comparison and Selection: slct"""
    (value,) = operands(m, c)
    return select(value >= 0, a, b)
