"""Explicit conversions, with saturation and rounding (OpenCL C 3.0, 6.4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warploom.frontends.opencl_library.elements import (
    BITS,
    FLOATS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    each,
    vector,
)

NAME = re.compile(
    rf"convert_({'|'.join(NUMBERS)})(2|3|4|8|16)?(_sat)?(?:_rt([ezpn]))?",
)
PTX_MODES = {"e": "rn", "z": "rz", "p": "rp", "n": "rm"}
_TO_INTEGRAL = {"e": "__builtin_rint", "z": "__builtin_trunc", "p": "__builtin_ceil"}
_TO_INTEGRAL["n"] = "__builtin_floor"
_REGISTERS = {16: "h", 32: "r", 64: "l"}
_FLOAT_REGISTERS = {"half": "h", "float": "f", "double": "d"}


def conversion(name: str) -> Iterator[str]:
    """Yields the overloads of a conversion by its name."""
    found = NAME.fullmatch(name)
    assert found is not None
    target, width, saturates, mode = found[1], int(found[2] or 1), bool(found[3]), found[4]
    for source in NUMBERS:
        value = _converted(source, target, saturates=saturates, mode=mode)
        scalar = f"__cl_{name}_{source}"
        yield f"__cl_inline {target} {scalar}({source} x) {value}"
        result = vector(target, width)
        yield (
            f"__cl_inline {result} {name}({vector(source, width)} x)"
            f" {{ return ({result})({each(width, f'{scalar}(x@)')}); }}"
        )


def _converted(source: str, target: str, *, saturates: bool, mode: str | None) -> str:
    """Returns the body of a scalar conversion of `x`."""
    if target in FLOATS:
        return _to_float(source, target, mode or "e")
    if source in FLOATS:
        return _to_integer(source, target, saturates=saturates, mode=mode or "z")
    if not saturates:
        return f"{{ return ({target})x; }}"
    least, most = _limits(source), _limits(target)
    tests = ""
    if most[1] < least[1]:
        tests += f"if (x > ({source}){most[1]}) return ({target}){most[1]}; "
    if most[0] > least[0]:
        lowest = "0" if most[0] == 0 else f"(-{-most[0] - 1} - 1)"
        tests += f"if (x < ({source}){lowest}) return ({target}){lowest}; "
    return f"{{ {tests}return ({target})x; }}"


def _limits(element: str) -> tuple[int, int]:
    bits = BITS[element]
    return (0, (1 << bits) - 1) if element in UNSIGNED else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _to_integer(source: str, target: str, *, saturates: bool, mode: str) -> str:
    """Rounds to an integral value, and converts that: a NaN is 0, as where numbers saturate."""
    letter = "" if source == "double" else "f"
    wide = "double" if source == "double" else "float"
    rounded = f"{wide} r = {_TO_INTEGRAL[mode]}{letter}(x);"
    low, high = _limits(target)
    least, most = (f"({target}){'0' if low == 0 else f'(-{-low - 1} - 1)'}", f"({target}){high}UL")
    edge = f"0x1p{BITS[target] - (target in SIGNED)}f"
    lowest = "0" if low == 0 else f"-{edge}"
    # Outside the range a number may become anything, where it does not saturate: as on the device.
    return (
        f"{{ {rounded} return x != x ? 0 : r < {lowest} ? {least} : r >= {edge} ? {most}"
        f" : ({target})r; }}"
    )


def _to_float(source: str, target: str, mode: str) -> str:
    exact = source in FLOATS and BITS[source] <= BITS[target]
    exact = exact or (source not in FLOATS and BITS[source] < _FRACTION[target])
    if exact or mode == "e":
        return f"{{ return ({target})x; }}"
    if source in FLOATS:
        kind, register, given = f"f{BITS[source]}", _FLOAT_REGISTERS[source], source
    else:
        bits = max(BITS[source], 32)
        signed = source in SIGNED
        kind, register = f"{'s' if signed else 'u'}{bits}", _REGISTERS[bits]
        given = (SIGNED if signed else UNSIGNED)[2 if bits == 32 else 3]
    made = "ushort" if target == "half" else target
    end = "__builtin_astype(r, half)" if target == "half" else "r"
    return (
        f'{{ {made} r; __asm__("cvt.{PTX_MODES[mode]}.f{BITS[target]}.{kind} %0, %1;"'
        f' : "={_FLOAT_REGISTERS[target]}"(r) : "{register}"(({given})x)); return {end}; }}'
    )


_FRACTION = {"half": 11, "float": 24, "double": 53}


def half_roundings() -> Iterator[str]:
    """Yields the functions that round to `half`, for `vstore_half`."""
    for source in ("float", "double"):
        for mode, way in PTX_MODES.items():
            body = _to_float(source, "half", mode)
            yield f"__cl_inline half __cl_half_{way}_{source}({source} x) {body}"
