"""Computes the linear forms (`forms`) of terms (`isa.terms`), from those of their arguments.

    x * 4 + y, with the form 2 * %tid.x of x and 5 of y     8 * %tid.x + 5

A term has a form as long as it is linear and cannot wrap around in a way that differs between
threads; None is an unknown value. Bit fields become variables of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warploom.analysis.linear.forms import (
    Form,
    divided,
    form,
    is_never_negative,
    new_variable,
    quotient,
    remainder,
    union,
)
from warploom.core.types import ScalarType
from warploom.isa.terms import Term


def evaluate(term: Term, arguments: Sequence[Form | None]) -> Form | None:
    """Returns the form of a term's value, given those of its arguments; None if it is unknown."""
    if arguments and not any(arguments):
        return None
    return _Evaluation(arguments).of(term)


class _Evaluation:
    """Computes the linear form of a term, from those of its arguments: of each node once."""

    def __init__(self, arguments: Sequence[Form | None]) -> None:
        """Reads the forms of the term's arguments by number, None for unknown ones; evaluates
        nothing yet."""
        self._arguments = arguments
        self._done: dict[Term, Form | None] = {}

    def of(self, term: Term) -> Form | None:
        """Returns the form of a node, computed once."""
        if term not in self._done:
            self._done[term] = self._node(term)
        return self._done[term]

    def _node(self, term: Term) -> Form | None:
        """Returns the form of one node of a term from those of its arguments, in the node's type;
        None if one is unknown or the operation is none of those that have a form (constants,
        arguments, selections, conversions, negation, complement, and those of `_binary`), or if the
        result may wrap around."""
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
            if _is_sign(term, args[0], args[1]):
                return form(0)
            value = _binary(term.op, args[0], args[1], term.type.bits)
            return as_type(value, term.type)
        if term.op == "neg" and args[0] is not None:
            return as_type(args[0].times(-1), term.type)
        if term.op == "not" and args[0] is not None:
            return as_type(form(-1).plus(args[0], -1), term.type)
        return None

    def _select(self, term: Term) -> Form | None:
        """Returns the form of the chosen alternative if the condition is constant, else that of
        both if they are equal; None otherwise."""
        condition, when_true, when_false = term.args
        holds = self.of(condition)
        if holds is not None and holds.is_constant:
            return self.of(when_true if holds.constant else when_false)
        chosen = self.of(when_true)
        return chosen if chosen is not None and chosen == self.of(when_false) else None


COUNTER_BITS = 32
"""Bits that an unbounded variable is assumed to fit into: it counts iterations."""


def as_type(value: Form | None, type: ScalarType) -> Form | None:
    """Returns the form of a value as an integer of a type: bounded forms all of whose values wrap
    around equally often do so, others are returned as they are if their least and greatest values
    (unbounded variables taken as 0) fit the type. None if they do not, for an unknown value, for
    floats, and for unbounded forms in fewer than COUNTER_BITS (32) bits."""
    if value is None or not (type.is_integer or type.bits == 1):
        return None
    lowest, count = (-(1 << type.bits - 1) if type.is_signed else 0), 1 << type.bits
    if value.is_constant:
        return form((value.constant - lowest) % count + lowest)
    # An iteration count has no bound that could be checked. It is assumed that no loop runs so
    # often that a 32-bit counter wraps around; in fewer bits, that would be an ordinary event.
    counts = value.is_bounded or type.bits >= COUNTER_BITS
    if value.is_bounded:
        value = value.plus(form((value.low - lowest) // count * -count))  # as it wraps around
    fits = lowest <= value.low and value.high < lowest + count
    return value if fits and counts else None


def _is_sign(term: Term, value: Form, distance: Form) -> bool:
    """Returns whether a term shifts the sign bit of a value that is never negative to the lowest
    bit, or to all: compilers round quotients of signed numbers with it."""
    is_all = term.op in ("ashr", "lshr") and distance == form(term.type.bits - 1)
    return is_all and term.type.is_signed and is_never_negative(value)


def _binary(op: str, a: Form, b: Form, bits: int) -> Form | None:
    """Returns the form of `a op b` in a type of `bits` bits: sums, products and shifts to the left
    by a constant, `or`, bit parts by a constant; of comparisons, minima and maxima only where one
    result holds for all values. None for all others."""
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
            return _or(a, b)
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "min" | "max":
            return _constant_comparison(op, a, b)
        case _:
            return _bit_part(op, a, b, bits)


def _or(left: Form, right: Form) -> Form | None:
    """Returns the form of `left | right`: the sum, if no bit can be set in both, else a variable;
    None for unbounded forms or those that may be negative."""
    if not (left.is_bounded and right.is_bounded) or min(left.low, right.low) < 0:
        return None
    if _bits_of(left) & _bits_of(right) == 0:
        return left.plus(right)
    return union(left, right, (1 << max(left.high, right.high).bit_length()) - 1)


def _constant_comparison(op: str, left: Form, right: Form) -> Form | None:
    """Returns the result of a comparison (1 or 0), or the operand that is the minimum or maximum,
    if the bounds of both forms decide it, or, for a comparison, that they are equal; None
    otherwise, and for unbounded forms."""
    if not (left.is_bounded and right.is_bounded):
        return None
    if op in ("min", "max"):
        # Ranges that do not overlap, but for one value that both may have: one operand is the
        # minimum for all values of the variables.
        below = left.high <= right.low
        if not below and right.high > left.low:
            return None
        return left if below == (op == "min") else right
    less, more = left.high < right.low, left.low > right.high
    same = left == right
    outcomes = {
        "lt": (less, more or same),
        "gt": (more, less or same),
        "le": (less or same or left.high <= right.low, more),
        "ge": (more or same or left.low >= right.high, less),
        "eq": (same, less or more),
        "ne": (less or more, same),
    }
    holds, fails = outcomes[op]
    return form(int(holds)) if holds or fails else None


def _bit_part(op: str, a: Form, b: Form, bits: int) -> Form | None:
    """Returns the form of `a op b` for `and`, right shift, division and remainder, with a constant
    b that is not negative and an `a` that is never negative. It is a constant if `a` is one; `a`
    itself if `and` clears none of its bits; a quotient or a remainder (`quotient`, `remainder`),
    also for an `and` with a mask of low bits; a new variable between the result's bounds for any
    other `and`. None for other operands and operations, and for a division or remainder by 0."""
    # PTX rounds quotients of negative numbers towards 0, `//` downwards; both agree from 0 on.
    if not b.is_constant or b.constant < 0 or op not in _PARTS or not is_never_negative(a):
        return None
    n = b.constant
    if a.is_constant:
        return form(_exact(op, a.constant, n)) if n or op == "and" else None
    # Compilers make (x & 31) * 4 into x * 4 & 124: where the bits below the mask's are clear,
    # both are a remainder times the lowest bit of the mask.
    lowest = n & -n
    if op == "and" and lowest > 1 and _bits_of(a) & (lowest - 1) == 0:
        whole = divided(a, lowest)
        part = whole and _bit_part(op, whole, form(n // lowest), bits)
        return None if part is None else part.times(lowest)
    # Not 0 for masks other than those of the lowest bits, 2**k - 1: these are remainders by n + 1.
    if op == "and" and n & (n + 1):
        return _masked(a, n, bits)
    divisor = 1 << n if op in ("lshr", "ashr") else n + 1 if op == "and" else n
    if divisor == 0:
        return None
    return remainder(a, divisor) if op in ("and", "rem") else quotient(a, divisor)


def _masked(a: Form, n: int, bits: int) -> Form | None:
    """Returns the form of `a & n` in a type of `bits` bits, of an `a` that is never negative: `a`
    itself if no bit is cleared, a multiple of a quotient if only the lowest bits are, else a new
    variable; None for an unbounded `a` of which other bits may be cleared."""
    lowest = n & -n
    # Of an unbounded form any bit of the type may be set.
    may_be_set = _bits_of(a) if a.is_bounded else (1 << bits) - 1
    if may_be_set & ~n == 0:
        return a
    if may_be_set & ~n & -lowest == 0:
        whole = quotient(a, lowest)
        return None if whole is None else whole.times(lowest)
    return new_variable("and", a, n, 0, may_be_set & n) if a.is_bounded else None


def _bits_of(a: Form) -> int:
    """Returns, as a mask, the bits that may be set in some value of a form that is never negative:
    up to the highest one of its greatest value, from the greatest power of two that divides all
    values."""
    steps = math.gcd(a.constant, *(stride for _, stride in a.strides))
    # All values are multiples of the greatest power of two in `steps`: lower bits are clear.
    lowest = steps & -steps
    return (1 << a.high.bit_length()) - lowest


_PARTS = ("and", "lshr", "ashr", "div", "rem")


def _exact(op: str, a: int, n: int) -> int:
    """Returns `a op n` of two constants (`op` is one of _PARTS); division and remainder by 0 give
    0."""
    return {"and": a & n, "div": a // n if n else 0, "rem": a % n if n else 0}.get(op, a >> n)
