"""Integers as linear forms: a constant plus strides times variables, each with a known range.

What an address is made of, once a launch's shape and parameters are known: the place of a buffer,
so many bytes for each thread index, so many for each block index. `evaluate` follows a term
(`isa.terms`) as far as it stays linear; None stands for a value that nothing is known of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warploom.core.types import ScalarType
from warploom.isa.terms import Term

ELSEWHERE = -1
"""Stands among the blocks where a variable changes for any other place."""


@dataclass(frozen=True, slots=True)
class IndexVariable:
    """Something that takes the values 0 to `extent` - 1; None means that it may take any from 0.

    `of_block` says that all threads of a block agree on it and that blocks differ by it. `at` are
    the basic blocks of the program where it may change when they begin; a thread keeps a variable
    without any.
    """

    name: str
    extent: int | None
    of_block: bool = False
    at: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Form:
    """`constant` + the sum of stride times variable; no stride is 0, variables are in order."""

    constant: int
    strides: tuple[tuple[IndexVariable, int], ...] = ()

    @property
    def is_constant(self) -> bool:
        return not self.strides

    @property
    def low(self) -> int:
        """Return the least value, as far as bounded variables go."""
        return self.constant + sum(min(0, s * (v.extent - 1)) for v, s in self.strides if v.extent)

    @property
    def high(self) -> int:
        """Return the greatest value, as far as bounded variables go."""
        return self.constant + sum(max(0, s * (v.extent - 1)) for v, s in self.strides if v.extent)

    @property
    def is_bounded(self) -> bool:
        return all(variable.extent is not None for variable, _ in self.strides)

    def plus(self, other: Form, times: int = 1) -> Form:
        """Return this plus `times` the other."""
        strides = dict(self.strides)
        for variable, stride in other.strides:
            strides[variable] = strides.get(variable, 0) + times * stride
        return form(self.constant + times * other.constant, strides)

    def without(self, variable: IndexVariable) -> Form:
        """Return the same where the variable is 0."""
        return Form(self.constant, tuple(pair for pair in self.strides if pair[0] != variable))

    def times(self, factor: int) -> Form:
        return form(self.constant * factor, {v: s * factor for v, s in self.strides})


def form(constant: int, strides: Mapping[IndexVariable, int] | None = None) -> Form:
    """Return a form without variables that make no difference."""
    kept = [(v, s) for v, s in (strides or {}).items() if s != 0 and v.extent != 1]
    return Form(constant, tuple(sorted(kept, key=lambda pair: pair[0].name)))


def evaluate(term: Term, arguments: Sequence[Form | None]) -> Form | None:
    """Return the value of a term whose operands have these forms."""
    return _Evaluation(arguments).of(term)


class _Evaluation:
    """One term's nodes and their forms; a node that is used twice is looked at once."""

    def __init__(self, arguments: Sequence[Form | None]) -> None:
        self._arguments = arguments
        self._done: dict[Term, Form | None] = {}

    def of(self, term: Term) -> Form | None:
        if term not in self._done:
            self._done[term] = self._node(term)
        return self._done[term]

    def _node(self, term: Term) -> Form | None:
        if term.op == "const":
            return as_type(form(int(str(term.attr))), term.type)
        if term.op == "arg":
            argument = self._arguments[int(str(term.attr))]
            return as_type(argument, term.type)
        if term.op == "select":
            return self._select(term)
        args = [self.of(a) for a in term.args]
        if term.op in ("extend", "truncate", "reinterpret"):
            return as_type(args[0], term.type)
        if len(args) == 2 and args[0] is not None and args[1] is not None:
            return as_type(_binary(term.op, args[0], args[1]), term.type)
        if term.op == "neg" and args[0] is not None:
            return as_type(args[0].times(-1), term.type)
        if term.op == "not" and args[0] is not None:
            return as_type(form(-1).plus(args[0], -1), term.type)
        return None

    def _select(self, term: Term) -> Form | None:
        condition, first, second = term.args
        holds = self.of(condition)
        if holds is not None and holds.is_constant:
            return self.of(first if holds.constant else second)
        found = self.of(first)
        return found if found == self.of(second) else None


COUNTER_BITS = 32
"""A variable without bounds is taken to fit into so many bits: it counts iterations."""


def as_type(value: Form | None, type: ScalarType) -> Form | None:
    """Return a value as an integer of a type: itself where it fits. A constant wraps around;
    anything else that could is unknown."""
    if value is None or not (type.is_integer or type.bits == 1):
        return None
    lowest, count = (-(1 << type.bits - 1) if type.is_signed else 0), 1 << type.bits
    if value.is_constant:
        return form((value.constant - lowest) % count + lowest)
    counts = value.is_bounded or type.bits >= COUNTER_BITS
    fits = lowest <= value.low and value.high < lowest + count
    return value if fits and counts else None


def _binary(op: str, a: Form, b: Form) -> Form | None:
    match op:
        case "add":
            return a.plus(b)
        case "sub":
            return a.plus(b, -1)
        case "mul" if b.is_constant:
            return a.times(b.constant)
        case "mul" if a.is_constant:
            return b.times(a.constant)
        case "shl" if b.is_constant:
            return a.times(1 << b.constant)
        case "or":
            return _disjoint_or(a, b)
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "min" | "max":
            return _constant_comparison(op, a, b)
        case _:
            return _bit_part(op, a, b)


def _disjoint_or(a: Form, b: Form) -> Form | None:
    """`a | b`, which is their sum where no bit can be set in both."""
    if not (a.is_bounded and b.is_bounded) or min(a.low, b.low) < 0:
        return None
    return a.plus(b) if _bits_of(a) & _bits_of(b) == 0 else None


def _constant_comparison(op: str, a: Form, b: Form) -> Form | None:
    """Returns what compares the same for all values of the variables."""
    if not (a.is_bounded and b.is_bounded):
        return None
    if op in ("min", "max"):
        below = a.high <= b.low
        if not below and b.high > a.low:
            return None
        return a if below == (op == "min") else b
    less, more = a.high < b.low, a.low > b.high
    same = a == b
    answers = {
        "lt": (less, more or same),
        "gt": (more, less or same),
        "le": (less or same or a.high <= b.low, more),
        "ge": (more or same or a.low >= b.high, less),
        "eq": (same, less or more),
        "ne": (less or more, same),
    }
    holds, fails = answers[op]
    return form(int(holds)) if holds or fails else None


def _bit_part(op: str, a: Form, b: Form) -> Form | None:
    """Return a part of the bits of a value that is never negative: a variable of its own."""
    if not (b.is_constant and a.is_bounded) or a.low < 0 or b.constant < 0:
        return None
    n = b.constant
    if a.is_constant:
        return form(_exact(op, a.constant, n)) if op in _PARTS and (n or op == "and") else None
    if op == "and":
        bits = _bits_of(a)
        return a if bits & ~n == 0 else _new_variable(op, a, n, 0, bits & n)
    if op in ("lshr", "ashr"):
        return _new_variable(op, a, n, a.low >> n, a.high >> n)
    if op == "div" and n:
        return _new_variable(op, a, n, a.low // n, a.high // n)
    if op == "rem" and n:
        return _new_variable(op, a, n, 0, min(n - 1, a.high))
    return None


def _bits_of(a: Form) -> int:
    """Return the bits that may be set in any value of a form that is never negative."""
    steps = math.gcd(a.constant, *(stride for _, stride in a.strides))
    lowest = steps & -steps
    return (1 << a.high.bit_length()) - lowest


_PARTS = ("and", "lshr", "ashr", "div", "rem")


def _exact(op: str, a: int, n: int) -> int:
    return {"and": a & n, "div": a // n if n else 0, "rem": a % n if n else 0}.get(op, a >> n)


def _new_variable(op: str, a: Form, n: int, low: int, high: int) -> Form:
    """Return a value from `low` to `high` that stands for `a op n`; the same stands for it
    everywhere."""
    at = frozenset[int]().union(*(variable.at for variable, _ in a.strides))
    return form(low, {IndexVariable(f"{op}({a}, {n})", high - low + 1, at=at): 1})
