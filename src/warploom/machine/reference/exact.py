"""Computes correctly rounded results of floating-point operations for the reference machine, by
exact integer arithmetic on one number at a time.

A finite float is a sign and an integer times a power of two. Sums, products and quotients of such
numbers are exact ratios (square roots are known to be on one side of a ratio), and `rounded` finds
the float next to a ratio in any mode (IEEE 754-2019, "Rounding-direction attributes"). Example: 1/3
in binary32 is the ratio (1, 3), rounded to 0x3EAAAAAB with `rn` and 0x3EAAAAAA with `rz`.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format: its width in bits, and the bits of its significand with the
    hidden one; `code` and `integer_code` are those of `struct`."""

    bits: int
    precision: int
    code: str
    integer_code: str

    @property
    def lowest(self) -> int:
        """Returns the exponent of the last bit of a subnormal: -149 in binary32."""
        return 3 - (1 << (self.bits - self.precision - 1)) - self.precision

    @property
    def infinity(self) -> int:
        """Returns the bits of positive infinity."""
        return ((1 << (self.bits - self.precision)) - 1) << (self.precision - 1)

    @property
    def sign(self) -> int:
        """Returns the bits with the sign bit alone: those of -0."""
        return 1 << (self.bits - 1)

    def value(self, bits: int) -> float:
        """Returns the number that the bits encode; exact, since a Python float has 64 bits."""
        number: float = struct.unpack(self.code, struct.pack(self.integer_code, bits))[0]
        return number


SINGLE = Format(32, 24, "<f", "<I")
DOUBLE = Format(64, 53, "<d", "<Q")
FORMATS = {32: SINGLE, 64: DOUBLE}
NAN = {32: 0x7FC00000, 64: 0x7FF8_0000_0000_0000}
"""The NaN that results have; the standard leaves its payload open."""

Ratio = tuple[int, int]
"""A numerator and a positive denominator."""


def rounded(negative: bool, ratio: Ratio, format: Format, mode: str) -> int:
    """Returns the bits of the float next to a number by the rounding mode (`rn rz rm rp`), given by
    its sign, which a zero retains, and its absolute value as a ratio; overflow gives an infinity or
    the largest float, by the mode."""
    sign = format.sign if negative else 0
    numerator, denominator = ratio
    if numerator == 0:
        return sign
    exponent = numerator.bit_length() - denominator.bit_length() - format.precision
    # Below the normal range the precision shrinks (gradual underflow).
    exponent = max(exponent, format.lowest)
    quotient, remainder, divisor = _divide_scaled(numerator, denominator, exponent)
    # The estimate from bit lengths may be one too low.
    if quotient >> format.precision:
        exponent += 1
        quotient, remainder, divisor = _divide_scaled(numerator, denominator, exponent)
    if _rounds_up(mode, negative, quotient, remainder, divisor):
        quotient += 1
    # The hidden bit and a carry out of the significand both add one to the exponent field.
    bits = quotient + ((exponent - format.lowest) << (format.precision - 1))
    if bits >= format.infinity:
        to_infinity = {"rn": True, "rz": False, "rm": negative, "rp": not negative}[mode]
        bits = format.infinity if to_infinity else format.infinity - 1
    return sign | bits


def _divide_scaled(numerator: int, denominator: int, exponent: int) -> tuple[int, int, int]:
    """Returns the integer quotient of numerator / (denominator * 2^exponent), and the remainder and
    divisor, both scaled by 2^-exponent if `exponent` is negative, so that they are integers."""
    if exponent < 0:
        numerator <<= -exponent
    else:
        denominator <<= exponent
    quotient, remainder = divmod(numerator, denominator)
    return quotient, remainder, denominator


def _rounds_up(mode: str, negative: bool, quotient: int, remainder: int, divisor: int) -> bool:
    """Returns true if the absolute value quotient + remainder / divisor is rounded away from zero,
    to quotient + 1. In mode `rn` it is if the rest is more than half, or half and the quotient odd;
    in the directed modes if the rest is not 0 and the direction is away from zero for this sign."""
    if mode == "rn":
        return 2 * remainder > divisor or (2 * remainder == divisor and quotient & 1 == 1)
    return remainder != 0 and mode == ("rm" if negative else "rp")


@dataclass(frozen=True, slots=True)
class Finite:
    """A finite number: its sign, which a zero has too, and its absolute value, integer *
    2^exponent."""

    negative: bool
    integer: int
    exponent: int

    @property
    def signed(self) -> int:
        """Returns `integer` with the number's sign: the number is the result * 2^exponent."""
        return -self.integer if self.negative else self.integer

    @property
    def ratio(self) -> Ratio:
        """Returns the absolute value as a ratio (numerator, denominator), not reduced."""
        if self.exponent < 0:
            return self.integer, 1 << -self.exponent
        return self.integer << self.exponent, 1


def finite(bits: int, format: Format) -> Finite | None:
    """Returns the number that the bits encode; None for an infinity or a NaN."""
    magnitude = bits & (format.sign - 1)
    if magnitude >= format.infinity:
        return None
    field, fraction = divmod(magnitude, 1 << (format.precision - 1))
    hidden = (1 << (format.precision - 1)) if field else 0
    exponent = format.lowest + max(field - 1, 0)
    return Finite(bits >= format.sign, fraction | hidden, exponent)


def add(a: int, b: int, format: Format, mode: str) -> int:
    """Returns a + b, rounded by `mode`; all values are bits of `format`, a NaN the canonical
    one."""
    x, y = finite(a, format), finite(b, format)
    if x is None or y is None:
        return _special(format.value(a) + format.value(b), format)
    return _sum(x, y, format, mode)


def subtract(a: int, b: int, format: Format, mode: str) -> int:
    """Returns a - b, rounded by `mode`; all values are bits of `format`, a NaN the canonical one,
    as in `add`."""
    return add(a, b ^ format.sign, format, mode)


def multiply(a: int, b: int, format: Format, mode: str) -> int:
    """Returns a * b, rounded by `mode`; all values are bits of `format`, a NaN the canonical
    one."""
    x, y = finite(a, format), finite(b, format)
    if x is None or y is None:
        return _special(format.value(a) * format.value(b), format)
    product = _product(x, y)
    return rounded(product.negative, product.ratio, format, mode)


def multiply_add(a: int, b: int, c: int, format: Format, mode: str) -> int:
    """Returns a * b + c, rounded once, by `mode`; all values are bits of `format`. NaNs become the
    canonical one, but for c with finite a and b."""
    x, y, z = finite(a, format), finite(b, format), finite(c, format)
    if x is None or y is None:
        return _special(format.value(a) * format.value(b) + format.value(c), format)
    if z is None:
        return c
    return _sum(_product(x, y), z, format, mode)


def divide(a: int, b: int, format: Format, mode: str) -> int:
    """Returns a / b, rounded by `mode`; x / 0 is an infinity, x / infinity a zero; 0 / 0, infinity
    / infinity and NaN operands give the canonical NaN; all values are bits of `format`."""
    x, y = finite(a, format), finite(b, format)
    negative = bool((a ^ b) & format.sign)
    # Python raises an exception for division by zero, so the special cases are written out.
    if x is None or y is None:
        if x is None and y is not None and not math.isnan(format.value(a)):
            return format.infinity | (format.sign if negative else 0)
        zero_result = x is not None and not math.isnan(format.value(b))
        return (format.sign if negative else 0) if zero_result else NAN[format.bits]
    if y.integer == 0:
        sign = format.sign if negative else 0
        return format.infinity | sign if x.integer else NAN[format.bits]
    (numerator_a, denominator_a), (numerator_b, denominator_b) = x.ratio, y.ratio
    return rounded(
        negative, (numerator_a * denominator_b, denominator_a * numerator_b), format, mode
    )


def square_root(a: int, format: Format, mode: str) -> int:
    """Returns the square root of a, rounded by `mode`; the canonical NaN for a NaN and for negative
    numbers, but -0 for -0, and infinity for infinity. Both are bits of `format`."""
    x = finite(a, format)
    if x is None or (x.negative and x.integer):
        return a if a == format.infinity else NAN[format.bits]
    if x.integer == 0:
        return a
    # At least twice as many bits as the significand of the result has, and an even exponent.
    shift = 2 * format.precision + 4 + (x.exponent & 1)
    root = math.isqrt(x.integer << shift)
    exponent = (x.exponent - shift) // 2
    inexact = root * root != x.integer << shift
    # A sticky bit below the last one records that the root is inexact: it rounds as the root does.
    return rounded(False, Finite(False, 2 * root + inexact, exponent - 1).ratio, format, mode)


def from_integer(value: int, format: Format, mode: str) -> int:
    """Returns the bits of an integer in `format`, rounded by `mode`; +0 for 0."""
    return rounded(value < 0, (abs(value), 1), format, mode)


def to_format(a: int, source: Format, target: Format, mode: str) -> int:
    """Returns the bits in format `target` of the number whose bits in format `source` are `a`,
    rounded by `mode`; an infinity stays one, a NaN becomes the target's canonical one."""
    x = finite(a, source)
    if x is None:
        return _special(source.value(a), target)
    return rounded(x.negative, x.ratio, target, mode)


def _product(x: Finite, y: Finite) -> Finite:
    """Returns x * y, exactly."""
    return Finite(x.negative != y.negative, x.integer * y.integer, x.exponent + y.exponent)


def _sum(x: Finite, y: Finite, format: Format, mode: str) -> int:
    """Returns the bits of x + y in `format`, rounded by `mode`; a sum of zero is negative if both
    are, or if they differ in sign and `mode` rounds down (`rm`)."""
    exponent = min(x.exponent, y.exponent)
    total = (x.signed << (x.exponent - exponent)) + (y.signed << (y.exponent - exponent))
    negative = total < 0
    if total == 0:
        negative = x.negative if x.negative == y.negative else mode == "rm"
    return rounded(negative, Finite(negative, abs(total), exponent).ratio, format, mode)


def _special(value: float, format: Format) -> int:
    """Returns the bits of an infinity, or of the format's NaN for a NaN, whatever its payload;
    `value` is one of these."""
    if math.isnan(value):
        return NAN[format.bits]
    return format.infinity | (format.sign if value < 0 else 0)
