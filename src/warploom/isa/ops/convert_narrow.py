"""Conversions to and from packed narrow numbers: PTX ISA, "Data Movement and Conversion
Instructions: cvt, cvt.pack".

The first operand goes to the highest place. What stands below .f16 has no type of its own: its
numbers lie in registers of bits, six-bit ones in the low bits of a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warploom.core.types import B32, BF16, BF16X2, PACKED, U16, U32, ScalarType, unsigned
from warploom.isa.narrow import (
    FORMATS,
    HALVES,
    TF32,
    narrowed,
    scale_of,
    wide,
    wide_scale,
)
from warploom.isa.ops.common import clamping
from warploom.isa.spec import Modifiers, Semantics, Unit, op
from warploom.isa.terms import (
    CANONICAL_NAN,
    Term,
    constant,
    is_nan,
    maximum,
    minimum,
    pack,
    parts,
    reinterpret,
    select,
    shift_left,
    truncate,
)

TWO, RANDOM = "a:f32, b:f32", "a:f32, b:f32, rbits:b32"
FOUR = "sources:f32*4, rbits:b32"
BYTES = ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2")
NIBBLES = ("e2m1x2",)
HALF_PAIRS = ("f16x2", "bf16x2")
CUT = ("rn", "rz")


def conversions(
    lines: tuple[str, ...], *, dst: str, src: str, **choices: tuple[str, ...]
) -> Callable[[Semantics], Semantics]:
    """Declares syntax lines that differ in the order of their modifiers."""

    def register(semantics: Semantics) -> Semantics:
        """Declares each of the syntax lines."""
        for line in lines:
            op(line, dst=dst, src=src, unit=Unit.CONVERT, **choices)(semantics)
        return semantics

    return register


def limited(before: str, behind: str) -> tuple[str, ...]:
    """Returns syntax lines with `.relu` and `.satfinite`, in either order."""
    both = "{.relu}{.satfinite}", ".satfinite.relu"
    return tuple(f"{before}{modifiers}{behind}" for modifiers in both)


def saturated(before: str, behind: str) -> tuple[str, ...]:
    """Returns the same where `.satfinite` must be."""
    return tuple(f"{before}{m}{behind}" for m in (".satfinite{.relu}", ".relu.satfinite"))


# ---- pairs of .f16 and .bf16 --------------------------------------------------------------------


@conversions(limited("cvt.rnd", ".dtype.f32"), dst="d:dtype", src=TWO, rnd=CUT, dtype=HALF_PAIRS)
def to_half_pair(m: Modifiers, a: Term, b: Term) -> Term:
    """d = {a, b}, rounded                          PTX ISA, Data Movement and Conversion: cvt"""
    whole = m.scalar("dtype")
    format = HALVES[PACKED[whole][0]]
    found = [narrowed(v, format, m.text("rnd", ""), **clamping(m)) for v in (b, a)]
    return pack([truncate(bits, U16) for bits in found], whole)


@conversions(limited("cvt.rs", ".dtype.f32"), dst="d:dtype", src=RANDOM, dtype=HALF_PAIRS)
def to_half_pair_random(m: Modifiers, a: Term, b: Term, rbits: Term) -> Term:
    """d = {a, b}, rounded stochastically by the two halves of rbits
    PTX ISA, Data Movement and Conversion: cvt"""
    whole = m.scalar("dtype")
    format = HALVES[PACKED[whole][0]]
    count = 23 - format.fraction
    given = [bits & ((1 << count) - 1) for bits in parts(rbits, U16)]
    found = [
        narrowed(v, format, "rs", random=(bits, count), **clamping(m))
        for v, bits in zip((b, a), given, strict=True)
    ]
    return pack([truncate(bits, U16) for bits in found], whole)


@conversions(("cvt.rna{.satfinite}.tf32.f32",), dst="d:b32", src="a:f32", rnd=("rna",))
@conversions(limited("cvt.rnd", ".tf32.f32"), dst="d:b32", src="a:f32", rnd=CUT)
def to_tf32(m: Modifiers, a: Term) -> Term:
    """d = a, rounded to ten fraction bits          PTX ISA, Data Movement and Conversion: cvt"""
    bits = narrowed(a, TF32, m.text("rnd", "rna"), **clamping(m))
    placed = shift_left(bits, constant(23 - TF32.fraction, U32))
    return reinterpret(select(is_nan(a), CANONICAL_NAN[32], placed), B32)


# ---- eight bits and less ------------------------------------------------------------------------


def packed_width(dtype: str) -> int:
    """Returns the bits that one number of a packed type takes up."""
    return 4 if dtype.startswith("e2m1") else 8


def together(m: Modifiers, values: Sequence[Term], whole: ScalarType) -> Term:
    """Returns the values, lowest first, rounded to the nearest and packed."""
    dtype = m.text("dtype", "")
    format = FORMATS[dtype[:4]]
    return packed_bits(
        [narrowed(v, format, **clamping(m)) for v in values], packed_width(dtype), whole
    )


def packed_bits(numbers: Sequence[Term], size: int, whole: ScalarType) -> Term:
    """Returns the numbers, lowest first, at `size` bits each."""
    word = constant(0, U32)
    for place, bits in enumerate(numbers):
        word = word | shift_left(bits, constant(place * size, U32))
    return reinterpret(truncate(word, unsigned(whole.bits)), whole)


@conversions(saturated("cvt.rn", ".dtype.f32"), dst="d:b16", src=TWO, dtype=BYTES)
@conversions(saturated("cvt.rn", ".dtype.f32"), dst="d:b8", src=TWO, dtype=NIBBLES)
def to_narrow_pair(m: Modifiers, a: Term, b: Term) -> Term:
    """d = {a, b}, rounded                          PTX ISA, Data Movement and Conversion: cvt"""
    return together(m, (b, a), unsigned(2 * packed_width(m.text("dtype", ""))))


@conversions(
    saturated("cvt.rn", ".dtype.type"), dst="d:b16", src="a:type", dtype=BYTES, type=HALF_PAIRS
)
@conversions(
    saturated("cvt.rn", ".dtype.type"), dst="d:b8", src="a:type", dtype=NIBBLES, type=HALF_PAIRS
)
def half_pair_to_narrow(m: Modifiers, a: Term) -> Term:
    """d = both halves of a, rounded                PTX ISA, Data Movement and Conversion: cvt"""
    values = [wide(half, HALVES[half.type]) for half in parts(a, PACKED[m.scalar()][0])]
    return together(m, values, unsigned(2 * packed_width(m.text("dtype", ""))))


@conversions(
    ("cvt.rn{.relu}.dtype.type",), dst="d:dtype", src="a:b16", dtype=HALF_PAIRS, type=BYTES
)
@conversions(
    ("cvt.rn{.relu}.dtype.type",), dst="d:dtype", src="a:b8", dtype=HALF_PAIRS, type=NIBBLES
)
def narrow_to_half_pair(m: Modifiers, a: Term) -> Term:
    """d = the numbers in a, converted to dtype     PTX ISA, Data Movement and Conversion: cvt"""
    type, whole = m.text("type", ""), m.scalar("dtype")
    source, target = FORMATS[type[:4]], HALVES[PACKED[whole][0]]
    word, size = reinterpret(a, unsigned(a.type.bits)), packed_width(type)
    numbers = [Term("lshr", word.type, (word, constant(place, word.type))) for place in (0, size)]
    mask = (1 << source.bits) - 1
    values = [wide(number & mask, source) for number in numbers]
    found = [narrowed(v, target, relu="relu" in m) for v in values]
    return pack([truncate(bits, U16) for bits in found], whole)


@conversions(
    saturated("cvt.rs", ".dtype.f32"),
    dst="d:b32",
    src=FOUR,
    dtype=tuple(f"{name[:4]}x4" for name in BYTES),
)
@conversions(saturated("cvt.rs", ".dtype.f32"), dst="d:b16", src=FOUR, dtype=("e2m1x4",))
def to_narrow_four(m: Modifiers, a: Term, b: Term, e: Term, f: Term, rbits: Term) -> Term:
    """d = {a, b, e, f}, rounded stochastically; the bits of rbits for a and b are above those for
    e and f
    PTX ISA, Data Movement and Conversion: cvt"""
    dtype = m.text("dtype", "")
    format, size = FORMATS[dtype[:4]], packed_width(dtype)
    low, high = parts(rbits, U16)
    if size == 8:
        given, count = [low, low, high, high], 16
    else:
        # A byte to each number; the manual names the bytes of each pair but not their order in it.
        eight = constant(8, U16)
        above = [Term("lshr", U16, (half, eight)) for half in (low, high)]
        given, count = [low & 0xFF, high & 0xFF, *above], 8
    found = [
        narrowed(v, format, "rs", random=(bits, count), **clamping(m))
        for v, bits in zip((f, e, b, a), given, strict=True)
    ]
    return packed_bits(found, size, unsigned(4 * size))


# ---- scales -------------------------------------------------------------------------------------

UP_OR_DOWN = {"rnd": ("rz", "rp")}


@conversions(("cvt.rnd{.satfinite}.ue8m0x2.f32",), dst="d:b16", src=TWO, **UP_OR_DOWN)
def to_scales(m: Modifiers, a: Term, b: Term) -> Term:
    """d = {a, b} as powers of two                  PTX ISA, Data Movement and Conversion: cvt"""
    return scales(m, (b, a))


@conversions(("cvt.rnd{.satfinite}.ue8m0x2.bf16x2",), dst="d:b16", src="a:bf16x2", **UP_OR_DOWN)
def half_pair_to_scales(m: Modifiers, a: Term) -> Term:
    """d = both halves of a, as powers of two       PTX ISA, Data Movement and Conversion: cvt"""
    return scales(m, [wide(half, HALVES[BF16]) for half in parts(a, BF16)])


def scales(m: Modifiers, values: Sequence[Term]) -> Term:
    """Returns the values, lowest first, as powers of two, a byte each."""
    found = [scale_of(v, m.text("rnd", ""), finite="satfinite" in m) for v in values]
    return packed_bits(found, 8, unsigned(16))


@conversions(("cvt.rn.bf16x2.ue8m0x2",), dst="d:bf16x2", src="a:b16")
def scales_to_half_pair(_: Modifiers, a: Term) -> Term:
    """d = the powers of two in a, as .bf16 numbers   PTX ISA, Data Movement and Conversion: cvt"""
    word = reinterpret(a, U16)
    numbers = (word, Term("lshr", U16, (word, constant(8, U16))))
    return pack([truncate(wide_scale(n), U16) for n in numbers], BF16X2)


# ---- integers -----------------------------------------------------------------------------------

SMALL = ("u2", "s2", "u4", "s4", "u8", "s8")


def clamped(value: Term, name: str) -> Term:
    """Returns an .s32 in the range of a small integer type, its low bits alone."""
    bits = int(name[1:])
    signed = name[0] == "s"
    top = (1 << (bits - signed)) - 1
    inside = minimum(maximum(value, -top - 1 if signed else 0), top)
    return reinterpret(inside, U32) & ((1 << bits) - 1)


@op(
    "cvt.pack.sat.dtype.s32",
    dst="d:b32",
    src="a:s32, b:s32",
    unit=Unit.CONVERT,
    dtype=("u16", "s16"),
)
def pack_words(m: Modifiers, a: Term, b: Term) -> Term:
    """d = {a, b}, clamped                          PTX ISA, Data Movement: cvt.pack"""
    name = m.text("dtype", "")
    return packed_bits([clamped(b, name), clamped(a, name)], 16, B32)


@op(
    "cvt.pack.sat.dtype.s32.b32",
    dst="d:b32",
    src="a:s32, b:s32, c:b32",
    unit=Unit.CONVERT,
    dtype=SMALL,
)
def pack_small(m: Modifiers, a: Term, b: Term, c: Term) -> Term:
    """d = {low bits of c, a, b}, with a and b clamped   PTX ISA, Data Movement: cvt.pack"""
    name = m.text("dtype", "")
    size = int(name[1:])
    return packed_bits([clamped(b, name), clamped(a, name), reinterpret(c, U32)], size, B32)
