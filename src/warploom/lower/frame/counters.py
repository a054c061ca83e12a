"""Counters of executed code (`abi.environment.CountLayout`), as the code of a warp adds to
them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from warploom.llvm.lanes import Lanes, Value


class Counters:
    """Adds to the array of counts at `start`."""

    def __init__(self, lanes: Lanes, start: Value) -> None:
        self.lanes, self._start = lanes, start
        self._sums: dict[int, Value] | None = None

    def add(self, index: int, amount: Value) -> None:
        """Add to one of the counts."""
        if self._sums is None:
            self.lanes.add_to(self.lanes.slot(self._start, index), amount)
        else:
            known = self._sums.get(index)
            self._sums[index] = amount if known is None else self.lanes.b.add(known, amount)

    @contextmanager
    def adding_up(self) -> Generator[None]:
        """Add to each count once, in the end, what is counted in straight code in between."""
        self._sums = {}
        yield
        found, self._sums = self._sums, None
        for index, amount in found.items():
            self.add(index, amount)
