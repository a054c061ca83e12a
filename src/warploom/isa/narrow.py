"""Floating-point formats below single precision: what their bits mean, and rounding to them.

Processors lack most of these formats, so here a narrow number is an integer: `wide` gives its value
as an .f32, which holds every one exactly, and `narrowed` rounds an .f32 or .f64 to its bits. Both
are plain terms over integers, so all machines agree to the bit.

Source: PTX ISA, "Alternate Floating-Point Data Formats" and "cvt"; for the formats of eight bits
and less also "OCP Microscaling Formats (MX) Specification", section 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.types import BF16, F16, F32, F64, PRED, S32, U32, ScalarType, unsigned
from warploom.isa.terms import (
    Term,
    constant,
    eq,
    float_abs,
    float_constant,
    float_op,
    float_to_float,
    int_to_float,
    is_nan,
    maximum,
    minimum,
    ne,
    reinterpret,
    resize,
    select,
)


@dataclass(frozen=True, slots=True)
class Format:
    """A narrow format: a sign, `exponent` bits, `fraction` bits.

    `nan` is the positive NaN that conversions give, None where the format has none. Formats without
    infinities use that exponent for numbers as well.
    """

    name: str
    exponent: int
    fraction: int
    infinite: bool
    nan: int | None

    @property
    def bits(self) -> int:
        """Returns the number of bits: sign, exponent and fraction."""
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        """Returns what is added to an exponent before it is stored."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def sign(self) -> int:
        """Returns the sign bit at its place."""
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """Returns the bits of infinity, where there is one."""
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def largest(self) -> int:
        """Returns the bits of the largest number."""
        if self.infinite:
            return self.infinity - 1
        return self.sign - (1 if self.nan is None else 2)

    @property
    def smallest_normal(self) -> float:
        """Returns the least positive number that is not subnormal."""
        return 2.0 ** (1 - self.bias)


HALF = Format("f16", 5, 10, True, 0x7FFF)
BRAIN = Format("bf16", 8, 7, True, 0x7FFF)
TF32 = Format("tf32", 8, 10, True, 0x3FFFF)
E4M3 = Format("e4m3", 4, 3, False, 0x7F)
E5M2 = Format("e5m2", 5, 2, True, 0x7F)
E2M3 = Format("e2m3", 2, 3, False, None)
E3M2 = Format("e3m2", 3, 2, False, None)
E2M1 = Format("e2m1", 2, 1, False, None)

FORMATS = {f.name: f for f in (HALF, BRAIN, TF32, E4M3, E5M2, E2M3, E3M2, E2M1)}
HALVES: dict[ScalarType, Format] = {F16: HALF, BF16: BRAIN}
"""The formats that registers of 16 bits hold as their own type."""

_SOURCE = {32: (8, 23), 64: (11, 52)}
"""Bits of the exponent and of the fraction of what is rounded, by its width."""


def wide(bits: Term, format: Format) -> Term:
    """Returns the number as an .f32; a NaN gives some NaN.

    The bits at their place in an .f32 are the number but for the bias, which one exact
    multiplication puts right, for subnormals too.
    """
    word = resize(reinterpret(bits, unsigned(bits.type.bits)), U32)
    size = word & (format.sign - 1)
    placed = _left(size, 23 - format.fraction)
    scale = float_constant(2.0 ** (127 - format.bias), F32)
    value = reinterpret(placed, F32)
    if format.exponent < 8:
        value = float_op("fmul", "rn", value, scale)
        if format.infinite:
            special = reinterpret(placed | 0x7F800000, F32)
            value = select(size >= format.infinity, special, value)
        elif format.nan is not None:
            value = select(eq(size, format.nan), reinterpret(constant(-1, U32), F32), value)
    turned = _left(word & format.sign, 32 - format.bits)
    return reinterpret(reinterpret(value, U32) | turned, F32)


def narrowed(
    value: Term,
    format: Format,
    rounding: str = "rn",
    *,
    finite: bool = False,
    relu: bool = False,
    random: tuple[Term, int] | None = None,
) -> Term:
    """Returns the bits of `value` (.f32 or .f64) rounded to `format`, as an .u32.

    `rounding` is one of the four of IEEE 754, "rna" (nearest, ties away from zero) or "rs" (by the
    `random` bits, a term and their number, added below the last place). `finite` puts the largest
    number for one that is too large; `relu` 0 for a negative one.
    """
    bits = reinterpret(value, unsigned(value.type.bits))
    sign = 1 << (value.type.bits - 1)
    size, negative = bits & (sign - 1), ne(bits & sign, 0)
    found = _rounded(size, negative, format, rounding, random)
    limit = _beyond(size, negative, format, rounding, finite)
    found = select(found > format.largest, limit, found)
    found = select(negative, constant(0, U32) if relu else found | format.sign, found)
    return select(is_nan(value), format.largest if format.nan is None else format.nan, found)


def _rounded(
    size: Term, negative: Term, format: Format, rounding: str, random: tuple[Term, int] | None
) -> Term:
    """Returns the bits of an absolute value, as if there were no largest number."""
    exponent_bits, fraction_bits = _SOURCE[size.type.bits]
    exponent = _right(size, fraction_bits)
    hidden = 1 << fraction_bits
    significand = size & (hidden - 1)
    significand = select(eq(exponent, 0), significand, significand | hidden)
    # Exponents below the format's least one leave fewer places: its subnormal numbers.
    rebias = (1 << (exponent_bits - 1)) - 1 - format.bias
    placed = maximum(exponent, max(rebias + 1, 1))
    lost = minimum(placed - maximum(exponent, 1), fraction_bits + 2)
    wanted = lost + (fraction_bits - format.fraction)
    dropped = minimum(wanted, fraction_bits + 2)
    if random is not None:
        # Random bits are fewer than these, so that lower ones of the number make no carry.
        significand = _by(significand, wanted - dropped)
    added = _increment(significand, dropped, negative, rounding, random)
    quotient = _by(significand + added, dropped)
    # The hidden bit of the quotient, or a carry into it, counts as one in the exponent field.
    field = _left(resize(placed, U32) - (rebias + 1), format.fraction)
    return resize(quotient, U32) + field


def _increment(
    significand: Term,
    dropped: Term,
    negative: Term,
    rounding: str,
    random: tuple[Term, int] | None,
) -> Term:
    """Returns what is added below the last place before cutting there."""
    type = significand.type
    unit_value, nothing = constant(1, type), constant(0, type)
    if rounding == "rz":
        return nothing
    if random is not None:
        bits, count = random
        return Term("shl", type, (resize(bits, type), dropped - count))
    if rounding in ("rm", "rp"):
        away = negative if rounding == "rm" else ~negative
        return select(away, Term("shl", type, (unit_value, dropped)) - 1, nothing)
    half = Term("shl", type, (unit_value, dropped - 1))
    return half if rounding == "rna" else half - 1 + (_by(significand, dropped) & 1)


def _beyond(size: Term, negative: Term, format: Format, rounding: str, finite: bool) -> Term:
    """Returns what stands for a size beyond the largest number, and for infinity."""
    largest = constant(format.largest, U32)
    if finite or not format.infinite:
        return largest
    infinity = constant(format.infinity, U32)
    _, fraction_bits = _SOURCE[size.type.bits]
    infinite = size >= (((1 << (size.type.bits - 1 - fraction_bits)) - 1) << fraction_bits)
    if rounding in ("rm", "rp"):
        infinite = Term("or", PRED, (infinite, negative if rounding == "rm" else ~negative))
    return select(infinite, infinity, largest) if rounding in ("rz", "rm", "rp") else infinity


def _left(a: Term, places: int) -> Term:
    """Returns `a`, shifted left by `places`."""
    return Term("shl", a.type, (a, constant(places, a.type))) if places else a


def _right(a: Term, places: int) -> Term:
    """Returns `a`, shifted right by `places`, with zeros."""
    return Term("lshr", a.type, (a, constant(places, a.type)))


def _by(a: Term, places: Term) -> Term:
    """Returns `a`, shifted right by an amount that is a term."""
    return Term("lshr", a.type, (a, places))


def flush_narrow(value: Term, format: Format) -> Term:
    """Returns the value of a narrow number as `.ftz` takes it: a subnormal of its format becomes
    the zero of its sign."""
    tiny = float_abs(value) < float_constant(format.smallest_normal, value.type)
    sign = reinterpret(value, unsigned(value.type.bits)) & (1 << (value.type.bits - 1))
    return select(tiny, reinterpret(sign, value.type), value)


# ---- sums that round once -----------------------------------------------------------------------


def multiply_add(a: Term, b: Term, c: Term) -> Term:
    """Returns a * b + c of .f32 values of narrow numbers, as an .f64 rounded to odd.

    The product is exact; the last place of an inexact sum is made 1, so that rounding it again, to
    at most 51 bits, is as if it had been exact (Boldo and Melquiond, "Emulation of FMA and
    Correctly Rounded Sums", 2008). The error of the sum is Knuth's.
    """
    x, y, z = (float_to_float(v, F64, "rn") for v in (a, b, c))
    product = float_op("fmul", "rn", x, y)
    total = float_op("fadd", "rn", product, z)
    of_z = float_op("fsub", "rn", total, product)
    of_product = float_op("fsub", "rn", total, of_z)
    rest = float_op(
        "fadd",
        "rn",
        float_op("fsub", "rn", product, of_product),
        float_op("fsub", "rn", z, of_z),
    )
    return _to_odd(total, rest)


def _to_odd(total: Term, rest: Term) -> Term:
    """Returns `total`, made odd if rounding to nearest left anything out (`rest`): by a step of its
    last place towards `rest`, if that place is even."""
    zero = float_constant(0.0, F64)
    bits = reinterpret(total, unsigned(64))
    inexact = Term("or", PRED, (rest < zero, rest > zero))
    grows = eq(rest < zero, total < zero)
    step = select(grows, constant(1, bits.type), constant(-1, bits.type))
    even = eq(bits & 1, 0)
    return reinterpret(select(Term("and", PRED, (inexact, even)), bits + step, bits), F64)


def integer_to_odd(a: Term) -> Term:
    """Returns an integer as an .f64 that keeps in its last place whether it is inexact."""
    if a.type.bits < 64:
        return int_to_float(a, F64, "rn")
    near = int_to_float(a, F64, "rz")
    back = Term("float_to_int", a.type, (near,))
    sticky = resize(select(ne(back, a), constant(1, U32), 0), unsigned(64))
    return reinterpret(reinterpret(near, unsigned(64)) | sticky, F64)


# ---- scales: an exponent and nothing else -------------------------------------------------------

SCALE_NAN = 0xFF


def wide_scale(bits: Term) -> Term:
    """Returns the bits of the .bf16 that an unsigned power of two (ue8m0) is, as an .u32."""
    word = resize(reinterpret(bits, unsigned(bits.type.bits)), U32) & 0xFF
    normal = select(eq(word, 0), constant(0x0040, U32), _left(word, 7))
    return select(eq(word, SCALE_NAN), constant(0x7FFF, U32), normal)


def scale_of(value: Term, rounding: str, *, finite: bool) -> Term:
    """Returns the power of two next to |value| (.f32), as the bits of an ue8m0 in an .u32."""
    size = reinterpret(float_abs(value), U32)
    exponent = _right(size, 23)
    fraction = size & 0x7FFFFF
    # The least power, 2^-127, is half the least normal number.
    above = select(eq(exponent, 0), fraction > 0x400000, ne(fraction, 0))
    up = select(above, constant(1, U32), 0) if rounding == "rp" else constant(0, U32)
    found = reinterpret(minimum(reinterpret(exponent + up, S32), 254 if finite else 255), U32)
    infinite = constant(254 if finite else SCALE_NAN, U32)
    found = select(size >= 0x7F800000, infinite, found)
    return select(is_nan(value), constant(SCALE_NAN, U32), found)
