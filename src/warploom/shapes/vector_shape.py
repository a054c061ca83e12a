"""Defines the lattice of vector shapes: how the lanes of a value in a warp differ.

A value is uniform (one value), affine (a constant stride from lane to lane), either of them in each
of several runs of consecutive lanes, or varying, as in the region vectorizer RV:

    %ctaid.x                uniform           VectorShape(1)
    4 * %tid.x              affine<4>         VectorShape(1, 4): all threads of a block along x
                            affine<4>x16      VectorShape(2, 4): blocks 48, 80, 112 ... threads wide
                            affine<4>x16r2    VectorShape(1, 4, repeats=2): 16 threads wide
    %r1 loaded by %tid.x    varying           VectorShape(32)

Strides are exact in the arithmetic of the value's type, which wraps around. `TermShapes` evaluates
terms (`isa.terms`) over shapes. A mask or a shift of an affine value is affine or uniform where
each run begins at a multiple of a power of two and ends before the next (`shapes.run_starts`):

    %tid.x & 31             VectorShape(1, 1)    in blocks 32, 64, 96 ... threads wide
    %tid.x >> 5             VectorShape(1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warploom.core.types import PRED, ScalarType
from warploom.isa.terms import Term
from warploom.shapes.run_starts import as_signed, from_lowest, result_ones

LANES = 32
WIDTHS = frozenset({1, 2, 4, 8, 16, LANES})
"""The numbers of runs that a warp can consist of."""


@dataclass(frozen=True, slots=True)
class VectorShape:
    """The shape of a value: a warp is `runs` runs of equal length (WIDTHS), and lane l of a run has
    the run's first value plus l times `stride`. 32 runs: varying. `width` values describe the warp:
    each is the first one of `repeats` runs that follow each other and are equal (1 if the stride is
    0). `ones` are the bits that may be 1 in a run's first value, -1 if all; shapes are equal if the
    others are."""

    width: int
    stride: int = 0
    ones: int = field(default=-1, compare=False)
    repeats: int = 1

    @property
    def is_affine(self) -> bool:
        """Returns whether the value is uniform or affine, in the warp or in each run; else it is
        varying."""
        return self.width < LANES

    @property
    def runs(self) -> int:
        """Returns the number of runs of a warp."""
        return self.width * self.repeats

    @property
    def length(self) -> int:
        """Returns the number of lanes of a run."""
        return LANES // self.runs

    @property
    def extent(self) -> int:
        """Returns the difference between the last and the first lane of a run, in the unit of the
        stride."""
        return self.stride * (self.length - 1)

    @property
    def without_repeats(self) -> VectorShape:
        """Returns the shape that has a value of its own for each run."""
        return VectorShape(self.runs, self.stride, self.ones)

    def offsets(self, width: int) -> tuple[int, ...]:
        """Returns, for `width` lanes at equal distances from lane 0 on, the difference of each from
        the first lane of its run; `width` is at least that of the shape."""
        step = LANES // width
        return tuple([self.stride * (lane * step % self.length) for lane in range(width)])

    def join(self, other: VectorShape) -> VectorShape:
        """Returns the least shape that covers both shapes: the one of more runs if both are affine
        with one stride, else varying. `ones` that differ are not just united but have all bits from
        the lowest on, so that those of a loop's counter are found in few joins."""
        if not (self.is_affine and other.is_affine and self.stride == other.stride):
            return VARYING
        width, runs = common_runs((self, other))
        ones, others = self.ones_in(runs), other.ones_in(runs)
        both = ones if ones == others else from_lowest(ones | others)
        return VectorShape(width, self.stride, both, 1 if self.stride == 0 else runs // width)

    def ones_in(self, runs: int) -> int:
        """Returns the bits that may be 1 in the first values of `runs` runs (`ones`), if the
        shape's own runs are split into `runs`, which is not less than the shape's."""
        if self.runs == runs or self.stride == 0:
            return self.ones
        return from_lowest(self.ones | self.stride * (LANES // runs))


UNIFORM, VARYING = VectorShape(1), VectorShape(LANES)


def common_runs(shapes: Iterable[VectorShape]) -> tuple[int, int]:
    """Returns the least width and number of runs that all shapes can be split into. A strided run
    that is split into shorter ones gives each a first value of its own:

        affine<1>x16r2, affine<0>x8    4 values, 4 runs: each run of 16 lanes is two, that differ
        affine<1>x16r2, affine<0>x16   2 values, 2 runs
        affine<1>x16r2, affine<4>x16r2 1 value, 2 runs"""
    shapes = tuple(shapes)
    runs = max(shape.runs for shape in shapes)
    # Strided runs longer than the result's are split.
    widths = (s.width if s.stride == 0 or s.runs == runs else runs for s in shapes)
    return max(widths), runs


def strided(width: int, stride: int, bits: int, ones: int = -1, repeats: int = 1) -> VectorShape:
    """Returns the shape of `width` values with a stride, which is reduced to the signed range of
    `bits` bits; with `repeats` equal runs to a value, but for stride 0. `ones`: bits that may be 1
    in a run's first value."""
    reduced = as_signed(stride, bits)
    return VectorShape(width, reduced, ones, repeats if reduced else 1)


@dataclass(frozen=True, slots=True)
class ShapedValue:
    """An operand's shape, and its bits as an unsigned number if they are constant."""

    shape: VectorShape
    constant: int | None = None

    def ones(self, runs: int, type: ScalarType) -> int:
        """Returns the bits, of `type`, that may be 1 in the value of the first lane of any of
        `runs` lane runs, as an unsigned number; of a constant, its own bits."""
        ones = self.shape.ones_in(runs) if self.constant is None else self.constant
        return ones & ((1 << type.bits) - 1)

    def ends_before_next(self, type: ScalarType) -> bool:
        """Returns whether each run begins at a multiple of a power of two, does not fall, and ends
        before the next multiple and the sign bit: no lane then carries into a bit of `ones`."""
        ones = self.ones(self.shape.runs, type) | 1 << type.bits - 1
        return 0 <= self.shape.extent < ones & -ones


class TermShapes:
    """Evaluates the shapes and constants of a term's nodes from those of its arguments. With
    `linear`, the two runs of a shape of width 2 stand for the rows of a whole thread block, which
    has more: a result retains the shape only if it changes by the same amount from row to row."""

    def __init__(self, arguments: Sequence[ShapedValue], *, linear: bool = False) -> None:
        """Stores the shapes and constants of the arguments, by number; evaluates nothing."""
        self._arguments, self._linear = arguments, linear
        self._done: dict[Term, ShapedValue] = {}

    def shape(self, term: Term) -> VectorShape:
        """Returns the shape of a node."""
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
    term, args = _without_division(term, args)
    width, runs = common_runs(shapes)
    is_integer = term.type.is_integer and all(a.type.is_integer for a in term.args[-2:])
    # Any operation maps operands that are equal in each run to a result that is.
    equal = all(s.stride == 0 for s in shapes)
    stride = 0 if equal else _stride(term, args) if is_integer else None
    if stride is None:
        return VARYING
    ones = _ones(term, args, runs) if is_integer else -1
    return strided(width, stride, term.type.bits, ones, runs // width)


def _stride(term: Term, args: Sequence[ShapedValue]) -> int | None:
    """Returns the stride of an integer node's result, before reduction to its width; None if the
    result is not affine, or has a stride that depends on a factor or shift which is not constant,
    and for operations that are not handled."""
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
        case "truncate" | "reinterpret":
            return strides[0]
        case "extend" if _extends_linearly(args[0].shape, term.args[0].type.bits):
            return strides[0]
        case "select" if strides[0] == 0 and strides[1] == strides[2]:
            return strides[1]
        case _:
            return _bitwise_stride(term, args)


def _bitwise_stride(term: Term, args: Sequence[ShapedValue]) -> int | None:
    """Returns the stride of a mask or right shift by a constant of an affine value whose runs end
    before the next multiple of a power of two (`ends_before_next`). No lane carries into the bits
    of the run's first value, so the result in lane l is that of the first value plus that of l
    times the stride. Returns None for other operations, and if the second part is no multiple of
    l."""
    if term.op not in ("and", "lshr", "ashr"):
        return None
    (value, by), operand = args, term.args[0]
    if term.op == "and" and by.constant is None:
        (by, value), operand = args, term.args[1]
    if by.constant is None or not value.ends_before_next(operand.type):
        return None
    lanes, stride = range(value.shape.length), value.shape.stride
    added = [_BINARY[term.op](lane * stride, by.constant) for lane in lanes]
    return added[1] if added == [lane * added[1] for lane in lanes] else None


def _without_division(
    term: Term, args: Sequence[ShapedValue]
) -> tuple[Term, Sequence[ShapedValue]]:
    """Returns a node and its operands. A quotient or remainder of a dividend that is known not to
    be negative, by a power of two, is replaced by a right shift or a mask; others are unchanged."""
    divisor, bits = args[-1].constant, term.type.bits
    if term.op not in ("div", "rem") or divisor is None or divisor.bit_count() != 1:
        return term, args
    ones = args[0].ones(args[0].shape.runs, term.type) | divisor
    if term.type.is_signed and ones >> bits - 1:
        return term, args
    op, by = ("and", divisor - 1) if term.op == "rem" else ("lshr", divisor.bit_length() - 1)
    return Term(op, term.type, term.args), (args[0], ShapedValue(UNIFORM, by))


def _ones(term: Term, args: Sequence[ShapedValue], runs: int) -> int:
    """Returns the bits that may be 1 in the first values of an integer node's `runs` runs."""
    types = [arg.type for arg in term.args[-2:]]
    ones = [arg.ones(runs, type) for arg, type in zip(args[-2:], types, strict=True)]
    result = result_ones(term, ones, args[-1].constant)
    # Lanes of a run that wraps around imply another first value of it when they are extended.
    wraps = term.op == "extend" and not args[0].ends_before_next(types[0])
    return from_lowest(result) if wraps else result


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
    bits. Then a value of that width retains its stride when it is extended, if no run of it wraps
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
    reads_signed = source.is_signed and term.op != "lshr"
    values = [as_signed(n, source.bits) if reads_signed else n for n in constants]
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
