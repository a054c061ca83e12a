"""Linear programs, built up row by row and solved by HiGHS, whose solutions are stored in the disk
cache."""

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
    """Rows of a sparse matrix, in compressed form, with their bounds."""

    starts: list[int] = field(default_factory=list[int])
    columns: list[int] = field(default_factory=list[int])
    factors: list[float] = field(default_factory=list[float])
    least: list[float] = field(default_factory=list[float])
    most: list[float] = field(default_factory=list[float])

    def add(self, terms: Terms, least: float, most: float) -> None:
        """Adds a row; terms of one variable are added up, as HiGHS demands."""
        sums: dict[int, float] = {}
        for column, factor in terms:
            sums[column] = sums.get(column, 0.0) + factor
        self.starts.append(len(self.columns))
        self.columns += sums.keys()
        self.factors += sums.values()
        self.least.append(least)
        self.most.append(most)


@dataclass
class LinearProgram:
    """Variables of at least 0, each with a cost, whose sum is to be least."""

    costs: list[float] = field(default_factory=list[float])
    most: list[float] = field(default_factory=list[float])
    _rows: _Rows = field(default_factory=_Rows)

    def variable(self, cost: float = 0.0, most: float = np.inf) -> int:
        """Adds a variable that is `most` at most; returns its number."""
        self.costs.append(cost)
        self.most.append(most)
        return len(self.costs) - 1

    def equal(self, terms: Terms, value: float) -> None:
        """Constrains the sum of the terms to this value."""
        self._rows.add(terms, value, value)

    def at_most(self, terms: Terms, value: float) -> None:
        """Constrains the sum of the terms to no more than this value."""
        self._rows.add(terms, -np.inf, value)

    def solve(self) -> Floats:
        """Returns the values of the variables, from the disk cache where it has them. Raises
        WarploomError where the constraints have no solution."""
        parts = (importlib.metadata.version("highspy"), repr(self))
        key = disk_cache.key_of(parts, ("machinecode",))
        found = disk_cache.find(KIND, key)
        if found is not None:
            return np.frombuffer(found)
        solved = self._solve()
        disk_cache.store(KIND, key, solved.tobytes())
        return solved

    def _solve(self) -> Floats:
        """Solves the program (`solve`)."""
        import highspy  # most processes find the solution in the cache

        class QuietSolver(highspy.Highs):
            """A solver that prints nothing; its base prints its version when it enables callbacks,
            before an option can be set."""

            def enableCallbacks(self) -> None:  # noqa: N802  (the name of the base)
                """Switches output off, and enables no callbacks."""
                self.setOptionValue("output_flag", False)

        model, rows = highspy.HighsLp(), self._rows
        model.num_col_, model.num_row_ = len(self.costs), len(rows.least)
        model.col_cost_, model.col_lower_ = self.costs, [0.0] * len(self.costs)
        model.col_upper_ = self.most
        model.row_lower_, model.row_upper_ = rows.least, rows.most
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.num_col_, matrix.num_row_ = model.num_col_, model.num_row_
        matrix.start_ = [*rows.starts, len(rows.columns)]
        matrix.index_, matrix.value_ = rows.columns, rows.factors
        solver = QuietSolver()
        solver.setOptionValue("threads", 1)
        solver.passModel(model)
        solver.run()
        status = solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            message = solver.modelStatusToString(status)
            raise WarploomError(f"the linear program has no solution: {message}")
        return np.array(solver.getSolution().col_value)
