"""Types of OpenCL C as the built-in functions name them (OpenCL C 3.0, 6.3)."""

from __future__ import annotations

WIDTHS = (2, 3, 4, 8, 16)
COMPONENTS = "0123456789abcdef"

SIGNED = ("char", "short", "int", "long")
UNSIGNED = ("uchar", "ushort", "uint", "ulong")
INTEGERS = tuple(name for pair in zip(SIGNED, UNSIGNED, strict=True) for name in pair)
WORDS = ("int", "uint")
FLOATS = ("float", "double", "half")
NUMBERS = (*INTEGERS, *FLOATS)

SIZES = (8, 16, 32, 64)
BITS = {
    **dict(zip(SIGNED, SIZES, strict=True)),
    **dict(zip(UNSIGNED, SIZES, strict=True)),
    **dict(zip(FLOATS, (32, 64, 16), strict=True)),
}

POINTED = ("global", "local", "private")
"""Address spaces of what functions write through pointers. The private one has no number of its own
on this target, as the generic one: one function serves both."""


def unsigned_of(element: str) -> str:
    """Returns the unsigned integer of a type's size."""
    return UNSIGNED[SIZES.index(BITS[element])]


def signed_of(element: str) -> str:
    """Returns the signed integer of a type's size."""
    return SIGNED[SIZES.index(BITS[element])]


def vector(element: str, width: int) -> str:
    """Returns the name of a vector type; the element itself for a width of 1."""
    return element if width == 1 else f"{element}{width}"


def each(width: int, expression: str) -> str:
    """Returns an expression for each component of a vector, separated by commas: `@` stands for
    what selects the component, nothing in a scalar."""
    if width == 1:
        return expression.replace("@", "")
    return ", ".join(expression.replace("@", f".s{one}") for one in COMPONENTS[:width])
