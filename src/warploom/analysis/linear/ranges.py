"""Bounds the values of linear forms (`forms`), such as addresses, by facts: forms that are at least
0 (`predicates`).

    facts: n - 1 - i, with i >= 0, n = 100     range of 4 * i: 0 to 396

Bounds of variables are narrowed in a few rounds, then facts are added to a form where they cancel
variables. Not handled: combinations that need more than MOST_STEPS additions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from warploom.analysis.linear.forms import DividedPart, Form, IndexVariable, expansions, form
from warploom.analysis.linear.predicates import Facts

ROUNDS = 3
"""Rounds in which ranges of variables are narrowed by those of others."""

MOST_STEPS = 4
"""Facts that are added to a form to bound it, at most."""

Range = tuple[float, float]
"""The least and the greatest value; infinite if there is none."""


@dataclass(frozen=True)
class Ranges:
    """The ranges of variables under some facts, from which ranges of forms follow."""

    facts: Facts
    variables: dict[IndexVariable, Range]
    _bounds: dict[Form, Range] = field(default_factory=dict[Form, "Range"], compare=False)

    @classmethod
    def under(cls, facts: Facts, forms: Iterable[Form]) -> Ranges:
        """Returns the ranges of the variables of some forms, and of the facts that share variables
        with them, narrowed by those facts."""
        bounded = [expanded for form in forms for expanded in expansions(form)]
        variables = {v: _initial_range(v) for f in bounded for v, _ in f.strides}
        concerning = frozenset(
            expanded
            for fact in facts
            if any(v in variables for other in expansions(fact) for v, _ in other.strides)
            for expanded in expansions(_tightened(fact))
        )
        for fact in concerning:
            variables |= {v: _initial_range(v) for v, _ in fact.strides if v not in variables}
        concerning |= _of_quotients(concerning, variables)
        for fact in concerning:
            variables |= {v: _initial_range(v) for v, _ in fact.strides if v not in variables}
        # A range may be used before it is narrowed: each is right at any time, only not the least.
        for _ in range(ROUNDS):
            for known_form in concerning:
                _narrow(variables, known_form)
        return cls(concerning, variables)

    def with_fixed(self, form: Form) -> Form:
        """Returns a form with constants in place of the variables that have one value only."""
        for variable, stride in form.strides:
            low, high = self.variables[variable]
            if low == high:
                form = form.without(variable).plus(Form(int(low) * stride))
        return form

    def of(self, form: Form) -> Range:
        """Returns bounds of a form under the facts: no value is below the first or above the
        second, infinite if unbounded; a bound need not be attained."""
        if form not in self._bounds:
            forms = expansions(form)
            low = max(-self._upper_bound(expanded.times(-1)) for expanded in forms)
            self._bounds[form] = low, min(self._upper_bound(expanded) for expanded in forms)
        return self._bounds[form]

    def _upper_bound(self, form: Form) -> float:
        """Returns an upper bound of a form: that of its variables, or a lower one after adding
        facts, each of which is at least 0, so that the sum is no less than the form."""
        # With the fact `n - 1 - i` and the form `4 * i`, adding it four times cancels `i`: the form
        # is at most `4 * n - 4`. Greedy: the fact that lowers the bound most comes first, and a sum
        # that lowers it no more ends the search. Whatever is chosen, the bound is right.
        best = self._by_variables(form)
        for _ in range(MOST_STEPS):
            added = [self._added(form, fact) for fact in self.facts]
            better = [
                (self._by_variables(candidate), candidate)
                for candidate in added
                if candidate is not None
            ]
            if not better:
                break
            least, form = min(better, key=lambda pair: pair[0])
            if least >= best:
                break
            best = least
        return best

    def _added(self, form: Form, fact: Form) -> Form | None:
        """Returns a form plus a multiple of a fact that brings strides of the form nearer to 0, as
        large as changes no stride's sign. None if some variable of the fact is not in the form with
        the other sign, or if even the fact once is too much."""
        strides = dict(form.strides)
        times = math.inf
        for variable, stride in fact.strides:
            own = strides.get(variable, 0)
            if own * stride >= 0:
                return None
            times = min(times, -own // stride)
        return form.plus_as_is(fact, int(times)) if 1 <= times < math.inf else None

    def _by_variables(self, form: Form) -> float:
        """Returns an upper bound of a form by the ranges of its variables alone."""
        bounds = (self._part(variable, stride)[1] for variable, stride in form.strides)
        return form.constant + sum(bounds)

    def _part(self, variable: IndexVariable, stride: int) -> Range:
        """Returns the range of stride times variable."""
        return _scaled(self.variables.get(variable, _initial_range(variable)), stride)


def _of_quotients(facts: Facts, variables: Iterable[IndexVariable]) -> Facts:
    """Returns facts about quotients among some variables: a dividend is between the quotient's
    multiple of the divisor and the next one. Adds the sums of these with other facts in which the
    dividend cancels out."""
    definitions = set[Form]()
    for variable in variables:
        part = variable.part
        if isinstance(part, DividedPart) and part.is_quotient:
            n = part.divisor
            dividend = part.dividend.plus_as_is(form(n * part.low, {variable: n}), -1)
            for rest in expansions(dividend):
                definitions |= {rest, form(n - 1).plus_as_is(rest, -1)}
    sums = set[Form]()
    for fact in facts if definitions else ():
        strides = dict(fact.strides)
        for definition in definitions:
            first, stride = definition.strides[0]
            times = strides.get(first, 0) // -stride
            total = fact.plus_as_is(definition, times) if times > 0 else fact
            if len(total.strides) < len(fact.strides) and total.strides:
                sums.add(_tightened(total))
    return frozenset(definitions | sums)


def _tightened(fact: Form) -> Form:
    """Returns a fact divided by what divides all its strides: variables are integers, so `3999 - 4
    * i` is at least 0 if and only if `999 - i` is."""
    by = math.gcd(*(stride for _, stride in fact.strides))
    if by <= 1:
        return fact
    return Form(fact.constant // by, tuple((v, stride // by) for v, stride in fact.strides))


def _initial_range(variable: IndexVariable) -> Range:
    """Returns the range of a variable without facts: 0 to its extent minus 1, or to infinity."""
    return 0, math.inf if variable.extent is None else variable.extent - 1


def _scaled(range: Range, by: int) -> Range:
    """Returns the least and greatest value (infinite: unbounded) of a range multiplied by a factor
    that is not 0."""
    low, high = range[0] * by, range[1] * by
    return (low, high) if by > 0 else (high, low)


def _narrow(variables: dict[IndexVariable, Range], fact: Form) -> None:
    """Narrows the ranges of a fact's variables, in place, to values for which the fact can be at
    least 0 while all other variables are at the end of their ranges that favors it."""
    parts = {v: _scaled(variables[v], stride) for v, stride in fact.strides}
    for variable, stride in fact.strides:
        rest_high = sum(high for name, (_, high) in parts.items() if name != variable)
        least = -(fact.constant + rest_high)  # of stride * variable
        if math.isinf(least):
            continue
        low, high = variables[variable]
        if stride > 0:
            # Rounded up, for variables are integers.
            low = max(low, -(-least // stride))
        else:
            high = min(high, least // stride)
        variables[variable] = (low, high)
