"""Counting, finding and moving bits: PTX ISA, "Integer Arithmetic Instructions" and, for `prmt`,
"Data Movement and Conversion Instructions"."""

from __future__ import annotations

from warploom.core.types import B32, B64, U32, ScalarType
from warploom.isa.spec import Modifiers, Unit, op
from warploom.isa.terms import (
    Term,
    constant,
    count_leading_zeros,
    count_ones,
    eq,
    extend,
    maximum,
    minimum,
    ne,
    reinterpret,
    reverse_bits,
    select,
    shift_left,
    shift_right,
    truncate,
)

WIDTHS = ("b32", "b64")
WORDS = ("u32", "u64", "s32", "s64")
SINGLES = ("u32", "s32")


@op("popc.type", dst="d:u32", src="a:type", unit=Unit.INTEGER, type=WIDTHS)
def popc(_: Modifiers, a: Term) -> Term:
    """d = the number of 1 bits in a                PTX ISA, Integer Arithmetic: popc"""
    return count_ones(a, U32)


@op("clz.type", dst="d:u32", src="a:type", unit=Unit.INTEGER, type=WIDTHS)
def clz(_: Modifiers, a: Term) -> Term:
    """d = the number of leading zero bits of a     PTX ISA, Integer Arithmetic: clz"""
    return count_leading_zeros(a, U32)


@op("bfind{.shiftamt}.type", dst="d:u32", src="a:type", unit=Unit.INTEGER, type=WORDS)
def bfind(m: Modifiers, a: Term) -> Term:
    """d = the position of the highest non-sign bit, or ~0 if there is none; with .shiftamt, the
    left shift that moves it to the top             PTX ISA, Integer Arithmetic: bfind"""
    searched = select(a < 0, ~a, a) if a.type.is_signed else a
    zeros = count_leading_zeros(searched, U32)
    if "shiftamt" in m:
        return select(eq(searched, 0), constant(-1, U32), zeros)
    return constant(a.type.bits - 1, U32) - zeros


@op("brev.type", dst="d:type", src="a:type", unit=Unit.INTEGER, type=WIDTHS)
def brev(_: Modifiers, a: Term) -> Term:
    """d = a with its bits in reverse order         PTX ISA, Integer Arithmetic: brev"""
    return reverse_bits(a)


def low_mask(length: Term, type: ScalarType) -> Term:
    """Returns a value whose low `length` bits are 1; all of them where `length` is at
    least the width."""
    return shift_left(constant(1, type), length) - 1


@op("bfe.type", dst="d:type", src="a:type, b:u32, c:u32", unit=Unit.INTEGER, type=WORDS)
def bfe(_: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = c bits of a starting at bit b, sign-extended for signed types
    PTX ISA, Integer Arithmetic: bfe"""
    position, length = b & 0xFF, c & 0xFF
    shifted = shift_right(a, position)
    if not a.type.is_signed:
        return shifted & low_mask(length, a.type)
    unused = constant(a.type.bits, U32) - minimum(length, a.type.bits)
    return shift_right(shift_left(shifted, unused), unused)


@op("bfi.type", dst="f:type", src="a:type, b:type, c:u32, d:u32", unit=Unit.INTEGER, type=WIDTHS)
def bfi(_: Modifiers, a: Term, b: Term, c: Term, d: Term) -> Term:
    """f = b with d bits of a placed at bit c       PTX ISA, Integer Arithmetic: bfi"""
    position, length = c & 0xFF, d & 0xFF
    mask = shift_left(low_mask(length, a.type), position)
    return (b & ~mask) | (shift_left(a, position) & mask)


MODES = ("clamp", "wrap")


def bounded(m: Modifiers, amount: Term) -> Term:
    """Returns a bit position or a width, taken modulo 32 with .wrap; shifts clamp it otherwise."""
    return amount & 31 if m["mode"] == "wrap" else amount


@op("bmsk.mode.b32", dst="d:b32", src="a:b32, b:b32", unit=Unit.INTEGER, mode=MODES)
def bmsk(m: Modifiers, a: Term, b: Term) -> Term:
    """d = a mask of b ones that starts at bit a    PTX ISA, Integer Arithmetic: bmsk"""
    return shift_left(low_mask(bounded(m, b), B32), bounded(m, a))


@op(
    "szext.mode.type",
    dst="d:type",
    src="a:type, b:u32",
    unit=Unit.INTEGER,
    mode=MODES,
    type=SINGLES,
)
def szext(m: Modifiers, a: Term, b: Term) -> Term:
    """d = the low b bits of a, zero- or sign-extended   PTX ISA, Integer Arithmetic: szext"""
    unused = constant(32, U32) - minimum(bounded(m, b), 32)
    return shift_right(shift_left(a, unused), unused)


@op("fns.b32", dst="d:b32", src="mask:b32, base:b32, offset:s32", unit=Unit.INTEGER)
def fns(_: Modifiers, mask: Term, base: Term, offset: Term) -> Term:
    """d = the position of the |offset|-th 1 bit of mask, counted up or down from base, or ~0
    if there is none   PTX ISA, Integer Arithmetic: fns"""
    down = offset < 0
    seen = select(down, reverse_bits(mask), mask)
    start = select(down, constant(31, U32) - base, reinterpret(base, U32))
    # An offset of 0 asks for the bit at base alone, others for the bits from there on.
    searched = select(eq(offset, 0), constant(1, U32), constant(-1, U32))
    left = seen & shift_left(reinterpret(searched, B32), start)
    size = reinterpret(maximum(offset, -offset), U32)
    before = select(eq(offset, 0), size, size - 1)
    place = nth_one(left, before)
    up = select(down, constant(31, U32) - place, place)
    return select(before < count_ones(left, U32), reinterpret(up, B32), -1)


def nth_one(word: Term, n: Term) -> Term:
    """Returns the place of the 1 in `word` that has `n` others below it, found by halves."""
    place = constant(0, U32)
    for width in (16, 8, 4, 2, 1):
        below = shift_right(word, place) & ((1 << width) - 1)
        count = count_ones(below, U32)
        beyond = n >= count
        n = select(beyond, n - count, n)
        place = select(beyond, place + width, place)
    return place


def byte_of(pair: Term, index: Term) -> Term:
    """Returns byte `index` (below 8) of a 64-bit value, as 32 bits."""
    return truncate(shift_right(pair, shift_left(index, constant(3, U32))), B32) & 0xFF


def joined(words: tuple[Term, Term]) -> Term:
    """Returns {b, a} as 64 bits, a in the low half."""
    a, b = words
    return shift_left(extend(b, B64), constant(32, U32)) | extend(a, B64)


def assembled(parts: list[Term]) -> Term:
    """Returns four bytes, lowest first, as one word."""
    word = parts[0]
    for place, part in enumerate(parts[1:], start=1):
        word = word | shift_left(part, constant(8 * place, U32))
    return word


@op("prmt.b32", dst="d:b32", src="a:b32, b:b32, c:b32", unit=Unit.INTEGER)
def prmt(_: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = four bytes of {b, a}; each nibble of c selects a byte, or its sign if the top bit is set
    PTX ISA, Data Movement and Conversion: prmt"""
    pair = joined((a, b))
    parts: list[Term] = []
    for place in range(4):
        selector = shift_right(c, constant(4 * place, U32)) & 0xF
        byte = byte_of(pair, selector & 7)
        sign = select(ne(byte & 0x80, 0), constant(0xFF, B32), 0)
        parts.append(select(ne(selector & 8, 0), sign, byte))
    return assembled(parts)


@op(
    "prmt.b32.mode",
    dst="d:b32",
    src="a:b32, b:b32, c:b32",
    unit=Unit.INTEGER,
    mode=("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"),
)
def prmt_mode(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = four bytes of {b, a}, in the pattern that the mode and c[1..0] select
    PTX ISA, Data Movement and Conversion: prmt"""
    pair, start = joined((a, b)), c & 3
    return assembled([byte_of(pair, chosen(m.text("mode", ""), start, i)) for i in range(4)])


def chosen(mode: str, start: Term, place: int) -> Term:
    """Returns which of the eight bytes `prmt` puts at `place`."""
    if mode == "f4e":
        return start + place
    if mode == "b4e":
        return (start - place) & 7
    if mode == "ecl":
        return maximum(start, place)
    if mode == "ecr":
        return minimum(start, place)
    if mode == "rc16":
        return shift_left(start & 1, constant(1, U32)) + (place & 1)
    return start
