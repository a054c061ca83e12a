"""How the lanes of a value differ: not at all, by a fixed stride, or in any way.

A warp is two rows of 16 lanes. A shape says what is known of a value before the program runs; a
stride is exact in the arithmetic of the value's type, which wraps around. What a term (`isa.terms`)
makes of shapes is `TermShapes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.isa.terms import Term

LANES = 32


@dataclass(frozen=True, slots=True)
class Shape:
    """`width` 1: lane l is the first plus l times `stride`. 2: in each row, lane l of the row is
    the row's first plus l times `stride`. 32: nothing is known."""

    width: int
    stride: int = 0

    @property
    def is_known(self) -> bool:
        return self.width < LANES

    @property
    def reach(self) -> int:
        """From the first to the last lane of what the shape ties together."""
        return self.stride * (LANES // self.width - 1)

    def join(self, other: Shape) -> Shape:
        """The shape of a value that has either."""
        together = self.is_known and other.is_known and self.stride == other.stride
        return Shape(max(self.width, other.width), self.stride) if together else VECTOR


UNIFORM, VECTOR = Shape(1), Shape(LANES)


def strided(width: int, stride: int, bits: int) -> Shape:
    """A stride taken between minus and plus half of the range of a number of bits."""
    half = 1 << bits - 1
    return Shape(width, (stride + half) % (2 * half) - half)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an operand: its shape, and its bits where they are constant."""

    shape: Shape
    constant: int | None = None


class TermShapes:
    """The shapes of a term's nodes, for operands of which this much is known. `linear`: two rows
    stand for more, so that a value has their shape only if it grows from row to row by the same."""

    def __init__(self, arguments: Sequence[Known], *, linear: bool = False) -> None:
        self._arguments, self._linear = arguments, linear
        self._done: dict[Term, Known] = {}

    def shape(self, term: Term) -> Shape:
        return self._of(term).shape

    def constant(self, term: Term) -> int | None:
        """The bits of a node that is the same whatever the program does, if known."""
        return self._of(term).constant

    def chosen(self, term: Term) -> Term | None:
        """Which side a `select` takes, if its condition is constant."""
        condition = self.constant(term.args[0])
        return None if condition is None else term.args[1 if condition else 2]

    def _of(self, term: Term) -> Known:
        if term not in self._done:
            self._done[term] = self._node(term)
        return self._done[term]

    def _node(self, term: Term) -> Known:
        if term.op == "const":
            return Known(UNIFORM, int(str(term.attr)))
        if term.op == "arg":
            return self._arguments[int(str(term.attr))]
        if term.op == "select" and (side := self.chosen(term)) is not None:
            return self._of(side)
        args = [self._of(a) for a in term.args]
        constants = [a.constant for a in args if a.constant is not None]
        folded = _folded(term, constants) if len(constants) == len(args) else None
        shape = _shape(term, args)
        if self._linear and shape.width == 2 and not _is_linear(term, args):
            shape = VECTOR
        return Known(shape, folded)


def _shape(term: Term, args: Sequence[Known]) -> Shape:
    shapes = [a.shape for a in args]
    if not all(s.is_known for s in shapes):
        return VECTOR
    width = max(s.width for s in shapes)
    if all(s.stride == 0 for s in shapes):
        return Shape(width)
    stride = _stride(term, args) if term.type.is_integer else None
    return VECTOR if stride is None else strided(width, stride, term.type.bits)


def _stride(term: Term, args: Sequence[Known]) -> int | None:
    """The stride of what stays linear."""
    strides = [a.shape.stride for a in args]
    match term.op:
        case "add":
            return strides[0] + strides[1]
        case "sub":
            return strides[0] - strides[1]
        case "neg":
            return -strides[0]
        case "mul":
            return _scaled(args[0], args[1]) if args[0].constant is None else _scaled(*args[::-1])
        case "shl" if args[1].constant is not None:
            return strides[0] << args[1].constant
        case "truncate" | "reinterpret" if term.args[0].type.is_integer:
            return strides[0]
        case "extend" if _stays(args[0].shape, term.args[0].type.bits):
            return strides[0]
        case "select" if strides[0] == 0 and strides[1] == strides[2]:
            return strides[1]
        case _:
            return None


def _is_linear(term: Term, args: Sequence[Known]) -> bool:
    """Whether what grows by the same from row to row does so after an operation."""
    if not (term.type.is_integer and all(arg.type.is_integer for arg in term.args[-1:])):
        return False
    match term.op:
        case "add" | "sub" | "neg" | "truncate" | "reinterpret" | "extend":
            return True
        case "mul":
            return args[0].shape.width == 1 or args[1].shape.width == 1
        case "shl":
            return args[1].shape.width == 1
        case "select":
            return args[0].shape.width == 1
        case _:
            return False


def _stays(shape: Shape, bits: int) -> bool:
    """Whether a value of so many bits can have the same stride in a wider type: if it does not wrap
    around, which has to be looked at."""
    return abs(shape.stride) * LANES < 1 << bits - 1


def _scaled(value: Known, factor: Known) -> int | None:
    return None if factor.constant is None else value.shape.stride * factor.constant


def _folded(term: Term, given: Sequence[int]) -> int | None:
    """An operation on constants, where it is one that scales or shifts are made of."""
    if not (term.type.is_integer or term.type.bits == 1):
        return None
    source = term.args[0].type
    values = [_signed(n, source.bits) if source.is_signed else n for n in given]
    found = _fold(term.op, values)
    return None if found is None else found & ((1 << term.type.bits) - 1)


def _fold(op: str, values: Sequence[int]) -> int | None:
    match op, values:
        case "add", (a, b):
            return a + b
        case "sub", (a, b):
            return a - b
        case "mul", (a, b):
            return a * b
        case "and", (a, b):
            return a & b
        case "shl", (a, b):
            return a << b
        case "min", (a, b):
            return min(a, b)
        case "lt", (a, b):
            return int(a < b)
        case "extend" | "truncate" | "reinterpret", (a,):
            return a
        case _:
            return None


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value
