"""Extended precision: PTX ISA, "Extended-Precision Integer Arithmetic Instructions".

The carry flag of the condition code is a hidden predicate register, `%cc`: an operand like any
other that no text shows. A subtraction adds the complement, and its flag is the carry out of that
sum: 1 if nothing was borrowed. The manual calls it a borrow; where additions and subtractions are
mixed the difference shows, and there ptxas' machine code decides: after `sub.cc.u32 d, a, b`, which
becomes `IADD3 d, P0, a, -b, RZ`, an `addc` adds P0 as it is.
"""

from __future__ import annotations

from warploom.core.types import ScalarType, unsigned
from warploom.isa.ops.common import any_of
from warploom.isa.spec import Modifiers, Unit, op
from warploom.isa.terms import Term, high, reinterpret, resize, select, widen

TYPES = ("u32", "s32", "u64", "s64")
HALVES = ("lo", "hi")
CARRIED = "d:type, %cc:pred"
TWO, THREE = "a:type, b:type", "a:type, b:type, c:type"

Carried = tuple[Term, Term]


def number(carry: Term, type: ScalarType) -> Term:
    """Returns the flag as 0 or 1."""
    one = Term("const", type, (), 1)
    return select(carry, one, 0)


def sum_of(a: Term, b: Term, carry: Term | None) -> Carried:
    """Returns a + b + carry, and the carry out of it."""
    whole = unsigned(a.type.bits)
    unsigned_a, unsigned_b = reinterpret(a, whole), reinterpret(b, whole)
    total = unsigned_a + unsigned_b
    over = total < unsigned_a
    if carry is not None:
        before, total = total, total + number(carry, whole)
        over = any_of(over, total < before)
    return reinterpret(total, a.type), over


def difference_of(a: Term, b: Term, carry: Term | None) -> Carried:
    """Returns a + ~b + carry, and the carry out of it; without a flag the carry in is 1."""
    whole = unsigned(a.type.bits)
    unsigned_a, unsigned_b = reinterpret(a, whole), reinterpret(b, whole)
    if carry is None:
        return reinterpret(unsigned_a - unsigned_b, a.type), unsigned_a >= unsigned_b
    total, over = sum_of(unsigned_a, ~unsigned_b, carry)
    return reinterpret(total, a.type), over


def half_product(m: Modifiers, a: Term, b: Term) -> Term:
    """Returns the half of a * b that the opcode names."""
    return a * b if m["half"] == "lo" else resize(high(widen(a) * widen(b)), a.type)


@op("add.cc.type", dst=CARRIED, src=TWO, unit=Unit.INTEGER, type=TYPES)
def add_cc(_: Modifiers, a: Term, b: Term) -> Carried:
    """d = a + b; CC = carry out                    PTX ISA, Extended Precision: add.cc"""
    return sum_of(a, b, None)


@op("addc.type", dst="d:type", src=f"{TWO}, %cc:pred", unit=Unit.INTEGER, type=TYPES)
def addc(_: Modifiers, a: Term, b: Term, carry: Term) -> Term:
    """d = a + b + CC                               PTX ISA, Extended Precision: addc"""
    return sum_of(a, b, carry)[0]


@op("addc.cc.type", dst=CARRIED, src=f"{TWO}, %cc:pred", unit=Unit.INTEGER, type=TYPES)
def addc_cc(_: Modifiers, a: Term, b: Term, carry: Term) -> Carried:
    """d = a + b + CC; CC = carry out               PTX ISA, Extended Precision: addc"""
    return sum_of(a, b, carry)


@op("sub.cc.type", dst=CARRIED, src=TWO, unit=Unit.INTEGER, type=TYPES)
def sub_cc(_: Modifiers, a: Term, b: Term) -> Carried:
    """d = a + ~b + 1; CC = carry out               PTX ISA, Extended Precision: sub.cc"""
    return difference_of(a, b, None)


@op("subc.type", dst="d:type", src=f"{TWO}, %cc:pred", unit=Unit.INTEGER, type=TYPES)
def subc(_: Modifiers, a: Term, b: Term, carry: Term) -> Term:
    """d = a + ~b + CC                              PTX ISA, Extended Precision: subc"""
    return difference_of(a, b, carry)[0]


@op("subc.cc.type", dst=CARRIED, src=f"{TWO}, %cc:pred", unit=Unit.INTEGER, type=TYPES)
def subc_cc(_: Modifiers, a: Term, b: Term, carry: Term) -> Carried:
    """d = a + ~b + CC; CC = carry out              PTX ISA, Extended Precision: subc"""
    return difference_of(a, b, carry)


@op("mad.half.cc.type", dst=CARRIED, src=THREE, unit=Unit.INTEGER, half=HALVES, type=TYPES)
def mad_cc(m: Modifiers, a: Term, b: Term, c: Term) -> Carried:
    """d = low or high half of (a * b) + c; CC = carry out   PTX ISA, Extended Precision: mad.cc"""
    return sum_of(half_product(m, a, b), c, None)


@op(
    "madc.half.type",
    dst="d:type",
    src=f"{THREE}, %cc:pred",
    unit=Unit.INTEGER,
    half=HALVES,
    type=TYPES,
)
def madc(m: Modifiers, a: Term, b: Term, c: Term, carry: Term) -> Term:
    """d = low or high half of (a * b) + c + CC     PTX ISA, Extended Precision: madc"""
    return sum_of(half_product(m, a, b), c, carry)[0]


@op(
    "madc.half.cc.type",
    dst=CARRIED,
    src=f"{THREE}, %cc:pred",
    unit=Unit.INTEGER,
    half=HALVES,
    type=TYPES,
)
def madc_cc(m: Modifiers, a: Term, b: Term, c: Term, carry: Term) -> Carried:
    """d = low or high half of (a * b) + c + CC; CC = carry out
    PTX ISA, Extended Precision: madc"""
    return sum_of(half_product(m, a, b), c, carry)
