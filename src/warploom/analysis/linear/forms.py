"""Represents integers as linear forms: a constant plus strides times variables of known range.

Once the parameters and dimensions of a launch are known, most addresses are such forms: a buffer's
address plus strides times thread and block indices. With 256 threads a block,

    mad.lo.u32    %r1, %ctaid.x, 256, %tid.x;
    mul.wide.u32  %rd1, %r1, 4;
    add.s64       %rd2, %rd3, %rd1;     0x1000 + 4 * %tid.x + 1024 * %ctaid.x, if %rd3 is 0x1000

`evaluate` computes the form of a term (`isa.terms`) as long as it is linear and cannot wrap around;
None is an unknown value. Bit fields, quotients and remainders become variables of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warploom.core.types import ScalarType
from warploom.isa.terms import Term

ELSEWHERE = -1
"""In `IndexVariable.at`: the variable may change anywhere."""


@dataclass(frozen=True, slots=True)
class IndexVariable:
    """A variable with the values 0 to `extent` - 1 (None: any value from 0 on), such as a thread
    index, a block index or an iteration count; equal variables have equal names.

    `of_block`: all threads of a block have the same value, and blocks have different ones. `at` are
    the basic blocks at whose start the value may change (or ELSEWHERE); a thread's value of a
    variable without any is constant. `counts`: it counts iterations, or how far the path that a
    thread came by advances it. `part`: what the variable is a quotient or a remainder of, if
    any."""

    name: str
    extent: int | None
    of_block: bool = False
    at: frozenset[int] = frozenset()
    counts: bool = False
    part: DividedPart | None = field(default=None, compare=False)  # the name has it


@dataclass(frozen=True, slots=True)
class DividedPart:
    """The quotient `dividend // divisor` less `low`, its least value, or the remainder."""

    dividend: Form
    divisor: int
    low: int
    is_quotient: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A linear form: `constant` plus the sum of stride times variable, with strides that are not 0,
    in the order of the variables' names."""

    constant: int
    strides: tuple[tuple[IndexVariable, int], ...] = ()

    @property
    def is_constant(self) -> bool:
        """Returns whether the form has no variables."""
        return not self.strides

    @property
    def low(self) -> int:
        """Returns the least value, with unbounded variables taken as 0."""
        return self.constant + sum(
            min(0, stride * (v.extent - 1)) for v, stride in self.strides if v.extent
        )

    @property
    def high(self) -> int:
        """Returns the greatest value, with unbounded variables taken as 0."""
        return self.constant + sum(
            max(0, stride * (v.extent - 1)) for v, stride in self.strides if v.extent
        )

    @property
    def is_bounded(self) -> bool:
        """Returns whether the extents of all its variables are known; True for a constant."""
        return all(variable.extent is not None for variable, _ in self.strides)

    def plus(self, addend: Form, times: int = 1) -> Form:
        """Returns the sum of this form and `times` the other, with remainders where it subtracts
        what is divided off."""
        return _with_remainders(self.plus_as_is(addend, times))

    def plus_as_is(self, addend: Form, times: int = 1) -> Form:
        """Returns the sum of this form and `times` the other, of the variables of both."""
        strides = dict(self.strides)
        for variable, stride in addend.strides:
            strides[variable] = strides.get(variable, 0) + times * stride
        return form(self.constant + times * addend.constant, strides)

    def without(self, variable: IndexVariable) -> Form:
        """Returns the form with a variable replaced by 0."""
        return Form(self.constant, tuple(pair for pair in self.strides if pair[0] != variable))

    def times(self, factor: int) -> Form:
        """Returns the form multiplied by a constant factor."""
        return form(self.constant * factor, {v: stride * factor for v, stride in self.strides})


def form(constant: int, strides: Mapping[IndexVariable, int] | None = None) -> Form:
    """Returns a linear form in its normal order, without variables whose stride is 0 or whose only
    value is 0 (extent 1)."""
    terms = [(v, stride) for v, stride in (strides or {}).items() if stride != 0 and v.extent != 1]
    return Form(constant, tuple(sorted(terms, key=lambda pair: pair[0].name)))


def replaced(value: Form, values: Mapping[IndexVariable, Form]) -> Form:
    """Returns a form with other forms in place of some variables."""
    for variable, stride in value.strides:
        if variable in values:
            value = value.without(variable).plus(values[variable], stride)
    return value


def _with_remainders(value: Form) -> Form:
    """Returns a form with remainders in place of what is subtracted to make them: with the variable
    q for x // 32, `4 * x - 128 * q` is `4 * (x % 32)`."""
    for variable, stride in value.strides:
        part = variable.part
        if part is None or not part.is_quotient:
            continue
        dividend, n = part.dividend, part.divisor
        strides = dict(value.strides)
        first, first_stride = dividend.strides[0]
        times = strides.get(first, 0) // first_stride
        is_subtracted = times * stride < 0 and abs(stride) >= abs(times) * n
        if is_subtracted and all(strides.get(v) == times * s for v, s in dividend.strides):
            of_rest = _new_variable("rem", dividend, n, 0, n - 1)
            whole = form(n * part.low, {variable: n}).plus(of_rest)
            return value.plus(dividend, -times).plus(whole, times)
    return value


def expansions(value: Form) -> list[Form]:
    """Returns a form, and the forms with what is divided off in place of each of its remainders,
    and of all: `x - 32 * q`, with the variable q for x // 32, for `x % 32`."""
    forms, all_divided = [value], value
    for variable, stride in value.strides:
        rest = _divided_off(variable)
        if rest is not None:
            forms.append(value.without(variable).plus_as_is(rest, stride))
            all_divided = all_divided.without(variable).plus_as_is(rest, stride)
    return forms if len(forms) <= 2 else [*forms, all_divided]


def _divided_off(variable: IndexVariable) -> Form | None:
    """Returns the dividend of a remainder less the divisor's multiple; None if the variable is no
    remainder."""
    part = variable.part
    if part is None or part.is_quotient:
        return None
    divided = quotient(part.dividend, part.divisor)
    return None if divided is None else part.dividend.plus_as_is(divided, -part.divisor)


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
    """Returns the form of `a op b` in a type of so many bits: sums, products and shifts to the left by a constant, `or` of
    forms without a common bit, bit parts by a constant; of comparisons, minima and maxima only
    where one result holds for all values. None for all others."""
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
            return _bit_part(op, a, b, bits)


def _disjoint_or(left: Form, right: Form) -> Form | None:
    """Returns the form of `left | right`: the sum, if no bit can be set in both; else None, also
    for unbounded forms or those that may be negative."""
    if not (left.is_bounded and right.is_bounded) or min(left.low, right.low) < 0:
        return None
    return left.plus(right) if _bits_of(left) & _bits_of(right) == 0 else None


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
        part = _bit_part(op, _divided(a, lowest), form(n // lowest), bits)
        return None if part is None else part.times(lowest)
    # Not 0 for masks other than those of the lowest bits, 2**k - 1: these are remainders by n + 1.
    if op == "and" and n & (n + 1):
        return _masked(a, n, bits)
    divisor = 1 << n if op in ("lshr", "ashr") else n + 1 if op == "and" else n
    if divisor == 0:
        return None
    return remainder(a, divisor) if op in ("and", "rem") else quotient(a, divisor)


def _masked(a: Form, n: int, bits: int) -> Form | None:
    """Returns the form of `a & n` in a type of so many bits, of an `a` that is never negative: `a`
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
    return _new_variable("and", a, n, 0, may_be_set & n) if a.is_bounded else None


def is_never_negative(a: Form) -> bool:
    """Returns whether a form is at least 0 for all values of its variables."""
    return a.low >= 0 and all(v.extent is not None or stride > 0 for v, stride in a.strides)


def quotient(a: Form, n: int) -> Form | None:
    """Returns the form of `a // n`: the terms that are multiples of n, divided by it, and a
    variable for the quotient of the others; None if these are unbounded. With `%tid.x` below 256,
    `(256 * %ctaid.x + %tid.x) // 32` is `8 * %ctaid.x` plus a variable below 8."""
    whole, rest = _split(a, n)
    if not rest.is_bounded:
        return None
    # Exact, though quotients do not add up in general: `whole` is a multiple of n for all values of
    # its variables, so (whole + rest) // n is whole // n + rest // n.
    low, high = rest.low // n, rest.high // n
    of_rest = form(low) if low == high else _new_variable("div", rest, n, low, high)
    return of_rest.plus(
        Form(whole.constant // n, tuple((v, stride // n) for v, stride in whole.strides))
    )


def remainder(a: Form, n: int) -> Form | None:
    """Returns the form of `a % n`: that of the terms that are no multiples of n, if their quotient
    by n is constant, else a variable; None if these are unbounded."""
    _, rest = _split(a, n)
    if not rest.is_bounded:
        return None
    if rest.low // n == rest.high // n:
        return rest.plus(form(-(rest.low // n * n)))
    return _new_variable("rem", rest, n, 0, n - 1)


def _divided(a: Form, n: int) -> Form:
    """Returns `a // n` of a form all of whose values are multiples of n."""
    return Form(a.constant // n, tuple((v, stride // n) for v, stride in a.strides))


def _split(a: Form, n: int) -> tuple[Form, Form]:
    """Returns the terms of a form that are multiples of n, and all others, whose constant is from 0
    to n - 1: quotients by n add up, and the second part alone decides remainders."""
    whole = {v: stride for v, stride in a.strides if stride % n == 0}
    rest = {v: stride for v, stride in a.strides if stride % n}
    return form(a.constant // n * n, whole), form(a.constant % n, rest)


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


def _new_variable(op: str, a: Form, n: int, low: int, high: int) -> Form:
    """Returns `low` plus a new variable of extent `high` - `low` + 1 that represents `a op n`. Its
    name is made of the operation and its operands, so that equal expressions have equal forms; it
    may change where a's variables may."""
    # The variable is bounded, but which of its values belongs to which thread is lost. That it is
    # named by its expression retains one thing: where the expression occurs twice, both have one
    # value.
    at = frozenset[int]().union(*(variable.at for variable, _ in a.strides))
    part = DividedPart(a, n, low, op == "div") if op in ("div", "rem") else None
    variable = IndexVariable(f"{op}({a}, {n})", high - low + 1, at=at, part=part)
    return form(low, {variable: 1})
