"""Dot products of small integers: PTX ISA, "Integer Arithmetic Instructions: dp4a, dp2a"."""

from __future__ import annotations

from warploom.core.types import S8, S16, S32, U8, U16, U32, ScalarType
from warploom.isa.spec import Modifiers, Unit, op
from warploom.isa.terms import Term, extend, parts, reinterpret

WORDS = ("u32", "s32")
PAIRS = (("u32", "u32", "u32"), ("u32", "s32", "s32"), ("s32", "u32", "s32"), ("s32", "s32", "s32"))
"""The types of a and of b, and the type of c and d: signed where one of them is."""

BYTES = {"u32": U8, "s32": S8}
HALVES = {"u32": U16, "s32": S16}


def numbers(value: Term, type: ScalarType) -> list[Term]:
    """Returns the numbers of `type` in a word, each as a word."""
    whole = S32 if type.is_signed else U32
    return [reinterpret(extend(part, whole), U32) for part in parts(value, type)]


def dot(a: list[Term], b: list[Term], c: Term) -> Term:
    """Returns c + the sum of the products, modulo 2^32."""
    total = reinterpret(c, U32)
    for factor_a, factor_b in zip(a, b, strict=True):
        total = total + factor_a * factor_b
    return reinterpret(total, c.type)


def dp4a(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c + the dot product of the four bytes of a and b   PTX ISA, Integer Arithmetic: dp4a"""
    type_a, type_b = BYTES[m.text("atype", "")], BYTES[m.text("btype", "")]
    return dot(numbers(a, type_a), numbers(b, type_b), c)


def dp2a(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c + the dot product of the halves of a and two bytes of b
    PTX ISA, Integer Arithmetic: dp2a"""
    type_a, type_b = HALVES[m.text("atype", "")], BYTES[m.text("btype", "")]
    four = numbers(b, type_b)
    return dot(numbers(a, type_a), four[:2] if m["half"] == "lo" else four[2:], c)


for atype, btype, ctype in PAIRS:
    for line, semantics in (("dp4a.atype.btype", dp4a), ("dp2a.half.atype.btype", dp2a)):
        op(
            line,
            dst=f"d:{ctype}",
            src=f"a:b32, b:b32, c:{ctype}",
            unit=Unit.INTEGER,
            half=("lo", "hi"),
            atype=(atype,),
            btype=(btype,),
        )(semantics)
