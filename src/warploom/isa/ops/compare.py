"""Comparison and selection: PTX ISA, "Comparison and Selection Instructions"."""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.types import F32, PRED
from warploom.isa.ops.common import BITS, FLOATS, INTEGERS, any_of, operands
from warploom.isa.spec import Modifiers, Semantics, Unit, op
from warploom.isa.terms import Term, compare, constant, float_constant, is_nan, select

EQUALITY = ("eq", "ne")
ORDER = (*EQUALITY, "lt", "le", "gt", "ge")
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOAT_ORDER = (*ORDER, *(f"{name}u" for name in ORDER), "num", "nan")
BOOLEAN = ("and", "or", "xor")
VALUES = (*BITS, *INTEGERS, *FLOATS)
SET_TYPES = ("u32", "s32", "f32")


def holds(m: Modifiers, a: Term, b: Term) -> Term:
    """Whether a and b stand in the relation that the modifiers name."""
    name = m.text("cmp", "")
    if not a.type.is_float:
        return compare(UNSIGNED.get(name, name), a, b)
    a, b = operands(m, a, b)
    unordered = any_of(is_nan(a), is_nan(b))
    if name in ("num", "nan"):
        return unordered if name == "nan" else ~unordered
    ordered = compare(name[:2], a, b)
    return any_of(ordered, unordered) if name.endswith("u") else ordered


def combined(m: Modifiers, condition: Term, c: Term) -> Term:
    """`condition` joined with the third operand by `.and`, `.or` or `.xor`."""
    return Term(m.text("bool", ""), PRED, (condition, c))


def as_value(m: Modifiers, condition: Term) -> Term:
    """What `set` writes: all ones or 1.0 for true, zeros for false."""
    type = m.scalar("dtype")
    if type == F32:
        return select(condition, float_constant(1.0, F32), float_constant(0.0, F32))
    return select(condition, constant(-1, type), 0)


def comparison(
    syntax: str, dst: str, src: str, **choices: tuple[str, ...]
) -> Callable[[Semantics], Semantics]:
    """Declare an instruction that compares, for each family of types and its relations.

    `{ftz}` in the syntax is where floats take that modifier.
    """

    def register(semantics: Semantics) -> Semantics:
        for ftz, relations, types in (
            ("", EQUALITY, BITS),
            ("", (*ORDER, *UNSIGNED), INTEGERS),
            ("{.ftz}", FLOAT_ORDER, FLOATS),
        ):
            line = syntax.replace("{ftz}", ftz)
            names = {"cmp": relations, "type": types, **choices}
            op(line, dst=dst, src=src, unit=Unit.LOGIC, **names)(semantics)
        return semantics

    return register


@comparison("setp.cmp{ftz}.type", "p:pred", "a:type, b:type")
def setp(m: Modifiers, a: Term, b: Term) -> tuple[Term, Term]:
    """p = a cmp b; q = !p                          PTX ISA, Comparison and Selection: setp"""
    condition = holds(m, a, b)
    return condition, ~condition


@comparison("setp.cmp.bool{ftz}.type", "p:pred", "a:type, b:type, c:pred", bool=BOOLEAN)
def setp_bool(m: Modifiers, a: Term, b: Term, c: Term) -> tuple[Term, Term]:
    """p = (a cmp b) bool c; q = !(a cmp b) bool c  PTX ISA, Comparison and Selection: setp"""
    condition = holds(m, a, b)
    return combined(m, condition, c), combined(m, ~condition, c)


@comparison("set.cmp{ftz}.dtype.type", "d:dtype", "a:type, b:type", dtype=SET_TYPES)
def set_value(m: Modifiers, a: Term, b: Term) -> Term:
    """d = (a cmp b) ? ~0 or 1.0 : 0                PTX ISA, Comparison and Selection: set"""
    return as_value(m, holds(m, a, b))


@comparison(
    "set.cmp.bool{ftz}.dtype.type",
    "d:dtype",
    "a:type, b:type, c:pred",
    bool=BOOLEAN,
    dtype=SET_TYPES,
)
def set_value_bool(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = ((a cmp b) bool c) ? ~0 or 1.0 : 0       PTX ISA, Comparison and Selection: set"""
    return as_value(m, combined(m, holds(m, a, b), c))


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
