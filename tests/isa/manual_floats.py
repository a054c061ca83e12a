"""What floating-point instructions give, written from the PTX manual in exact numbers.

RESULTS has a function for each instruction: of the operation and the bits of its operands in one
lane, to the bits of its results; None where the manual leaves the result open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from exact_numbers import (
    F32,
    FORMATS,
    ONE,
    Format,
    Number,
    add,
    divide,
    greatest_of,
    least_of,
    log2,
    multiply,
    negate,
    number,
    root,
    saturated,
)

from warploom.isa.spec import Operation

Bits = Sequence[int]
Exact = Callable[[Operation, Bits], list[int] | None]
Result = Callable[[Operation, Bits], "Sequence[int | Near] | None"]
PAIRS = {"f16x2": ("f16", 16), "bf16x2": ("bf16", 16), "f32x2": ("f32", 32)}


def by_element(function: Callable[[Operation, Format, Bits], int | None]) -> Exact:
    """Returns the function of whole operands, for one of their elements."""

    def whole(operation: Operation, values: Bits) -> list[int] | None:
        type = operation.modifiers.text("type", "")
        name, width = PAIRS.get(type, (type, 64))
        results: list[int] = []
        for place in range(0, 2 * width if type in PAIRS else 1, width):
            mask = (1 << width) - 1
            part = function(operation, FORMATS[name], [v >> place & mask for v in values])
            if part is None:
                return None
            results.append(part << place)
        return [sum(results)]

    return whole


def operands(operation: Operation, format: Format, values: Bits) -> list[Number]:
    """Decodes operands; `.ftz` flushes subnormals first."""
    flush = "ftz" in operation.modifiers
    return [format.decode(format.flushed(v) if flush else v) for v in values]


def written(operation: Operation, format: Format, value: Number, mode: str) -> int:
    """Rounds and encodes a result: `.sat` clamps it, `.relu` makes it no less than +0."""
    m = operation.modifiers
    if "sat" in m:
        value = saturated(value)
    bits = format.encode(value, mode)
    if "relu" in m and not value.is_nan and value.negative:
        bits = 0
    return format.flushed(bits) if "ftz" in m else bits


def arithmetic(compute: Callable[..., Number]) -> Exact:
    """Returns the function of an operation that rounds once; `compute` has the mode last."""

    def result(operation: Operation, values: Bits) -> list[int] | None:
        if "atype" in operation.modifiers:
            return mixed(operation, values)
        return by_element(single)(operation, values)

    def single(operation: Operation, format: Format, values: Bits) -> int:
        mode = operation.modifiers.text("rnd", "rn")
        value = compute(*operands(operation, format, values), mode)
        return written(operation, format, value, mode)

    def mixed(operation: Operation, values: Bits) -> list[int]:
        narrow = FORMATS[operation.modifiers.text("atype", "")]
        mode = operation.modifiers.text("rnd", "rn")
        numbers = [narrow.decode(v) for v in values[:-1]]
        value = compute(*numbers, FORMATS["f32"].decode(values[-1]), mode)
        return [written(operation, FORMATS["f32"], value, mode)]

    return result


def fused(a: Number, b: Number, c: Number, mode: str) -> Number:
    return add(multiply(a, b), c, mode)


def multiply_add(operation: Operation, values: Bits) -> list[int] | None:
    """With a rounding mode `mad` is `fma`. Without one it is sm_1x's: 23 bits of the product's
    fraction remain, whatever its exponent; and it is `mul` and `add` where zero is added."""
    if "rnd" in operation.modifiers:
        return arithmetic(fused)(operation, values)
    a, b, c = operands(operation, F32, values)
    product = multiply(a, b)
    if c.size == 0:
        bits = F32.encode(product, "rn")
        product = F32.decode(F32.flushed(bits) if "ftz" in operation.modifiers else bits)
    elif isinstance(product.size, Fraction) and product.size:
        unit = Fraction(2) ** (log2(product.size) - 23)
        product = number(product.size // unit * unit * (-1 if product.negative else 1))
    return [written(operation, F32, add(product, c, "rn"), "rn")]


def sign_only(change: Callable[[int, int], int]) -> Exact:
    """Returns the function of an operation that changes the sign bit alone; of a NaN the manual
    leaves the result open, and that of an .f32 is canonical (an H200)."""

    def single(operation: Operation, format: Format, values: Bits) -> int | None:
        if format is F32 and format.decode(values[0]).is_nan:
            return format.nan
        bits = format.flushed(values[0]) if "ftz" in operation.modifiers else values[0]
        return change(bits, format.sign)

    return by_element(single)


def extreme(choose: Callable[..., Number]) -> Exact:
    """Returns the function of `min` or `max`."""

    def single(operation: Operation, format: Format, values: Bits) -> int:
        m = operation.modifiers
        numbers = operands(operation, format, values)
        if any(n.is_nan for n in numbers) and ("NaN" in m or all(n.is_nan for n in numbers)):
            assert format.nan is not None
            return format.nan
        sizes = [Number(False, n.size) for n in numbers] if "abs" in m else numbers
        value = choose(*sizes)
        if "xorsign" in m:
            value = Number(numbers[0].negative != numbers[1].negative, value.size)
        return format.encode(value)

    return by_element(single)


def testp(operation: Operation, values: Bits) -> list[int]:
    format = FORMATS[operation.modifiers.text("type", "")]
    size = values[0] & (format.sign - 1)
    least = 1 << format.fraction
    return [
        int(
            {
                "finite": size < format.infinity,
                "infinite": size == format.infinity,
                "number": size <= format.infinity,
                "notanumber": size > format.infinity,
                "normal": least <= size < format.infinity,
                "subnormal": 0 < size < least,
            }[operation.modifiers.text("test", "")]
        )
    ]


def copysign(operation: Operation, values: Bits) -> list[int]:
    sign = FORMATS[operation.modifiers.text("type", "")].sign
    return [values[0] & sign | values[1] & (sign - 1)]


@dataclass(frozen=True)
class Near:
    """Bits of a float of which the manual gives a bound of the error: so many last places."""

    bits: int
    places: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(self.bits - other) <= self.places

    def __hash__(self) -> int:
        return 0


def quotient(result: Exact) -> Result:
    """`.approx` and `.full` are bounded by 2 last places. Of .f64 and of a subnormal divisor with
    `.approx` the manual says less; a large divisor gives 0, or a NaN."""

    def known(operation: Operation, values: Bits) -> list[int | Near] | None:
        m = operation.modifiers
        exact = result(operation, values)
        if "rnd" in m:
            return list(exact or ())
        format = FORMATS[m.text("type", "")]
        divisor = values[-1] & (format.sign - 1)
        if format.name == "f64" or (operation.name == "div" and divisor < 1 << format.fraction):
            return None
        if operation.name == "div" and "approx" in m and divisor < format.infinity:
            limit = format.encode(number(2**126))
            infinite = values[0] & (format.sign - 1) == format.infinity
            if divisor > limit:
                zero = (values[0] ^ values[1]) & format.sign
                numerator = format.decode(values[0])
                return [0x7FFFFFFF if infinite or numerator.is_nan else zero]
        assert exact is not None
        whole = format.decode(exact[0])
        bounded = isinstance(whole.size, Fraction) and whole.size
        return [Near(exact[0], 2) if bounded else exact[0]]

    return known


def inverse_root(a: Number, mode: str) -> Number:
    return divide(ONE, root(a))


EXACT: dict[str, Exact] = {
    "add": arithmetic(add),
    "sub": arithmetic(lambda a, b, mode: add(a, negate(b), mode)),
    "mul": arithmetic(lambda a, b, mode: multiply(a, b)),
    "fma": arithmetic(fused),
    "mad": multiply_add,
    "neg": sign_only(lambda bits, sign: bits ^ sign),
    "abs": sign_only(lambda bits, sign: bits & ~sign),
    "min": extreme(least_of),
    "max": extreme(greatest_of),
    "testp": testp,
    "copysign": copysign,
}
RESULTS: dict[str, Result] = {
    **EXACT,
    "div": quotient(arithmetic(lambda a, b, mode: divide(a, b))),
    "rcp": quotient(arithmetic(lambda a, mode: divide(ONE, a))),
    "sqrt": quotient(arithmetic(lambda a, mode: root(a))),
    "rsqrt": quotient(arithmetic(inverse_root)),
}
