"""Describes how the lanes of a value differ: not at all, by a fixed stride, or in any way.

A warp is one or several runs of consecutive lanes. A shape says what is known of a value before the
program runs; a stride is exact in the arithmetic of the value's type, which wraps around. What a
term (`isa.terms`) makes of shapes is `TermShapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warploom.core.types import PRED, ScalarType
from warploom.isa.terms import Term

LANES = 32
WIDTHS = (1, 2, 4, 8, 16, LANES)
"""Of how many runs a warp can consist."""


@dataclass(frozen=True, slots=True)
class VectorShape:
    """A warp is `width` runs of equal length (WIDTHS): in each, lane l of the run is the first plus
    l times `stride`. 32: nothing is known."""

    width: int
    stride: int = 0

    @property
    def is_affine(self) -> bool:
        return self.width < LANES

    @property
    def extent(self) -> int:
        """From the first to the last lane of what the shape ties together."""
        return self.stride * (LANES // self.width - 1)

    def join(self, other: VectorShape) -> VectorShape:
        """Return the shape of a value that has either."""
        together = self.is_affine and other.is_affine and self.stride == other.stride
        return VectorShape(max(self.width, other.width), self.stride) if together else VARYING


UNIFORM, VARYING = VectorShape(1), VectorShape(LANES)


def strided(width: int, stride: int, bits: int) -> VectorShape:
    """Return a stride taken between minus and plus half of the range of a number of bits."""
    half = 1 << bits - 1
    return VectorShape(width, (stride + half) % (2 * half) - half)


@dataclass(frozen=True, slots=True)
class ShapedValue:
    """An operand as far as it is known: its shape, and its bits where they are constant."""

    shape: VectorShape
    constant: int | None = None


class TermShapes:
    """The shapes of a term's nodes, for operands of which this much is known. `linear`: two rows
    stand for more, so that a value has their shape only if it grows from row to row by the same."""

    def __init__(self, arguments: Sequence[ShapedValue], *, linear: bool = False) -> None:
        self._arguments, self._linear = arguments, linear
        self._done: dict[Term, ShapedValue] = {}

    def shape(self, term: Term) -> VectorShape:
        return self._of(term).shape

    def constant(self, term: Term) -> int | None:
        """Return the bits of a node that is the same whatever the program does, if known."""
        return self._of(term).constant

    def chosen(self, term: Term) -> Term | None:
        """Return which side a `select` takes, if its condition is constant."""
        condition = self.constant(term.args[0])
        return None if condition is None else term.args[1 if condition else 2]

    def _of(self, term: Term) -> ShapedValue:
        if term not in self._done:
            self._done[term] = self._node(term)
        return self._done[term]

    def _node(self, term: Term) -> ShapedValue:
        if term.op == "const":
            return ShapedValue(UNIFORM, int(str(term.attr)))
        if term.op == "arg":
            return self._arguments[int(str(term.attr))]
        if term.op == "select" and (side := self.chosen(term)) is not None:
            return self._of(side)
        args = [self._of(a) for a in term.args]
        constants = [a.constant for a in args if a.constant is not None]
        constant = _constant_fold(term, constants) if len(constants) == len(args) else None
        shape = _shape(term, args)
        if self._linear and shape.width == 2 and not _is_linear_between_runs(term, args):
            shape = VARYING
        return ShapedValue(shape, constant)


def _shape(term: Term, args: Sequence[ShapedValue]) -> VectorShape:
    shapes = [a.shape for a in args]
    if not all(s.is_affine for s in shapes):
        return VARYING
    width = max(s.width for s in shapes)
    if all(s.stride == 0 for s in shapes):
        return VectorShape(width)
    stride = _stride(term, args) if term.type.is_integer else None
    return VARYING if stride is None else strided(width, stride, term.type.bits)


def _stride(term: Term, args: Sequence[ShapedValue]) -> int | None:
    """Return the stride of what stays linear."""
    strides = [a.shape.stride for a in args]
    match term.op:
        case "add":
            return strides[0] + strides[1]
        case "sub":
            return strides[0] - strides[1]
        case "neg" | "not":  # ~x is -1 - x
            return -strides[0]
        case "mul":
            return _scaled(args[0], args[1]) if args[0].constant is None else _scaled(*args[::-1])
        case "shl" if args[1].constant is not None:
            return strides[0] << args[1].constant
        case "truncate" | "reinterpret" if term.args[0].type.is_integer:
            return strides[0]
        case "extend" if _extends_linearly(args[0].shape, term.args[0].type.bits):
            return strides[0]
        case "select" if strides[0] == 0 and strides[1] == strides[2]:
            return strides[1]
        case _:
            return None


def _is_linear_between_runs(term: Term, args: Sequence[ShapedValue]) -> bool:
    """Returns whether what grows by the same from row to row does so after an operation."""
    if not (term.type.is_integer and all(arg.type.is_integer for arg in term.args[-1:])):
        return False
    match term.op:
        case "add" | "sub" | "neg" | "not" | "truncate" | "reinterpret" | "extend":
            return True
        case "mul":
            return args[0].shape.width == 1 or args[1].shape.width == 1
        case "shl":
            return args[1].shape.width == 1
        case "select":
            return args[0].shape.width == 1
        case _:
            return False


def _extends_linearly(shape: VectorShape, bits: int) -> bool:
    """Returns whether a value of so many bits can have the same stride in a wider type: if it does
    not wrap around, which has to be looked at."""
    return abs(shape.stride) * LANES < 1 << bits - 1


def _scaled(value: ShapedValue, factor: ShapedValue) -> int | None:
    return None if factor.constant is None else value.shape.stride * factor.constant


def _constant_fold(term: Term, constants: Sequence[int]) -> int | None:
    """Return an operation on constants, where it is one that bounds, scales or shifts are made
    of."""
    source = term.args[0].type
    if not (_is_integer(term.type) and _is_integer(source)):
        return None
    as_signed = source.is_signed and term.op != "lshr"
    values = [_signed(n, source.bits) if as_signed else n for n in constants]
    if term.op in _UNARY:
        value = _UNARY[term.op](*values)
    elif term.op in _BINARY:
        value = _BINARY[term.op](*values)
    else:
        return None
    return value & ((1 << term.type.bits) - 1)


def _is_integer(type: ScalarType) -> bool:
    return type.is_integer or type == PRED


def _quotient(a: int, b: int) -> int:
    """Towards zero; all ones where b is 0."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_UNARY: Mapping[str, Callable[[int], int]] = {
    "neg": lambda a: -a,
    "not": lambda a: ~a,
    "extend": lambda a: a,
    "truncate": lambda a: a,
    "reinterpret": lambda a: a,
}
_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "rem": lambda a, b: a - b * _quotient(a, b) if b else a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "lshr": lambda a, b: a >> b,
    "ashr": lambda a, b: a >> b,
    "min": lambda a, b: min(a, b),
    "max": lambda a, b: max(a, b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
}
"""Nodes of integers (`isa.terms`), before what is beyond their types is cut off."""


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value
