"""What conversions give, written from the PTX manual in exact numbers."""

from __future__ import annotations

from fractions import Fraction

from exact_numbers import FORMATS, INFINITE, TF32, Format, Number, integral, number, saturated
from manual_floats import PAIRS, Bits, Result
from manual_integers import clamp, value_of

from warploom.isa.spec import Operation

SINGLE = FORMATS["f32"]
DOUBLE = FORMATS["f64"]


def cvt(operation: Operation, values: Bits) -> list[int] | None:
    """Dispatches on the types."""
    m = operation.modifiers
    dtype, type = m.text("dtype", ""), m.text("type", "")
    if "pack" in m:
        return packed_integers(dtype, values)
    if "tf32" in m:
        return [to_tf32(operation, values[0])]
    if "ue8m0x2" in m:
        return (
            scales_to_halves(values) if "bf16x2" in m and "rn" in m else scales(operation, values)
        )
    if "rs" in m:
        return [at_random(operation, dtype, values)]
    if dtype in PAIRS or dtype.endswith("x2"):
        return [to_pair(operation, dtype, type, values)]
    if dtype in FORMATS:
        source = source_number(operation, type, values[0])
        return [to_float(operation, FORMATS[dtype], source, values[0], type == dtype)]
    return [to_integer(operation, dtype, type, values[0])]


def source_number(operation: Operation, type: str, bits: int) -> Number:
    """Decodes the source; `.ftz` is about .f32 alone."""
    if type in FORMATS:
        format = FORMATS[type]
        flush = "ftz" in operation.modifiers and type == "f32"
        return format.decode(format.flushed(bits) if flush else bits)
    return number(value_of(bits, type[0], int(type[1:])))


def to_float(operation: Operation, format: Format, value: Number, bits: int, same: bool) -> int:
    m = operation.modifiers
    if m["irnd"]:
        value = integral(value, m.text("irnd", ""))
    if "sat" in m:
        value = saturated(value)
    elif value.is_nan and operation.modifiers.text("type", "") == "f32" and format is DOUBLE:
        return quiet_double(bits)
    found = rounded(operation, format, value, m.text("rnd", "rn"))
    return format.flushed(found) if "ftz" in m and format is SINGLE else found


def quiet_double(bits: int) -> int:
    """Returns the double with the sign and the payload of a NaN in single precision, made quiet: an
    H200 gives fff82468a0000000 for ffc12345."""
    return (bits >> 31) << 63 | 0xFFF << 51 | (bits & 0x7FFFFF) << 29


def rounded(operation: Operation, format: Format, value: Number, mode: str) -> int:
    """Encodes with `.relu`, of which a negative number is +0, and `.satfinite`."""
    m = operation.modifiers
    if "relu" in m and value.negative and not value.is_nan:
        return 0
    return format.encode(value, mode, finite="satfinite" in m)


def to_integer(operation: Operation, dtype: str, type: str, bits: int) -> int:
    m = operation.modifiers
    kind, width = dtype[0], int(dtype[1:])
    value = source_number(operation, type, bits)
    mask = (1 << width) - 1
    if type not in FORMATS:
        exact = int(value.exact)
        return (clamp(exact, width, sign=kind == "s") if "sat" in m else exact) & mask
    if value.is_nan:
        return 1 << (width - 1) if type == "f64" or width == 64 else 0
    if value.is_infinite:
        return clamp(-(1 << 99) if value.negative else 1 << 99, width, sign=kind == "s") & mask
    whole = int(integral(value, m.text("irnd", "")).exact)
    return clamp(whole, width, sign=kind == "s") & mask


def to_pair(operation: Operation, dtype: str, type: str, values: Bits) -> int:
    """The second of two singles, or the low element, goes to the low element."""
    target, width = element(dtype)
    if "f32" in operation.modifiers:
        numbers = [SINGLE.decode(v) for v in reversed(values)]
    else:
        source, size = element(type)
        mask = (2 * source.sign) - 1
        numbers = [source.decode(values[0] >> at & mask) for at in (0, size)]
    mode = operation.modifiers.text("rnd", "rn")
    found = [rounded(operation, target, n, mode) for n in numbers]
    return found[1] << width | found[0]


def at_random(operation: Operation, dtype: str, values: Bits) -> int:
    """Random bits are added below the last place, and what lies there is cut. The low half of them
    is for the low elements. Of two bytes for two elements of four bits, the low one is for the
    lower element: the manual leaves their order open."""
    name, count = dtype[:-2], int(dtype[-1])
    target = FORMATS[name]
    bits = {"f16": 13, "e2m1": 8}.get(name, 16)
    halves = [values[-1] & 0xFFFF, values[-1] >> 16]
    if count == 2:
        given = halves
    elif name == "e2m1":
        given = [halves[0], halves[1], halves[0] >> 8, halves[1] >> 8]
    else:
        given = [halves[0], halves[0], halves[1], halves[1]]
    width = 4 * (1 + (name != "e2m1")) if count == 4 else 16
    found = 0
    for place, (value, random) in enumerate(zip(reversed(values[:-1]), given, strict=True)):
        one = SINGLE.decode(value)
        if isinstance(one.size, Fraction) and one.size:
            one = raised(one, target, Fraction(random % (1 << bits), 1 << bits))
        found |= rounded(operation, target, one, "rz") << width * place
    return found


def raised(value: Number, format: Format, part: Fraction) -> Number:
    """Returns a number that is larger by a part of the format's last place at it. Beyond the
    largest number there is infinity, as if rounded to nearest."""
    exact = abs(value.exact)
    exponent = format.least
    while Fraction(2) ** (exponent + 1) <= exact:
        exponent += 1
    sum = exact + part * Fraction(2) ** (exponent - format.fraction)
    limit = format.decode(format.largest).exact + Fraction(2) ** (exponent - format.fraction)
    beyond = format.infinite and exponent >= format.bias and sum >= limit
    return Number(value.negative, INFINITE if beyond else sum)


def element(pair: str) -> tuple[Format, int]:
    """The format of a pair's elements, and how far from each other they begin."""
    name = pair.removesuffix("x2")
    return FORMATS[name], {"f16": 16, "bf16": 16, "e2m1": 4}.get(name, 8)


def to_tf32(operation: Operation, bits: int) -> int:
    """A number of 19 bits at the top of a word; NaNs are the canonical one of .f32."""
    value = SINGLE.decode(bits)
    if value.is_nan:
        return 0x7FFFFFFF
    return rounded(operation, TF32, value, operation.modifiers.text("rnd", "rna")) << 13


def packed_integers(dtype: str, values: Bits) -> list[int]:
    """{low bits of c, a, b}, a and b clamped to the small type."""
    kind, width = dtype[0], int(dtype[1:])
    a, b = (clamp(value_of(v, "s", 32), width, sign=kind == "s") % (1 << width) for v in values[:2])
    above = values[2] if len(values) > 2 else 0
    return [(above << 2 * width | a << width | b) & 0xFFFFFFFF]


def scales(operation: Operation, values: Bits) -> list[int]:
    """The sizes as powers of two, 2^(e - 127); 255 is NaN."""
    m = operation.modifiers
    if "f32" in m:
        numbers = [SINGLE.decode(v) for v in reversed(values)]
    else:
        numbers = [FORMATS["bf16"].decode(values[0] >> at & 0xFFFF) for at in (0, 16)]
    finite = "satfinite" in m
    low, high = (scale(n, m.text("rnd", ""), finite=finite) for n in numbers)
    return [high << 8 | low]


def scale(value: Number, mode: str, *, finite: bool) -> int:
    if value.is_nan:
        return 255
    if value.is_infinite:
        return 254 if finite else 255
    size = abs(value.exact)
    places = [e for e in range(255) if Fraction(2) ** (e - 127) <= size]
    below = places[-1] if places else -1
    exactly = below >= 0 and Fraction(2) ** (below - 127) == size
    found = below if exactly or mode == "rz" else below + 1
    return min(max(0, found), 254 if finite else 255)


def scales_to_halves(values: Bits) -> list[int]:
    brain = FORMATS["bf16"]
    found = [
        0x7FFF if e == 255 else brain.encode(number(Fraction(2) ** (e - 127)))
        for e in (values[0] & 0xFF, values[0] >> 8)
    ]
    return [found[1] << 16 | found[0]]


RESULTS: dict[str, Result] = {"cvt": cvt}
