"""Computes which bits may be 1 in the first value of each lane run, for the result of one operation
(a node of a term, `isa.terms`) given those of its operands. Known zeros show that a mask, a shift
or a remainder of an affine value is affine, too (`shapes.vector_shape`).

    %tid.x                     0x3e0   in blocks 32, 64, 96 ... threads wide
    4 * %tid.x                 0xf80
    %tid.y * %ntid.x           all from 0x20 on, up to those of 1023 * 1024
    %tid.x + 8                 0x3e8

A lane run is consecutive lanes whose values differ by a constant stride. A lane's value and number
determine the first value of its run, so this holds in each lane alone: on every path, and whether
or not lanes are together. Bits above a value's width are those of its sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.isa.terms import Term


def as_signed(value: int, bits: int) -> int:
    """Returns the signed number that the lowest `bits` bits of a number represent."""
    half = 1 << bits - 1
    return (value + half) % (2 * half) - half


def from_lowest(bits: int) -> int:
    """Returns the lowest 1 of a number and all bits above it, as a negative number; 0 for 0."""
    return -(bits & -bits)


def result_ones(term: Term, ones: Sequence[int], constant: int | None) -> int:
    """Returns the bits that may be 1 in the result of an integer node, as a signed number of its
    width; -1 (any bit) for operations and shifts that are not handled. `ones` are those of its
    operands, without sign, `constant` is the last operand where it is known."""
    a, b = ones[-2:] if len(ones) > 1 else (ones[0], 0)
    match term.op:
        case "add" if a & b:
            result = _up_to_highest(_up_to_highest(a) + _up_to_highest(b)) & from_lowest(a | b)
        case "add" | "or" | "xor" | "select" | "min" | "max":
            result = a | b
        case "sub" | "neg":
            result = from_lowest(a | b)
        case "mul":
            most = _up_to_highest(a) * _up_to_highest(b)
            result = _up_to_highest(most) & -(from_lowest(a) * from_lowest(b))
        case "shl" if constant is not None:
            result = a << constant
        case "lshr" if constant is not None:
            result = a >> constant
        case "ashr" if constant is not None:
            result = as_signed(a, term.type.bits) >> constant
        case "and":
            result = a & b
        case "extend" if term.args[0].type.is_signed:
            result = as_signed(a, term.args[0].type.bits)
        case "extend" | "truncate" | "reinterpret":
            result = a
        case _:
            result = -1
    return as_signed(result, term.type.bits)


def _up_to_highest(bits: int) -> int:
    """Returns the highest 1 of a number that is not negative, and all bits below it; 0 for 0."""
    return (1 << bits.bit_length()) - 1
