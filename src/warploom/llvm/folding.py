"""A builder of LLVM IR that folds what is known: integers of which both are constant, and
operations that change nothing. That is less text for LLVM to read, and to fold itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from warploom.llvm.lanes import Value


def _arithmetic(compute: Callable[[int, int], int], neutral: int) -> Callable[..., Value | None]:
    """Folds two constants, and an operation whose second operand changes nothing."""

    def fold(one: Value, other: Value) -> Value | None:
        first, second = _number(one), _number(other)
        if first is not None and second is not None:
            return _constant(one.type, compute(first, second))
        return one if second == neutral else None

    return fold


def _and(one: Value, other: Value) -> Value | None:
    for known, rest in ((one, other), (other, one)):
        number = _number(known)
        if number == 0:
            return known
        if number is not None and number == _ones(known):
            return rest
    return None


def _or(one: Value, other: Value) -> Value | None:
    for known, rest in ((one, other), (other, one)):
        if _number(known) == 0:
            return rest
    return None


def _resized(value: Value, type: Any) -> Value | None:
    number = _number(value)
    return None if number is None else _constant(type, number)


def _number(value: Value) -> int | None:
    """Returns what an integer constant is, as an unsigned number; None for other values."""
    number: Any = getattr(value, "constant", None) if type(value) is ir.Constant else None
    return number & _ones(value) if isinstance(number, int) else None


def _ones(value: Value) -> int:
    """Returns the number that has all bits of an integer's type set."""
    return (1 << value.type.width) - 1


def _constant(type: Any, number: int) -> Value:
    """Returns a constant of so many bits, as LLVM writes it: signed, but for a single bit."""
    size: int = type.width
    kept = number & ((1 << size) - 1)
    return ir.Constant(type, kept - (1 << size) if size > 1 and kept >> (size - 1) else kept)


_FOLDS: dict[str, Callable[[Value, Value], Value | None]] = {
    "add": _arithmetic(lambda a, b: a + b, 0),
    "sub": _arithmetic(lambda a, b: a - b, 0),
    "mul": _arithmetic(lambda a, b: a * b, 1),
    "shl": _arithmetic(lambda a, b: a << b, 0),
    "lshr": _arithmetic(lambda a, b: a >> b, 0),
    "and_": _and,
    "or_": _or,
    "zext": _resized,
    "trunc": _resized,
}


def _method(name: str) -> Callable[..., Value]:
    """Returns the builder's method of that name, which folds what it can."""
    emit, fold = getattr(ir.IRBuilder, name), _FOLDS[name]

    def method(self: Any, one: Value, other: Value, *rest: Any, **named: Any) -> Value:
        known = fold(one, other)
        return emit(self, one, other, *rest, **named) if known is None else known

    return method


FoldingBuilder: Any = type(
    "FoldingBuilder", (ir.IRBuilder,), {name: _method(name) for name in _FOLDS}
)
"""llvmlite's `IRBuilder`, folding."""
