"""Provides an LLVM IR builder that folds integer constants and identities while it emits.

    b.add(I64(3), I64(4))  ->  I64(7)        b.mul(x, I64(1))  ->  x
    b.and_(x, I32(0))      ->  I32(0)        b.or_(x, I32(0))  ->  x

The IR gets shorter, so LLVM parses and folds less. Only the second operand of `add`, `sub`, `mul`
and shifts is compared with the identity; floats and vectors are not folded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from warploom.llvm.lanes import Value


def _fold_arithmetic(
    compute: Callable[[int, int], int], neutral: int
) -> Callable[..., Value | None]:
    """Returns a function that folds an operation on two constants to `compute` of them, and one
    whose second operand is `neutral` to the first operand; it returns None for any other."""

    def fold(left: Value, right: Value) -> Value | None:
        """Returns the constant `compute` of two scalar integer constants; `left` if `right` is the
        constant `neutral`; None if the instruction has to be emitted."""
        left_number, right_number = _number(left), _number(right)
        if left_number is not None and right_number is not None:
            return _constant(left.type, compute(left_number, right_number))
        return left if right_number == neutral else None

    return fold


def _fold_and(left: Value, right: Value) -> Value | None:
    """Folds x & 0 to 0 and x & ~0 to x, for either operand; returns None for other operands."""
    for constant, remaining in ((left, right), (right, left)):
        number = _number(constant)
        if number == 0:
            return constant
        if number is not None and number == _ones(constant):
            return remaining
    return None


def _fold_or(left: Value, right: Value) -> Value | None:
    """Folds x | 0 to x, for either operand; returns None for other operands."""
    for constant, remaining in ((left, right), (right, left)):
        if _number(constant) == 0:
            return remaining
    return None


def _fold_resize(value: Value, type: Any) -> Value | None:
    """Folds a zero extension or a truncation of a scalar integer constant to a constant of `type`;
    returns None for other values."""
    number = _number(value)
    return None if number is None else _constant(type, number)


def _number(value: Value) -> int | None:
    """Returns the value of a scalar integer constant, unsigned; None for other values, vectors
    included."""
    # Of exactly this class: its subclass in `llvm.lanes` has a text in place of a number, and is
    # not folded.
    number: Any = getattr(value, "constant", None) if type(value) is ir.Constant else None
    return number & _ones(value) if isinstance(number, int) else None


def _ones(value: Value) -> int:
    """Returns the unsigned number whose bits are all set, in the type of an integer value."""
    return (1 << value.type.width) - 1


def _constant(type: Any, number: int) -> Value:
    """Returns a constant of an integer type, made of the lowest bits of `number`. LLVM spells it as
    a signed number, but `i1 1` as 1."""
    size: int = type.width
    low_bits = number & ((1 << size) - 1)
    return ir.Constant(
        type, low_bits - (1 << size) if size > 1 and low_bits >> (size - 1) else low_bits
    )


_FOLDS: dict[str, Callable[[Value, Value], Value | None]] = {
    "add": _fold_arithmetic(lambda a, b: a + b, 0),
    "sub": _fold_arithmetic(lambda a, b: a - b, 0),
    "mul": _fold_arithmetic(lambda a, b: a * b, 1),
    "shl": _fold_arithmetic(lambda a, b: a << b, 0),
    "lshr": _fold_arithmetic(lambda a, b: a >> b, 0),
    "and_": _fold_and,
    "or_": _fold_or,
    "zext": _fold_resize,
    "trunc": _fold_resize,
}


def _folding_method(name: str) -> Callable[..., Value]:
    """Returns an override of the builder's method `name`: it returns the folded value if there is
    one, else emits the instruction."""
    emit, fold = getattr(ir.IRBuilder, name), _FOLDS[name]

    def method(self: Any, left: Value, right: Value, *remaining: Any, **named: Any) -> Value:
        """Returns the folded value of two operands, or emits the instruction and returns its
        value."""
        constant = fold(left, right)
        return emit(self, left, right, *remaining, **named) if constant is None else constant

    return method


FoldingBuilder: Any = type(
    "FoldingBuilder", (ir.IRBuilder,), {name: _folding_method(name) for name in _FOLDS}
)
"""llvmlite's `IRBuilder` with the methods of `_FOLDS` overridden."""
