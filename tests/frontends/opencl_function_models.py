"""States what each built-in function of OpenCL C computes, and how exact it must be.

In long doubles of NumPy and integers of Python, from OpenCL C 3.0, 6.15.2 to 6.15.6, and OpenCL
3.0, "Relative Error as ULPs".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
WIDE = np.longdouble
PI = WIDE("3.14159265358979323846264338327950288")


@dataclass(frozen=True)
class Model:
    """A function: its reference, and its bound in units of the last place, of the result or of what
    `scale` gives; `second` is what it writes through its pointer. Operands that `without` is true
    of are left out."""

    reference: Callable[..., Any]
    ulps: float = 0
    second: Callable[..., Any] | None = None
    without: Callable[..., Any] | None = None
    scale: Callable[..., Any] | None = None


def by_element(function: Callable[..., float]) -> Callable[..., Array]:
    """Applies a function of Python's floats, whose errors stand for NaN or infinity."""

    def one(*values: Any) -> float:
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    def all_of(*arrays: Array) -> Array:
        items = zip(*(array.tolist() for array in arrays), strict=True)
        return np.array([one(*values) for values in items], np.float64)

    return all_of


def quarters(x: Array) -> tuple[Array, Array]:
    """Returns the nearest quarter of a turn of pi * x, modulo 4, and the rest, in units of pi."""
    part = np.fmod(x, WIDE(2))
    count = np.rint(2 * part)
    return np.where(np.isfinite(count), count, 0).astype(int) % 4, part - count / 2


def sinpi(x: Array) -> Array:
    quarter, rest = quarters(x)
    value = np.choose(quarter % 2, [np.sin(rest * PI), np.cos(rest * PI)])
    value = np.where(quarter >= 2, -value, value)
    value = np.where(np.trunc(x) == x, np.copysign(WIDE(0), x), value)
    return np.where(np.isinf(x), np.nan, value)


def cospi(x: Array) -> Array:
    quarter, rest = quarters(x)
    value = np.choose(quarter % 2, [np.cos(rest * PI), -np.sin(rest * PI)])
    return np.where(
        (quarter % 2 == 1) & (rest == 0), WIDE(0), np.where(quarter >= 2, -value, value)
    )


def tanpi(x: Array) -> Array:
    """tanpi(n) is a zero of n's sign where n is even, else of the other; at n + 0.5 it is infinite,
    for odd n negative."""
    return sinpi(x) / cospi(x)


def log_gamma(x: float) -> float:
    return math.inf if x <= 0 and (math.isinf(x) or x == int(x)) else math.lgamma(x)


def gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.gamma(x)


def powr(x: Array, y: Array) -> Array:
    undefined = (x < 0) | np.isnan(x) | np.isnan(y) | ((y == 0) & ((x == 0) | np.isinf(x)))
    undefined |= (x == 1) & np.isinf(y)
    return np.where(undefined, np.nan, np.power(np.abs(x), y))


def rootn(x: Array, n: Array) -> Array:
    with np.errstate(all="ignore"):
        root = np.power(np.abs(x), 1 / n.astype(WIDE))
    odd = n % 2 != 0
    value = np.where(odd, np.copysign(root, x), root)
    return np.where((n == 0) | ((x < 0) & ~odd) | np.isnan(x), np.nan, value)


def fract(x: Array) -> Array:
    most = 1 - WIDE(2) ** -(np.finfo(x.dtype).nmant + 1)
    part = np.minimum(x.astype(WIDE) - np.floor(x), most)
    return np.where(np.isnan(x), x, np.where(np.floor(x) == x, np.copysign(0, x), part))


def modf(x: Array) -> Array:
    return np.copysign(np.where(np.isinf(x), 0, x - np.trunc(x)), x)


def quotient(x: Array, y: Array) -> Array:
    """The low seven bits of the quotient's size, with its sign."""

    def one(a: float, b: float) -> int:
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0 or math.isinf(b):
            return 0
        numerator, by = (v.as_integer_ratio() for v in (abs(a), abs(b)))
        count, rest = divmod(numerator[0] * by[1], numerator[1] * by[0])
        double = 2 * rest - numerator[1] * by[0]
        count += double > 0 or (double == 0 and count & 1)
        return (count & 127) * (-1 if math.copysign(1, a) != math.copysign(1, b) else 1)

    return np.array([one(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], np.int32)


def round_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x.astype(WIDE)) + WIDE(0.5)), x)


def sign(x: Array) -> Array:
    return np.where(np.isnan(x), 0, np.where(x == 0, x, np.sign(x)))


def smoothstep(x: Array, y: Array, z: Array) -> Array:
    t = np.clip((z - x) / (y - x), 0, 1)
    return t * t * (3 - 2 * t)


def largest(x: Array, y: Array) -> Array:
    a, b = np.abs(x), np.abs(y)
    return np.where(a > b, x, np.where(b > a, y, np.fmax(x, y)))


def smallest(x: Array, y: Array) -> Array:
    a, b = np.abs(x), np.abs(y)
    return np.where(a < b, x, np.where(b < a, y, np.fmin(x, y)))


def any_nan(*values: Array) -> Array:
    return np.any([np.isnan(v) | np.isinf(v) for v in values], axis=0)


def any_huge(*values: Array) -> Array:
    """Differences of such numbers overflow."""
    return any_nan(*values) | np.any([np.abs(v) > 1e18 for v in values], axis=0)


def far_or_unordered(x: Array, y: Array, z: Array) -> Array:
    return any_huge(x, y, z) | (x >= y)


def both_zero(x: Array, y: Array, *more: Array) -> Array:
    """Zeros of either sign may be chosen."""
    return (x == 0) & (y == 0)


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(*(v.astype(WIDE) for v in values))


def exponent(x: Array) -> Array:
    return np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, np.frexp(x)[1] - 1.0)) + 0 * (
        np.where(np.isnan(x), np.nan, 0)
    )


def integer_exponent(x: Array) -> Array:
    least, most = -(2**31), 2**31 - 1
    special = np.where(np.isinf(x), most, least)
    return np.where(
        np.isfinite(x) & (x != 0), np.frexp(np.where(np.isfinite(x), x, 1))[1] - 1, special
    )


def mad_close(x: Array, y: Array, z: Array) -> Array:
    return any_nan(x, y, z)


MATHEMATICS = {
    "acos": Model(wide(np.arccos), 4),
    "acosh": Model(wide(np.arccosh), 4),
    "acospi": Model(wide(lambda x: np.arccos(x) / PI), 5),
    "asin": Model(wide(np.arcsin), 4),
    "asinh": Model(wide(np.arcsinh), 4),
    "asinpi": Model(wide(lambda x: np.arcsin(x) / PI), 5),
    "atan": Model(wide(np.arctan), 5),
    "atanh": Model(wide(np.arctanh), 5),
    "atanpi": Model(wide(lambda x: np.arctan(x) / PI), 5),
    "atan2": Model(wide(np.arctan2), 6),
    "atan2pi": Model(wide(lambda y, x: np.arctan2(y, x) / PI), 6),
    "cbrt": Model(wide(np.cbrt), 2),
    "ceil": Model(np.ceil),
    "copysign": Model(np.copysign),
    "cos": Model(wide(np.cos), 4),
    "cosh": Model(wide(np.cosh), 4),
    "cospi": Model(wide(cospi), 4),
    "erf": Model(by_element(math.erf), 16),
    "erfc": Model(by_element(math.erfc), 16),
    "exp": Model(wide(np.exp), 3),
    "exp2": Model(wide(np.exp2), 3),
    "exp10": Model(wide(lambda x: np.power(WIDE(10), x)), 3),
    "expm1": Model(wide(np.expm1), 3),
    "fabs": Model(np.abs),
    "fdim": Model(
        lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0))
    ),
    "floor": Model(np.floor),
    "fmax": Model(np.fmax, without=both_zero),
    "fmin": Model(np.fmin, without=both_zero),
    "fmod": Model(np.fmod),
    "fract": Model(fract, 0.5, second=np.floor),
    "frexp": Model(
        lambda x: np.frexp(x)[0], second=lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0)
    ),
    "hypot": Model(wide(np.hypot), 4),
    "ilogb": Model(integer_exponent),
    "ldexp": Model(lambda x, n: np.ldexp(x.astype(WIDE), np.clip(n, -9999, 9999)), 0.5),
    "lgamma": Model(by_element(log_gamma), 64, scale=wide(lambda x: 1 + np.abs(x))),
    "lgamma_r": Model(by_element(log_gamma), 64, scale=wide(lambda x: 1 + np.abs(x))),
    "log": Model(wide(np.log), 3),
    "log2": Model(wide(np.log2), 3),
    "log10": Model(wide(np.log10), 3),
    "log1p": Model(wide(np.log1p), 2),
    "logb": Model(exponent),
    "maxmag": Model(largest, without=both_zero),
    "minmag": Model(smallest, without=both_zero),
    "modf": Model(modf, second=np.trunc),
    # NumPy keeps a -0.0 of halves where the result is the other operand, 0.0.
    "nextafter": Model(lambda x, y: np.where(x == y, y, np.nextafter(x, y))),
    "pow": Model(wide(np.power), 16),
    "pown": Model(lambda x, n: np.power(x.astype(WIDE), n.astype(WIDE)), 16),
    "powr": Model(wide(powr), 16),
    "remainder": Model(by_element(math.remainder)),
    "remquo": Model(by_element(math.remainder), second=quotient),
    "rint": Model(np.rint),
    "rootn": Model(lambda x, n: rootn(x.astype(WIDE), n), 16),
    "round": Model(round_away),
    "rsqrt": Model(wide(lambda x: 1 / np.sqrt(x)), 2),
    "sin": Model(wide(np.sin), 4),
    "sincos": Model(wide(np.sin), 4, second=None),
    "sinh": Model(wide(np.sinh), 4),
    "sinpi": Model(wide(sinpi), 4),
    "sqrt": Model(wide(np.sqrt), 0.5),
    "tan": Model(wide(np.tan), 5),
    "tanh": Model(wide(np.tanh), 5),
    "tanpi": Model(wide(tanpi), 6),
    "tgamma": Model(by_element(gamma), 16),
    "trunc": Model(np.trunc),
    # Exact results of three operands; `mad` may be anything.
    "fma": Model(lambda x, y, z: x.astype(WIDE) * y + z, 0.5),
    # `mad` may be anything; it is `fma` on this device.
    "mad": Model(lambda x, y, z: x.astype(WIDE) * y + z, 0.5),
    # Those of common functions follow from their formulas.
    "clamp": Model(
        lambda x, y, z: np.fmin(np.fmax(x, y), z),
        without=lambda x, y, z: ~(y <= z) | (x == 0) | (y == 0) | (z == 0),
    ),
    "degrees": Model(wide(lambda x: x * 180 / PI), 2),
    "radians": Model(wide(lambda x: x * PI / 180), 2),
    "max": Model(lambda x, y: np.where(x < y, y, x), without=lambda x, y: any_nan(x, y)),
    "min": Model(lambda x, y: np.where(y < x, y, x), without=lambda x, y: any_nan(x, y)),
    "mix": Model(
        wide(lambda x, y, z: x + (y - x) * z),
        3,
        without=any_huge,
        scale=wide(lambda x, y, z: np.abs(x) + np.abs((y - x) * z)),
    ),
    "sign": Model(sign),
    "smoothstep": Model(
        wide(smoothstep), 16, without=far_or_unordered, scale=lambda x, y, z: 1 + 0 * x
    ),
    "step": Model(lambda x, y: np.where(y < x, 0.0, 1.0), without=lambda x, y: any_nan(x, y)),
}
HALVES = {
    f"half_{name}": Model(MATHEMATICS[name].reference, 8192)
    for name in ("exp", "exp2", "exp10", "log", "log2", "log10", "powr", "rsqrt", "sqrt")
} | {
    "half_recip": Model(wide(lambda x: 1 / x), 8192),
    "half_divide": Model(wide(np.divide), 8192),
    # For arguments up to 2^16.
    **{
        f"half_{name}": Model(
            MATHEMATICS[name].reference, 8192, without=lambda x: ~(np.abs(x) < 2**16)
        )
        for name in ("sin", "cos", "tan")
    },
}


def beyond(most: float, least: float = 0) -> Callable[[Array], Array]:
    """Returns where an operand is not of this size, at least and at most."""
    return lambda x: ~((np.abs(x) <= most) & (np.abs(x) >= least))


def one(*x: Array) -> Array:
    """Returns 1 for each operand: the error is absolute, in units of 2^-23."""
    return np.ones_like(x[0])


def _natives() -> tuple[dict[str, Model], dict[str, Model]]:
    """Returns the models of the `native_` functions, where CUDA states a bound of its intrinsics of
    that name (programming guide, "Intrinsic Functions", table of maximum errors; PTX ISA of
    `ex2.approx`, `sqrt.approx`, `rcp.approx`, `rsqrt.approx`). 2^-21.19 is 3.5 units of 2^-23."""
    exact = {
        name: MATHEMATICS[name].reference for name in ["sin", "cos", "tan", "exp", "exp2", "exp10"]
    }
    exact |= {
        name: MATHEMATICS[name].reference for name in ["log", "log2", "log10", "rsqrt", "sqrt"]
    }
    turn, sizes = beyond(math.pi), beyond(2.0**126, 2.0**-126)
    near, far = (lambda x: ~((x >= 0.5) & (x <= 2))), (lambda x: ~((x > 2) & (x < 1e30)))
    logarithms = {
        f"native_{name}": Model(exact[name], 4, without=near, scale=one)
        for name in ("log", "log2", "log10")
    }
    return {
        "native_sin": Model(exact["sin"], 4, without=turn, scale=one),
        "native_cos": Model(exact["cos"], 4, without=turn, scale=one),
        # A quotient of both: each is off by 3.5 units, the cosine of 1 is 0.54.
        "native_tan": Model(exact["tan"], 32, without=beyond(1), scale=one),
        # 2 + floor(1.173 |x|), or 2.97 of the second, at 20
        "native_exp": Model(exact["exp"], 25, without=beyond(20)),
        "native_exp10": Model(exact["exp10"], 61, without=beyond(20)),
        "native_exp2": Model(exact["exp2"], 2, without=beyond(126)),
        **logarithms,
        "native_rsqrt": Model(exact["rsqrt"], 2, without=sizes),
        "native_sqrt": Model(exact["sqrt"], 4, without=lambda x: sizes(x) | (x < 0)),
        "native_recip": Model(wide(lambda x: 1 / x), 1, without=sizes),
        "native_divide": Model(
            wide(np.divide),
            2,
            without=lambda x, y: beyond(2.0**60, 2.0**-60)(x) | beyond(2.0**60, 2.0**-60)(y),
        ),
        # exp2(y * log2(x)): log2 is off by 2^-22 up to 2, which y multiplies by up to 4.
        "native_powr": Model(
            MATHEMATICS["powr"].reference, 16, without=lambda x, y: near(x) | beyond(4)(y)
        ),
    }, {name: Model(model.reference, 4, without=far) for name, model in logarithms.items()}


NATIVES, NATIVE_LOGARITHMS = _natives()
"""The `native_` functions; logarithms of arguments between 0.5 and 2, and of those above."""

# ---- integers ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """The range of an integer type."""

    bits: int
    signed: bool

    @property
    def least(self) -> int:
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def most(self) -> int:
        return (1 << self.bits - self.signed) - 1

    def limited(self, value: int) -> int:
        return min(max(value, self.least), self.most)

    def unsigned(self, value: int) -> int:
        return value & (1 << self.bits) - 1


def rotated(r: Range, x: int, y: int) -> int:
    by, bits = y % r.bits, r.unsigned(x)
    return bits << by | bits >> (r.bits - by)


INTEGERS: dict[str, Callable[..., int]] = {
    "abs": lambda r, x: abs(x),
    "abs_diff": lambda r, x, y: abs(x - y),
    "add_sat": lambda r, x, y: r.limited(x + y),
    "sub_sat": lambda r, x, y: r.limited(x - y),
    "hadd": lambda r, x, y: (x + y) >> 1,
    "rhadd": lambda r, x, y: (x + y + 1) >> 1,
    "clz": lambda r, x: r.bits - r.unsigned(x).bit_length(),
    "ctz": lambda r, x: (r.unsigned(x) & -r.unsigned(x)).bit_length() - 1 if x else r.bits,
    "mul_hi": lambda r, x, y: x * y >> r.bits,
    "mad_hi": lambda r, x, y, z: (x * y >> r.bits) + z,
    "mad_sat": lambda r, x, y, z: r.limited(x * y + z),
    "popcount": lambda r, x: r.unsigned(x).bit_count(),
    "rotate": rotated,
    "upsample": lambda r, x, y: x << r.bits | y,
    "max": lambda r, x, y: max(x, y),
    "min": lambda r, x, y: min(x, y),
    "clamp": lambda r, x, y, z: min(max(x, y), z),
    "bitselect": lambda r, x, y, z: (x & ~z) | (y & z),
    # Of numbers with 24 bits.
    "mul24": lambda r, x, y: x * y,
    "mad24": lambda r, x, y, z: x * y + z,
}

# ---- relations -----------------------------------------------------------------------------------

RELATIONS: dict[str, Callable[..., Any]] = {
    "isequal": np.equal,
    "isnotequal": np.not_equal,
    "isgreater": np.greater,
    "isgreaterequal": np.greater_equal,
    "isless": np.less,
    "islessequal": np.less_equal,
    "islessgreater": lambda x, y: (x < y) | (x > y),
    "isordered": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
    "isunordered": lambda x, y: np.isnan(x) | np.isnan(y),
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "isnormal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "signbit": np.signbit,
}
