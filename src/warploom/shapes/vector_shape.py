"""Defines the lattice of vector shapes: how the lanes of a value in a warp differ.

A value is uniform (one value), affine (a constant stride from lane to lane), either of them in each
of several runs of consecutive lanes, or varying, as in the region vectorizer RV:

    %ctaid.x                VectorShape(1)       uniform
    4 * %tid.x              VectorShape(1, 4)    affine<4>, in blocks with all threads along x
    4 * %tid.x              VectorShape(2, 4)    affine<4>x16, in blocks 16 threads wide
    %r1 loaded by %tid.x    VectorShape(32)      varying

Strides are exact in the arithmetic of the value's type, which wraps around. `TermShapes` evaluates
terms (`isa.terms`) over shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warploom.core.types import PRED, ScalarType
from warploom.isa.terms import Term

LANES = 32
WIDTHS = (1, 2, 4, 8, 16, LANES)
"""The numbers of runs that a warp can consist of."""


@dataclass(frozen=True, slots=True)
class VectorShape:
    """The shape of a value: a warp is `width` runs of equal length (WIDTHS), and lane l of a run
    has the run's first value plus l times `stride`. Width 32: varying."""

    width: int
    stride: int = 0

    @property
    def is_affine(self) -> bool:
        """Returns whether the value is uniform or affine, in the warp or in each run; else it is
        varying."""
        return self.width < LANES

    @property
    def extent(self) -> int:
        """Returns the difference between the last and the first lane of a run, in the unit of the
        stride."""
        return self.stride * (LANES // self.width - 1)

    def join(self, other: VectorShape) -> VectorShape:
        """Returns the least shape that covers both shapes: the one of more runs if both are affine
        with one stride, else varying."""
        together = self.is_affine and other.is_affine and self.stride == other.stride
        return VectorShape(max(self.width, other.width), self.stride) if together else VARYING


UNIFORM, VARYING = VectorShape(1), VectorShape(LANES)


def strided(width: int, stride: int, bits: int) -> VectorShape:
    """Returns a shape with the stride reduced to the signed range of `bits` bits."""
    half = 1 << bits - 1
    return VectorShape(width, (stride + half) % (2 * half) - half)


@dataclass(frozen=True, slots=True)
class ShapedValue:
    """An operand's shape, and its bits as an unsigned number if they are constant."""

    shape: VectorShape
    constant: int | None = None


class TermShapes:
    """Evaluates the shapes and constants of a term's nodes from those of its arguments. With
    `linear`, the two runs of a shape of width 2 stand for the rows of a whole thread block, which
    has more: a result retains the shape only if it changes by the same amount from row to row."""

    def __init__(self, arguments: Sequence[ShapedValue], *, linear: bool = False) -> None:
        self._arguments, self._linear = arguments, linear
        self._done: dict[Term, ShapedValue] = {}

    def shape(self, term: Term) -> VectorShape:
        return self._of(term).shape

    def constant(self, term: Term) -> int | None:
        """Returns the bits of a node that is constant; None otherwise."""
        return self._of(term).constant

    def chosen(self, term: Term) -> Term | None:
        """Returns the operand that a `select` with a constant condition chooses; None otherwise."""
        condition = self.constant(term.args[0])
        return None if condition is None else term.args[1 if condition else 2]

    def _of(self, term: Term) -> ShapedValue:
        """Returns the shape and constant of a node, evaluated once."""
        if term not in self._done:
            self._done[term] = self._node(term)
        return self._done[term]

    def _node(self, term: Term) -> ShapedValue:
        """Returns the shape of a node, and its constant if those of its operands are known."""
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
    """Returns the shape of a node's result, given those of its operands: varying if one of them is,
    or if the operation does not map strides to a stride."""
    shapes = [a.shape for a in args]
    if not all(s.is_affine for s in shapes):
        return VARYING
    width = max(s.width for s in shapes)
    # Any operation maps operands that are equal in each run to a result that is.
    if all(s.stride == 0 for s in shapes):
        return VectorShape(width)
    stride = _stride(term, args) if term.type.is_integer else None
    return VARYING if stride is None else strided(width, stride, term.type.bits)


def _stride(term: Term, args: Sequence[ShapedValue]) -> int | None:
    """Returns the stride of an integer node's result, before reduction to its width; None if the
    result is not affine, or only if a factor or shift that is not constant were known."""
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
    """Returns whether a node whose operands change by the same amount from run to run does so, too:
    sums, conversions of integers, and products, shifts and selections whose other operand is the
    same in all runs."""
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
    """Returns whether a stride is so small that 32 lanes span less than half of the range of `bits`
    bits. Then a value of that width keeps its stride when it is extended, if no run of it wraps
    around, which emitted code checks."""
    return abs(shape.stride) * LANES < 1 << bits - 1


def _scaled(value: ShapedValue, factor: ShapedValue) -> int | None:
    """Returns the stride of a product with a constant factor; None if the factor is not
    constant."""
    return None if factor.constant is None else value.shape.stride * factor.constant


def _constant_fold(term: Term, constants: Sequence[int]) -> int | None:
    """Returns the bits of an operation's result on constants, truncated to its type; None for
    floats, and for operations that do not occur in bounds, scales or shifts."""
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
    """Returns whether a type is an integer or a predicate, whose values fold as integers."""
    return type.is_integer or type == PRED


def _quotient(dividend: int, divisor: int) -> int:
    """Returns the quotient rounded towards zero; -1 (all ones) if the divisor is 0."""
    if divisor == 0:
        return -1
    return abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)


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
"""Operations on Python integers by node (`isa.terms`); the caller truncates results to their
types."""


def _signed(value: int, bits: int) -> int:
    """Returns the signed number that a bit pattern of `bits` bits represents."""
    return value - (1 << bits) if value >> bits - 1 else value
