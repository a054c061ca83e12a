"""Formats the text of a kernel's printf calls as CUDA does.

A call passes a format string and the address of a buffer in which the arguments follow each other,
each aligned to its size: for `printf("%d %f", 7, 0.5)`, the int is at offset 0 and the double at
offset 8. Source: CUDA C++ Programming Guide, "Formatted Output": conversions of the C library, `%s`
of device strings, at most 32 arguments, and a buffer of 1 MiB if the host sets no other size
(cudaLimitPrintfFifoSize). Here each call may print that many bytes; the rest is dropped. From
OpenCL C come vectors, such as `%v4hlf`: the elements, separated by commas (OpenCL C 3.0, 6.15.14,
"printf").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

MAX_ARGUMENTS = 32
MOST_BYTES = 1 << 20
"""The limits of one call: arguments that it formats, and bytes of text (source: above)."""

# Groups: flags, width, precision, elements of a vector, length, conversion character (any, so that
# unknown ones match).
SPECIFIER = re.compile(
    rb"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(?:v(2|3|4|8|16))?(hh|hl|h|ll|l|z|j|t|L)?(.)", re.DOTALL
)
ELEMENT_BYTES = {"hh": 1, "h": 2, "hl": 4, None: 4, "l": 8}
"""The size of a vector's elements by its length modifier."""
LONG = ("l", "ll", "z", "j", "t")
NARROW = {"h": 16, "hh": 8}


class Conversion(NamedTuple):
    """A conversion specification, without the elements of its vector; `width` and `precision` are
    digits."""

    flags: str
    width: str | None
    precision: str | None
    length: str | None
    kind: str


Read = Callable[[int, int], bytes]
"""Reads memory: (address, number of bytes) to bytes."""


class PrintfArguments:
    """Reads the arguments of one thread's call in order. `taken` counts the arguments that the
    format used, `at` is the address of the next one."""

    def __init__(self, read: Read, at: int) -> None:
        """Begins at address `at` of the argument buffer, which `read` reads, with no argument
        taken."""
        self.read, self.at, self.taken = read, at, 0

    def consume(self, size: int) -> bytes | None:
        """Returns the next argument, the `size` bytes at the next multiple of `size`, and counts
        it; None (counted too, nothing read) after MAX_ARGUMENTS."""
        self.taken += 1
        if self.taken > MAX_ARGUMENTS:
            return None
        start = -(-self.at // size) * size
        self.at = start + size
        return self.read(start, size)


def read_string(read: Read, at: int) -> bytes:
    """Returns the bytes from an address up to the next zero byte, which is excluded; at most
    MOST_BYTES."""
    text = bytearray()
    while len(text) < MOST_BYTES and (byte := read(at + len(text), 1)) != b"\0":
        text += byte
    return bytes(text)


def format_printf(format: bytes, arguments: PrintfArguments) -> str:
    """Returns the text of a format and its arguments, cut at MOST_BYTES; conversions that C does
    not have, or for which no argument is left, stay as they are."""
    text, end = bytearray(), 0
    for match in SPECIFIER.finditer(format):
        text += format[end : match.start()]
        # Stop early: the rest of the format cannot change the first MOST_BYTES.
        if len(text) >= MOST_BYTES:
            break
        text += _convert(match, arguments)
        end = match.end()
    else:
        text += format[end:]
    return text[:MOST_BYTES].decode(errors="replace")


def _convert(match: re.Match[bytes], arguments: PrintfArguments) -> bytes:
    """Returns the text of one conversion specification, which SPECIFIER matched, and consumes its
    arguments, those of `*` first; the specification itself if it is none of C's (`%n` counts as
    none) or no argument is left. `%%` gives `%` and consumes none."""
    flags, width, precision, elements, length, kind = (
        part.decode("latin-1") if part is not None else None for part in match.groups()
    )
    assert flags is not None
    assert kind is not None
    if kind == "%":
        return b"%"
    if kind not in "diuxXocpsfFeEgGaA":
        return match.group()
    width, precision = (_resolved_count(count, arguments) for count in (width, precision))
    # A negative `*` width means left-justified, a negative precision none at all (C11 7.21.6.1).
    if width and width.startswith("-"):
        flags, width = flags + "-", width[1:]
    if precision and precision.startswith("-"):
        precision = None
    width, precision = _capped_count(width), _capped_count(precision)
    # Floats are promoted to double, and pointers have 8 bytes, as in a C variadic call.
    size = 8 if kind in "psfFeEgGaA" or length in LONG else 4
    shape = Conversion(flags, width, precision, length, kind)
    if elements is not None:
        vector = _vector_elements(int(elements), shape, arguments)
        return match.group() if vector is None else b",".join(_formatted(v, shape) for v in vector)
    data = arguments.consume(size)
    if data is None:
        return match.group()
    if kind == "s":
        text = read_string(arguments.read, int.from_bytes(data, "little"))
        text = text if precision is None else text[: int(precision or 0)]
        return _pad(text, flags.replace("0", ""), width)
    return _formatted(data, shape)


def _vector_elements(
    count: int, shape: Conversion, arguments: PrintfArguments
) -> list[bytes] | None:
    """Consumes a vector of `count` elements and returns their bytes, floats as doubles; None if
    there is no such vector or no argument is left. Three elements are stored as four."""
    size = ELEMENT_BYTES.get(shape.length)
    is_float = shape.kind in "fFeEgGaA"
    if size is None or shape.kind in "csp" or (is_float and size == 1):
        return None
    data = arguments.consume(size * (4 if count == 3 else count))
    if data is None:
        return None
    parts = [data[size * n : size * (n + 1)] for n in range(count)]
    if is_float:
        code = {2: "<e", 4: "<f", 8: "<d"}[size]
        return [struct.pack("<d", struct.unpack(code, part)[0]) for part in parts]
    signed = shape.kind in "di"
    wide = (int.from_bytes(part, "little", signed=signed) for part in parts)
    return [value.to_bytes(8, "little", signed=signed) for value in wide]


def _formatted(data: bytes, shape: Conversion) -> bytes:
    """Returns the text of a number, a character or a pointer of these bytes."""
    flags, width, precision, length, kind = shape
    if kind in "fFeEgG":
        shown = _python_conversion(flags, width, precision, kind) % struct.unpack("<d", data)
        return shown.encode()
    if kind in "aA":
        return _pad(_format_hexadecimal(data, precision, kind, flags), flags, width)
    if kind == "c":
        return _pad(data[:1], flags.replace("0", ""), width)
    if kind == "p":
        return _pad(f"0x{int.from_bytes(data, 'little'):x}".encode(), flags, width)
    value = int.from_bytes(data, "little", signed=kind in "di")
    if length in NARROW:
        bits = NARROW[length]
        # Truncate to the narrow type, then subtract 2^bits if its sign bit is set.
        value &= (1 << bits) - 1
        value -= (value >> (bits - 1) << bits) if kind in "di" else 0
    return _format_integer(value, flags, width, precision, kind)


def _resolved_count(count: str | None, arguments: PrintfArguments) -> str | None:
    """Returns a width or a precision as text: for `*` the next argument, a 32-bit signed integer
    (empty if none is left); others, and None, unchanged."""
    if count != "*":
        return count
    data = arguments.consume(4)
    return str(int.from_bytes(data, "little", signed=True)) if data else ""


def _capped_count(count: str | None) -> str | None:
    """Returns a width or a precision, limited to MOST_BYTES so that `%2000000000d` cannot exhaust
    memory; None stays."""
    most = str(MOST_BYTES)
    # Compares digit strings by length, then text: int() rejects more than 4300 digits.
    digits = (count or "").lstrip("0")
    return most if (len(digits), digits) > (len(most), most) else count


def _format_integer(
    value: int, flags: str, width: str | None, precision: str | None, kind: str
) -> bytes:
    """Returns an integer as C's conversion `kind` (one of "diuoxX") prints it: at least `precision`
    digits (none for 0 with precision 0), sign or prefix, padding to `width`, with zeros for flag
    `0` unless a precision or `-` is given. Python's `%` differs in `#o` and lacks unsigned ones."""
    digits = {"x": "x", "X": "X", "o": "o"}.get(kind, "d")
    body = format(abs(value), digits)
    if precision is not None:
        body = (
            "" if value == 0 and not int(precision or 0) else body.rjust(int(precision or 0), "0")
        )
        flags = flags.replace("0", "")
    if "#" in flags and value and kind in "xX":
        prefix = f"0{kind}"
    elif "#" in flags and kind == "o" and not body.startswith("0"):
        prefix, body = "", "0" + body
    else:
        prefix = ""
    if kind in "di":
        prefix = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    if "0" in flags and "-" not in flags:
        body = body.rjust(int(width or 0) - len(prefix), "0")
    return _pad((prefix + body).encode(), flags.replace("0", ""), width)


def _python_conversion(flags: str, width: str | None, precision: str | None, kind: str) -> str:
    """Returns the conversion specification of a float for Python's `%` operator, which prints it as
    C does; an empty precision (`%.f`) is 0."""
    after = "" if precision is None else f".{precision or 0}"
    return f"%{flags}{width or ''}{after}{kind}"


def _format_hexadecimal(data: bytes, precision: str | None, kind: str, flags: str) -> bytes:
    """Returns a float, given as 8 bytes, as `%a` (`%A`: upper case; flag `+`: with a sign) prints
    it: with all hexadecimal digits that it has, or cut, not rounded, to the precision. Width is
    left to the caller. C leaves the choice of the exponent open."""
    (value,) = struct.unpack("<d", data)
    text = float(value).hex()
    if "p" in text and "." in text:
        mantissa, exponent = text.split("p")
        whole, fraction = mantissa.split(".")
        fraction = fraction.rstrip("0") if precision is None else fraction[: int(precision or 0)]
        text = f"{whole}{'.' if fraction else ''}{fraction}p{exponent}"
    if "+" in flags and not text.startswith("-"):
        text = "+" + text
    return (text.upper() if kind == "A" else text).encode()


def _pad(text: bytes, flags: str, width: str | None) -> bytes:
    """Returns the text padded with spaces to `width`, on the right with flag `-`, else left."""
    size = int(width or 0)
    return text.ljust(size) if "-" in flags else text.rjust(size)
