"""Relations over the events of one execution: event i is related to j where bit j of row i is 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


def members(row: int) -> Iterator[int]:
    """Yields the numbers of the bits that are 1, ascending."""
    while row:
        lowest = row & -row
        yield lowest.bit_length() - 1
        row ^= lowest


@dataclass(frozen=True, slots=True)
class Relation:
    """A set of ordered pairs of events; `rows[i]` has the successors of event i as bits."""

    rows: tuple[int, ...]

    @staticmethod
    def of(size: int, pairs: Iterable[tuple[int, int]]) -> Relation:
        """Returns the relation of these pairs over `size` events."""
        rows = [0] * size
        for first, second in pairs:
            rows[first] |= 1 << second
        return Relation(tuple(rows))

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yields the pairs, ascending."""
        return ((i, j) for i, row in enumerate(self.rows) for j in members(row))

    def __or__(self, other: Relation) -> Relation:
        return Relation(tuple(a | b for a, b in zip(self.rows, other.rows, strict=True)))

    def __and__(self, other: Relation) -> Relation:
        return Relation(tuple(a & b for a, b in zip(self.rows, other.rows, strict=True)))

    def __sub__(self, other: Relation) -> Relation:
        return Relation(tuple(a & ~b for a, b in zip(self.rows, other.rows, strict=True)))

    def then(self, other: Relation) -> Relation:
        """Returns the composition: i to k where some j has i to j here and j to k in `other`."""
        rows: list[int] = []
        for row in self.rows:
            successors = 0
            for middle in members(row):
                successors |= other.rows[middle]
            rows.append(successors)
        return Relation(tuple(rows))

    def inverse(self) -> Relation:
        """Returns the pairs turned round."""
        return Relation.of(len(self.rows), ((j, i) for i, j in self.pairs))

    def closure(self) -> Relation:
        """Returns the transitive closure."""
        rows = list(self.rows)
        for middle, row in enumerate(rows):
            row = rows[middle]
            for i, successors in enumerate(rows):
                if successors >> middle & 1:
                    rows[i] = successors | row
        return Relation(tuple(rows))

    def with_identity(self) -> Relation:
        """Returns the relation and every event's pair with itself."""
        return Relation(tuple(row | 1 << i for i, row in enumerate(self.rows)))

    @property
    def is_empty(self) -> bool:
        """Returns whether there is no pair."""
        return not any(self.rows)

    @property
    def is_irreflexive(self) -> bool:
        """Returns whether no event is related to itself."""
        return not any(row >> i & 1 for i, row in enumerate(self.rows))

    @property
    def is_acyclic(self) -> bool:
        """Returns whether no path leads from an event back to it."""
        return self.closure().is_irreflexive


def identity(size: int, chosen: int) -> Relation:
    """Returns the pairs of the events in the set `chosen` (bits) with themselves."""
    return Relation(tuple(chosen & 1 << i for i in range(size)))


def product(size: int, first: int, second: int) -> Relation:
    """Returns all pairs of an event of the set `first` with one of `second`."""
    return Relation(tuple(second if first >> i & 1 else 0 for i in range(size)))
