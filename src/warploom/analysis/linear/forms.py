"""Represents integers as linear forms: a constant plus strides times variables of known range.

Once the parameters and dimensions of a launch are known, most addresses are such forms: a buffer's
address plus strides times thread and block indices. With 256 threads a block,

    mad.lo.u32    %r1, %ctaid.x, 256, %tid.x;
    mul.wide.u32  %rd1, %r1, 4;
    add.s64       %rd2, %rd3, %rd1;     0x1000 + 4 * %tid.x + 1024 * %ctaid.x, if %rd3 is 0x1000

Quotients and remainders become variables of their own. The forms of instructions' results are those
of their terms (`term_forms`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ELSEWHERE = -1
"""In `IndexVariable.at`: the variable may change anywhere."""


@dataclass(frozen=True, slots=True)
class IndexVariable:
    """A variable with the values 0 to `extent` - 1 (None: any value from 0 on), such as a thread
    index, a block index or an iteration count; equal variables have equal names.

    `of_block`: all threads of a block have the same value, and blocks have different ones. `at` are
    the basic blocks at whose start the value may change (or ELSEWHERE); a thread's value of a
    variable without any is constant. `counts`: it counts iterations, or how far the path that a
    thread came by advances it. `part`: what the variable is a quotient, a remainder or a union of,
    if any."""

    name: str
    extent: int | None
    of_block: bool = False
    at: frozenset[int] = frozenset()
    counts: bool = False
    part: DividedPart | BitUnion | None = field(default=None, compare=False)  # the name has it


@dataclass(frozen=True, slots=True)
class DividedPart:
    """The quotient `dividend // divisor` less `low`, its least value, or the remainder."""

    dividend: Form
    divisor: int
    low: int
    is_quotient: bool


@dataclass(frozen=True, slots=True)
class BitUnion:
    """The bits of two forms that are never negative: at least the greater of both."""

    left: Form
    right: Form


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
        if not isinstance(part, DividedPart) or not part.is_quotient:
            continue
        dividend, n = part.dividend, part.divisor
        strides = dict(value.strides)
        first, first_stride = dividend.strides[0]
        times = strides.get(first, 0) // first_stride
        is_subtracted = times * stride < 0 and abs(stride) >= abs(times) * n
        if is_subtracted and all(strides.get(v) == times * s for v, s in dividend.strides):
            of_rest = new_variable("rem", dividend, n, 0, n - 1)
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
    if not isinstance(part, DividedPart) or part.is_quotient:
        return None
    divided = quotient(part.dividend, part.divisor)
    return None if divided is None else part.dividend.plus_as_is(divided, -part.divisor)


def divided(value: Form, by: int) -> Form | None:
    """Returns a form divided by a number; None if its constant or a stride is no multiple of the
    number."""
    if any(number % by for number in (value.constant, *(stride for _, stride in value.strides))):
        return None
    return Form(value.constant // by, tuple((v, stride // by) for v, stride in value.strides))


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
    of_rest = form(low) if low == high else new_variable("div", rest, n, low, high)
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
    return new_variable("rem", rest, n, 0, n - 1)


def _split(a: Form, n: int) -> tuple[Form, Form]:
    """Returns the terms of a form that are multiples of n, and all others, whose constant is from 0
    to n - 1: quotients by n add up, and the second part alone decides remainders."""
    whole = {v: stride for v, stride in a.strides if stride % n == 0}
    rest = {v: stride for v, stride in a.strides if stride % n}
    return form(a.constant // n * n, whole), form(a.constant % n, rest)


def new_variable(op: str, a: Form, n: int, low: int, high: int) -> Form:
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


def union(left: Form, right: Form, high: int) -> Form:
    """Returns a new variable from 0 to `high` that represents the bits of two forms that are never
    negative. It may change where their variables may."""
    at = frozenset[int]().union(*(v.at for side in (left, right) for v, _ in side.strides))
    part = BitUnion(left, right)
    return form(0, {IndexVariable(f"or({left}, {right})", high + 1, at=at, part=part): 1})
