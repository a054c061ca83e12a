"""Emits additions to the launch's counters of executed code (`abi.environment.CountLayout`), from
which costs are computed.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from warploom.llvm.lanes import Lanes, Value


class Counters:
    """Adds to 64-bit elements of the array of counts at the address `start`."""

    def __init__(self, lanes: Lanes, start: Value) -> None:
        """Begins without an open `adding_up`: additions are emitted at once."""
        self.lanes, self._start = lanes, start
        self._sums: dict[int, Value] | None = None

    def add(self, index: int, amount: Value) -> None:
        """Adds an amount (i64) to the count of an index: at once, or when an open `adding_up`
        closes.
        """
        if self._sums is None:
            self.lanes.add_to(self.lanes.slot(self._start, index), amount)
        else:
            pending = self._sums.get(index)
            self._sums[index] = amount if pending is None else self.lanes.b.add(pending, amount)

    @contextmanager
    def adding_up(self) -> Generator[None]:
        """Collects the amounts added while it is open, around straight-line code, and emits one
        addition to each of their counts when it closes. It cannot be nested."""
        self._sums = {}
        yield
        sums, self._sums = self._sums, None
        for index, amount in sums.items():
            self.add(index, amount)
