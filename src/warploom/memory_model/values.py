"""Values of registers that may depend on what loads find.

A value is an integer (its bits), or `Deferred`: a function of other values, with a load of the same
thread at its leaves. Which store a load reads is chosen later; only then is it computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Loaded:
    """The value that event `event` of the thread, a read, finds."""

    event: int


@dataclass(frozen=True, eq=False, slots=True)
class Deferred:
    """`compute` of the values of `sources`, as integers."""

    compute: Callable[..., int]
    sources: tuple[Value, ...]


Value = int | Loaded | Deferred


def deferred(compute: Callable[..., int], *sources: Value) -> Value:
    """Returns `compute(*sources)`, now where no source depends on a load."""
    if all(isinstance(source, int) for source in sources):
        return compute(*sources)
    return Deferred(compute, sources)


def mapped(compute: Callable[[int], int], value: Value) -> Value:
    """Returns `compute` of one value."""
    return deferred(compute, value)


def combined(compute: Callable[[int, int], int], first: Value, second: Value) -> Value:
    """Returns `compute` of two values."""
    return deferred(compute, first, second)


def loads_of(value: Value) -> frozenset[int]:
    """Returns the events of the thread on whose results a value depends."""
    match value:
        case int():
            return frozenset()
        case Loaded(event):
            return frozenset((event,))
        case Deferred(_, sources):
            return frozenset[int]().union(*map(loads_of, sources))


def resolved(value: Value, found: Callable[[int], int]) -> int:
    """Returns a value where `found(event)` is what that read finds."""
    match value:
        case int():
            return value
        case Loaded(event):
            return found(event)
        case Deferred(compute, sources):
            return compute(*(resolved(source, found) for source in sources))
