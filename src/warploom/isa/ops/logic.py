"""Logic and shifts: PTX ISA, "Logic and Shift Instructions"."""

from __future__ import annotations

from warploom.core.types import B32, PRED, U32, U64
from warploom.isa.ops.common import BITS
from warploom.isa.spec import Modifiers, Unit, op
from warploom.isa.terms import (
    Term,
    constant,
    eq,
    extend,
    high,
    minimum,
    ne,
    reinterpret,
    select,
    shift_left,
    shift_right,
    truncate,
)

LOGIC_TYPES = ("pred", *BITS)


@op("and.type", dst="d:type", src="a:type, b:type", unit=Unit.LOGIC, type=LOGIC_TYPES)
def bitwise_and(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a & b                                    PTX ISA, Logic and Shift: and"""
    return a & b


@op("or.type", dst="d:type", src="a:type, b:type", unit=Unit.LOGIC, type=LOGIC_TYPES)
def bitwise_or(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a | b                                    PTX ISA, Logic and Shift: or"""
    return a | b


@op("xor.type", dst="d:type", src="a:type, b:type", unit=Unit.LOGIC, type=LOGIC_TYPES)
def bitwise_xor(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a ^ b                                    PTX ISA, Logic and Shift: xor"""
    return a ^ b


@op("not.type", dst="d:type", src="a:type", unit=Unit.LOGIC, type=LOGIC_TYPES)
def bitwise_not(_: Modifiers, a: Term) -> Term:
    """d = ~a                                       PTX ISA, Logic and Shift: not"""
    return ~a


@op("cnot.type", dst="d:type", src="a:type", unit=Unit.LOGIC, type=BITS)
def c_not(m: Modifiers, a: Term) -> Term:
    """d = (a == 0) ? 1 : 0                         PTX ISA, Logic and Shift: cnot"""
    return select(eq(a, 0), constant(1, m.scalar()), 0)


def by_table(a: Term, b: Term, c: Term, table: Term) -> Term:
    """Returns the function of three bits that `table` holds, its row number being a b c in
    binary."""
    found = constant(0, a.type)
    for row in range(8):
        chosen = -(shift_right(table, constant(row, U32)) & 1)
        bits = zip((a, b, c), (4, 2, 1), strict=True)
        match_a, match_b, match_c = (x if row & weight else ~x for x, weight in bits)
        found = found | (chosen & match_a & match_b & match_c)
    return found


@op("lop3.b32", dst="d:b32", src="a:b32, b:b32, c:b32, table:b32", unit=Unit.LOGIC)
def lop3(_: Modifiers, a: Term, b: Term, c: Term, table: Term) -> Term:
    """d = table(a, b, c) for each bit              PTX ISA, Logic and Shift: lop3"""
    return by_table(a, b, c, table)


@op(
    "lop3.bool.b32",
    dst="d:b32",
    src="a:b32, b:b32, c:b32, table:b32, q:pred",
    unit=Unit.LOGIC,
    bool=("and", "or"),
)
def lop3_bool(m: Modifiers, a: Term, b: Term, c: Term, table: Term, q: Term) -> tuple[Term, Term]:
    """d = table(a, b, c); p = (d != 0) bool q      PTX ISA, Logic and Shift: lop3"""
    d = by_table(a, b, c, table)
    return d, Term(m.text("bool", ""), PRED, (ne(d, 0), q))


@op("shl.type", dst="d:type", src="a:type, b:u32", unit=Unit.LOGIC, type=BITS)
def shl(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a << min(b, width)                       PTX ISA, Logic and Shift: shl"""
    return shift_left(a, b)


@op(
    "shr.type",
    dst="d:type",
    src="a:type, b:u32",
    unit=Unit.LOGIC,
    type=(*BITS, "u16", "u32", "u64", "s16", "s32", "s64"),
)
def shr(_: Modifiers, a: Term, b: Term) -> Term:
    """d = a >> min(b, width)                       PTX ISA, Logic and Shift: shr"""
    return shift_right(a, b)


@op(
    "shf.direction.mode.b32",
    dst="d:b32",
    src="a:b32, b:b32, c:u32",
    unit=Unit.LOGIC,
    direction=("l", "r"),
    mode=("clamp", "wrap"),
)
def shf(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = high word of {b, a} << n, or low word of {b, a} >> n   PTX ISA, Logic and Shift: shf"""
    n = minimum(c, 32) if m["mode"] == "clamp" else c & 31
    both = shift_left(extend(b, U64), constant(32, U32)) | extend(a, U64)
    if m["direction"] == "l":
        return reinterpret(high(shift_left(both, n)), B32)
    return truncate(shift_right(both, n), B32)
