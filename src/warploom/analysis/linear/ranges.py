"""Bounds linear forms (`forms`) by facts: forms that are known to be at least 0 (`predicates`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable
from warploom.analysis.linear.predicates import Facts

ROUNDS = 3
"""So often what is found of one variable is used for the others."""

MOST_STEPS = 4
"""So many facts are added up to bound a form."""

Range = tuple[float, float]
"""The least and the greatest value; infinite where there is none."""


@dataclass(frozen=True)
class Ranges:
    """Bounds the values of variables, and of forms of them, where some facts hold."""

    facts: Facts
    variables: dict[IndexVariable, Range]

    @classmethod
    def under(cls, facts: Facts, forms: Iterable[Form]) -> Ranges:
        """Return the ranges of what some forms are made of, under those facts that concern it."""
        variables = {
            variable: _initial_range(variable) for one in forms for variable, _ in one.strides
        }
        concerning = frozenset(f for f in facts if any(v in variables for v, _ in f.strides))
        for one in concerning:
            variables |= {v: _initial_range(v) for v, _ in one.strides if v not in variables}
        for _ in range(ROUNDS):
            for one in concerning:
                _narrow(variables, one)
        return cls(concerning, variables)

    def of(self, one: Form) -> Range:
        """Return the range of a form."""
        return -self._upper_bound(one.times(-1)), self._upper_bound(one)

    def _upper_bound(self, one: Form) -> float:
        """Return an upper bound of a form: by its variables, and by adding facts to it that cancel
        some of them."""
        best = self._by_variables(one)
        for _ in range(MOST_STEPS):
            added = [self._added(one, fact) for fact in self.facts]
            better = [(self._by_variables(each), each) for each in added if each is not None]
            if not better:
                break
            least, one = min(better, key=lambda pair: pair[0])
            if least >= best:
                break
            best = least
        return best

    def _added(self, one: Form, fact: Form) -> Form | None:
        """Return a form with a fact added as often as leaves all variables of the fact in it as
        they are signed; None where that is never."""
        strides = dict(one.strides)
        times = math.inf
        for variable, stride in fact.strides:
            own = strides.get(variable, 0)
            if own * stride >= 0:
                return None
            times = min(times, -own // stride)
        return one.plus(fact, int(times)) if 1 <= times < math.inf else None

    def _by_variables(self, one: Form) -> float:
        bounds = (self._part(variable, stride)[1] for variable, stride in one.strides)
        return one.constant + sum(bounds)

    def _part(self, variable: IndexVariable, stride: int) -> Range:
        return _scaled(self.variables.get(variable, _initial_range(variable)), stride)


def _initial_range(variable: IndexVariable) -> Range:
    """Return what values a variable can have."""
    return 0, math.inf if variable.extent is None else variable.extent - 1


def _scaled(range: Range, by: int) -> Range:
    low, high = range[0] * by, range[1] * by
    return (low, high) if by > 0 else (high, low)


def _narrow(variables: dict[IndexVariable, Range], fact: Form) -> None:
    """Narrow the ranges of a fact's variables to where it can hold."""
    parts = {v: _scaled(variables[v], stride) for v, stride in fact.strides}
    for variable, stride in fact.strides:
        others = sum(high for each, (_, high) in parts.items() if each != variable)
        least = -(fact.constant + others)  # of stride * variable
        if math.isinf(least):
            continue
        low, high = variables[variable]
        if stride > 0:
            low = max(low, -(-least // stride))
        else:
            high = min(high, least // stride)
        variables[variable] = (low, high)
