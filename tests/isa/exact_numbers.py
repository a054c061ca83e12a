"""Computes with floating-point numbers from the definitions of IEEE 754: exactly, in rationals,
then rounded once. It is written for the tests here and uses nothing of the package.

A value is a `Number`: a sign, and a size that is a rational, INFINITE, or NAN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction


class Special(Enum):
    """Sizes that are no rational."""

    INFINITE = "infinite"
    NAN = "nan"


INFINITE, NAN = Special.INFINITE, Special.NAN


@dataclass(frozen=True)
class Number:
    """A signed zero, a rational, an infinity or a NaN."""

    negative: bool
    size: Fraction | Special

    @property
    def is_nan(self) -> bool:
        return self.size is NAN

    @property
    def is_infinite(self) -> bool:
        return self.size is INFINITE

    @property
    def exact(self) -> Fraction:
        """The value of a finite number."""
        assert isinstance(self.size, Fraction)
        return -self.size if self.negative else self.size

    @property
    def order(self) -> tuple[int, Fraction]:
        """What numbers other than NaNs compare by: -0 and +0 are equal."""
        if self.is_infinite:
            return (-1 if self.negative else 1), Fraction(0)
        return 0, self.exact


NO_NUMBER = Number(False, NAN)
ZERO, ONE = Number(False, Fraction(0)), Number(False, Fraction(1))


def number(exact: Fraction | int, negative: bool = False) -> Number:
    """Returns a rational; zero has the sign that is given."""
    return Number(exact < 0 if exact else negative, Fraction(abs(exact)))


def infinity(negative: bool) -> Number:
    return Number(negative, INFINITE)


# ---- formats ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A binary format: bits of exponent and fraction; whether its highest exponent is that of
    infinity and NaNs (or, as in e4m3, all ones alone are NaN, or there is none); its NaN."""

    name: str
    exponent: int
    fraction: int
    infinite: bool = True
    nan: int | None = None

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.fraction)

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def least(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def infinity(self) -> int:
        """The bits of infinity, where there is one."""
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def largest(self) -> int:
        """The bits of the largest number."""
        if self.infinite:
            return self.infinity - 1
        return self.sign - (1 if self.nan is None else 2)

    def decode(self, bits: int) -> Number:
        """Returns the number of some bits."""
        negative, size = bool(bits & self.sign), bits & (self.sign - 1)
        if self.infinite and size >= self.infinity:
            return Number(negative, INFINITE if size == self.infinity else NAN)
        if not self.infinite and self.nan is not None and size == self.sign - 1:
            return Number(negative, NAN)
        exponent, fraction = size >> self.fraction, size & ((1 << self.fraction) - 1)
        if exponent:
            fraction |= 1 << self.fraction
        place = max(exponent, 1) - self.bias - self.fraction
        return Number(negative, Fraction(fraction) * Fraction(2) ** place)

    def encode(self, value: Number, mode: str = "rn", *, finite: bool = False) -> int:
        """Returns the bits of a value, rounded. `finite`: what is larger than every number, and
        infinity, become the largest one."""
        sign = self.sign if value.negative else 0
        if value.is_nan:
            return self.largest if self.nan is None else self.nan
        if value.is_infinite:
            return sign | (self.largest if finite else self.infinity)
        size = self._rounded(value, mode)
        if size > self.largest:
            size = self.largest if finite or not self._overflows(value, mode) else self.infinity
        return sign | size

    def _overflows(self, value: Number, mode: str) -> bool:
        """Whether a number beyond the largest one becomes infinite: in the mode to nearest, and in
        those away from zero on its side."""
        return mode in ("rn", "rna") or mode == ("rm" if value.negative else "rp")

    def _rounded(self, value: Number, mode: str) -> int:
        """Returns the bits of the size, as if exponents had no end."""
        assert isinstance(value.size, Fraction)
        size = value.size
        if not size:
            return 0
        exponent = max(log2(size), self.least)
        exactly = size / Fraction(2) ** (exponent - self.fraction)
        below = math.floor(exactly)
        rest = exactly - below
        away = {
            "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1),
            "rna": rest >= Fraction(1, 2),
            "rz": False,
            "rm": value.negative and rest > 0,
            "rp": not value.negative and rest > 0,
        }[mode]
        count = below + away
        # The exponent's field is one less than the carry of the hidden bit makes it.
        return count + ((exponent - self.least) << self.fraction)

    def flushed(self, bits: int) -> int:
        """Returns the zero of the sign in place of a subnormal."""
        normal = bits & (self.sign - 1) >= 1 << self.fraction
        return bits if normal else bits & self.sign


def log2(size: Fraction) -> int:
    """Returns the exponent of the highest power of two that is not above a positive rational."""
    estimate = size.numerator.bit_length() - size.denominator.bit_length()
    return estimate if Fraction(2) ** estimate <= size else estimate - 1


F16 = Format("f16", 5, 10, nan=0x7FFF)
BF16 = Format("bf16", 8, 7, nan=0x7FFF)
F32 = Format("f32", 8, 23, nan=0x7FFFFFFF)
F64 = Format("f64", 11, 52, nan=0xFFF8_0000_0000_0000)
TF32 = Format("tf32", 8, 10, nan=0x7FFFF)
E4M3 = Format("e4m3", 4, 3, infinite=False, nan=0x7F)
E5M2 = Format("e5m2", 5, 2, nan=0x7F)
E2M3 = Format("e2m3", 2, 3, infinite=False)
E3M2 = Format("e3m2", 3, 2, infinite=False)
E2M1 = Format("e2m1", 2, 1, infinite=False)
FORMATS = {f.name: f for f in (F16, BF16, F32, F64, TF32, E4M3, E5M2, E2M3, E3M2, E2M1)}


# ---- arithmetic ---------------------------------------------------------------------------------


def add(a: Number, b: Number, mode: str) -> Number:
    """Returns a + b (IEEE 754-2019, 6.3: an exact zero sum is -0 only in the mode downwards)."""
    if a.is_nan or b.is_nan:
        return NO_NUMBER
    if a.is_infinite or b.is_infinite:
        if a.is_infinite and b.is_infinite and a.negative != b.negative:
            return NO_NUMBER
        return a if a.is_infinite else b
    both = a.negative and b.negative
    zeros = not a.size and not b.size
    minus = a.negative if zeros and a.negative == b.negative else mode == "rm"
    return number(a.exact + b.exact, both if zeros and both else minus)


def negate(a: Number) -> Number:
    return Number(not a.negative, a.size)


def multiply(a: Number, b: Number) -> Number:
    """Returns a * b."""
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan:
        return NO_NUMBER
    if a.is_infinite or b.is_infinite:
        return infinity(negative) if a.size and b.size else NO_NUMBER
    return number(a.exact * b.exact, negative)


def divide(a: Number, b: Number) -> Number:
    """Returns a / b."""
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_infinite and b.is_infinite):
        return NO_NUMBER
    if a.is_infinite:
        return infinity(negative)
    if b.is_infinite:
        return Number(negative, Fraction(0))
    if not b.size:
        return infinity(negative) if a.size else NO_NUMBER
    return number(a.exact / b.exact, negative)


def root(a: Number) -> Number:
    """Returns the square root of a: exactly, or a rational that lies between the same two numbers
    of every format, and on the same side of the middle between them."""
    if a.is_nan or not a.size:
        return a
    if a.negative:
        return NO_NUMBER
    if a.is_infinite:
        return a
    places = 80 - log2(a.exact) // 2
    scaled = a.exact * Fraction(4) ** places
    whole = math.isqrt(math.floor(scaled))
    between = Fraction(0) if whole * whole == scaled else Fraction(1, 2)
    return number((whole + between) / Fraction(2) ** places)


def least_of(*values: Number) -> Number:
    """Returns the minimumNumber of IEEE 754-2019: -0 is below +0, a NaN loses."""
    return _extreme(min, values)


def greatest_of(*values: Number) -> Number:
    """Returns the maximumNumber of IEEE 754-2019."""
    return _extreme(max, values)


def _extreme(choose: Callable[..., Number], values: tuple[Number, ...]) -> Number:
    numbers = [each for each in values if not each.is_nan]
    if not numbers:
        return NO_NUMBER
    return choose(numbers, key=lambda v: (*v.order, not v.negative))


def saturated(value: Number) -> Number:
    """Returns a value clamped to [0, 1]; +0 for a NaN and for -0."""
    if value.is_nan or value.negative or not value.size:
        return ZERO
    return least_of(value, ONE)


INTEGRAL: dict[str, Callable[[Fraction], int]] = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}


def integral(value: Number, mode: str) -> Number:
    """Returns a value rounded to an integer, with its sign."""
    if not isinstance(value.size, Fraction):
        return value
    return number(INTEGRAL[mode](value.exact), value.negative)
