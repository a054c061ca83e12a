"""Multiplies the counts of range caches by what their accesses cost, and gives each access record
its costliest access as the example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warploom.cost.fields import CostRecord
from warploom.machine.compiled.pattern_costs import PatternCosts
from warploom.machine.tally import Tally

Words = npt.NDArray[np.int64]

_ADDRESSES = slice(CostRecord.example_addresses, CostRecord.WORDS)


class PricedPattern(NamedTuple):
    """The accesses of a `record` that one entry of its group's cache counted, which have the lane
    pattern of `patterns`: their `positions` in the flattened table of counts, and the `offsets` of
    their first addresses in the unit, in elements. `first_address_at` is the position in the
    flattened entries of the one first address that the entry has recorded, which is at another
    offset of the unit if it counts at several (`has_several_offsets`)."""

    record: int
    positions: Words
    offsets: Words
    patterns: PatternCosts
    first_address_at: int
    has_several_offsets: bool


class _Example(NamedTuple):
    """The costliest access of a record: its transactions, its pattern, and its offset in bytes."""

    transactions: int
    pattern: PricedPattern
    offset: int


@dataclass(frozen=True, eq=False)
class Prices:
    """The costs of the accesses counted at each of `positions` of a flattened table of counts,
    `costs` of shape (positions, FIELDS). The positions are in order of their access records:
    `records`, whose first ones are at `starts`. `examples` has the costliest access of each of
    these records, of equal ones the first."""

    positions: Words
    costs: Words
    records: Words
    starts: Words
    examples: _Examples

    @classmethod
    def of(cls, priced: Sequence[PricedPattern], unit: int) -> Prices:
        """Returns the prices of some accesses, those of a record one after the other, in units of
        `unit` bytes."""
        costs = [pattern.patterns.at(pattern.offsets) for pattern in priced]
        groups = [
            list(group) for _, group in groupby(range(len(priced)), lambda n: priced[n].record)
        ]
        sizes = [sum(len(priced[n].positions) for n in group) for group in groups]
        examples = [
            max((_example(priced[n], costs[n]) for n in group), key=lambda e: e.transactions)
            for group in groups
        ]
        return cls(
            np.concatenate([pattern.positions for pattern in priced]),
            np.concatenate(costs),
            np.array([priced[group[0]].record for group in groups]),
            np.cumsum([0, *sizes[:-1]]),
            _Examples.of(examples, unit),
        )

    def add(self, tally: Tally, entries: Words, times: Words) -> None:
        """Adds to a tally the costs of accesses that occurred `times` (the flattened table of
        counts), counted in the caches with the flattened `entries`. The costliest access of each
        record becomes its example if it costs more than the present one."""
        costs = times[self.positions, None] * self.costs
        tally.accesses[self.records] += np.add.reduceat(costs, self.starts)
        present = tally.records[self.records, CostRecord.example_cost]
        is_dearer = self.examples.transactions > present
        if is_dearer.any():
            rows = self.records[is_dearer]
            tally.records[rows, CostRecord.example_cost] = self.examples.transactions[is_dearer]
            tally.records[rows, CostRecord.example_mask] = self.examples.masks[is_dearer]
            tally.records[rows, _ADDRESSES] = self.examples.addresses(entries)[is_dearer]


def _example(pattern: PricedPattern, costs: Words) -> _Example:
    """Returns the costliest of the accesses with a pattern, of equal ones the first; `costs` are
    those at the offsets of the pattern."""
    transactions = costs[:, CostRecord.transactions]
    costliest = int(transactions.argmax())
    offset = int(pattern.offsets[costliest]) * pattern.patterns.size
    return _Example(int(transactions[costliest]), pattern, offset)


@dataclass(frozen=True, eq=False)
class _Examples:
    """One access of each of several records, in arrays of shape (records,) or (records, lanes)."""

    unit: int
    transactions: Words
    masks: Words
    offsets: Words
    first_addresses_at: Words
    has_several_offsets: npt.NDArray[np.bool_]
    is_local: npt.NDArray[np.bool_]
    first_steps: Words
    steps: Words
    is_active: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, examples: Sequence[_Example], unit: int) -> _Examples:
        """Returns the arrays of some examples."""
        patterns = [example.pattern.patterns for example in examples]
        return cls(
            unit,
            np.array([example.transactions for example in examples]),
            np.array([pattern.lanes for pattern in patterns]),
            np.array([example.offset for example in examples]),
            np.array([example.pattern.first_address_at for example in examples]),
            np.array([example.pattern.has_several_offsets for example in examples]),
            np.array([pattern.is_local for pattern in patterns]),
            np.array([pattern.first_step for pattern in patterns]),
            np.stack([pattern.steps for pattern in patterns]),
            np.stack([pattern.is_active for pattern in patterns]),
        )

    def addresses(self, entries: Words) -> Words:
        """Returns the addresses of the lanes, 0 for inactive ones. An access begins at the first
        address that its entry recorded, or where that has counted at several offsets, at the
        address with the access's offset that is nearest to it. Lanes of local memory access
        consecutive words from the begin of a unit."""
        recorded = entries[self.first_addresses_at]
        distances = self.offsets - recorded
        nearest = distances - self.unit * np.rint(distances / self.unit).astype(np.int64)
        begins = recorded + nearest * self.has_several_offsets
        in_unit = (begins + self.first_steps) // self.unit * self.unit
        begins = np.where(self.is_local, in_unit, begins)
        return (begins[:, None] + self.steps) * self.is_active
