"""Linear programs, built up row by row and solved by SciPy (HiGHS).

Solutions are stored in the disk cache: importing SciPy's solver takes longer than a short command.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.core.errors import WarploomError
from warploom.llvm import disk_cache

Floats = npt.NDArray[np.float64]
Terms = Iterable[tuple[int, float]]
"""Variables, each with its factor."""

KIND = "flow"
"""The kind under which the disk cache holds solutions."""


@dataclass
class _Rows:
    """Rows of a matrix and of the right-hand side."""

    rows: list[int] = field(default_factory=list[int])
    columns: list[int] = field(default_factory=list[int])
    factors: list[float] = field(default_factory=list[float])
    right: list[float] = field(default_factory=list[float])

    def add(self, terms: Terms, right: float) -> None:
        for column, factor in terms:
            self.rows.append(len(self.right))
            self.columns.append(column)
            self.factors.append(factor)
        self.right.append(right)

    @property
    def text(self) -> str:
        """Returns all fields as a text, the same for equal rows alone."""
        return repr((self.rows, self.columns, self.factors, self.right))


@dataclass
class LinearProgram:
    """Variables of at least 0, each with a cost, whose sum is to be least."""

    costs: list[float] = field(default_factory=list[float])
    most: list[float] = field(default_factory=list[float])
    _equal: _Rows = field(default_factory=_Rows)
    _at_most: _Rows = field(default_factory=_Rows)

    def variable(self, cost: float = 0.0, most: float = np.inf) -> int:
        """Adds a variable that is `most` at most; returns its number."""
        self.costs.append(cost)
        self.most.append(most)
        return len(self.costs) - 1

    def equal(self, terms: Terms, value: float) -> None:
        """Constrains the sum of the terms to this value."""
        self._equal.add(terms, value)

    def at_most(self, terms: Terms, value: float) -> None:
        """Constrains the sum of the terms to no more than this value."""
        self._at_most.add(terms, value)

    def solve(self) -> Floats:
        """Returns the values of the variables, from the disk cache where it has them. Raises
        WarploomError where the constraints have no solution."""
        rows = (self._equal.text, self._at_most.text)
        parts = (importlib.metadata.version("scipy"), repr(self.costs), repr(self.most), *rows)
        key = disk_cache.key_of(parts, ("machinecode",))
        found = disk_cache.find(KIND, key)
        if found is not None:
            return np.frombuffer(found)
        solved = self._solve()
        disk_cache.store(KIND, key, solved.tobytes())
        return solved

    def _solve(self) -> Floats:
        """Solves the program (`solve`)."""
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

        def matrix(of: _Rows) -> object:
            shape = len(of.right), len(self.costs)
            return coo_array((of.factors, (of.rows, of.columns)), shape=shape).tocsr()

        solved = linprog(
            self.costs,
            A_ub=matrix(self._at_most),
            b_ub=self._at_most.right,
            A_eq=matrix(self._equal),
            b_eq=self._equal.right,
            bounds=np.stack([np.zeros(len(self.most)), self.most], axis=1),
            method="highs",
        )
        if solved.x is None:
            raise WarploomError(f"the linear program has no solution: {solved.message}")
        return solved.x
