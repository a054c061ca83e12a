"""Makes costs of what access caches counted (`abi.range_cache`): of each kind of access the
rules say what one costs, and the cache how often it came again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import CountLayout
from warploom.abi.range_cache import (
    AHEAD,
    FIRST,
    HEADER,
    KEY,
    LEADER,
    PITCHES,
    RUNS,
    STEP,
    WITHIN,
    RangeCacheLayout,
    entries_of,
)
from warploom.analysis.vector_shape import LANES
from warploom.cost.fields import (
    EXAMPLE_ADDRESSES,
    EXAMPLE_COST,
    EXAMPLE_MASK,
    TRANSACTIONS,
)
from warploom.machine.compiled.access_costs import RowRule, row_rule
from warploom.machine.tally import Counts, Tally
from warploom.program.accesses import FIELDS
from warploom.ptx.ir import Space
from warploom.simt.lane_counts import ALL_LANES

Words = npt.NDArray[np.int64]

_BEGIN = 1 << 44
"""A multiple of every unit, from which addresses are counted, so that none is below 0."""


@dataclass(frozen=True)
class Pattern:
    """Says how the lanes of an access lie to each other: `steps` are bytes behind where the first
    run of its group begins, lane by lane; `local` addresses are lines of a stack whatever the
    steps."""

    mask: int
    steps: tuple[int, ...]
    local: bool

    def addresses(self, first: int) -> tuple[int, ...]:
        """Returns the addresses of an access whose lane 0 reaches `first`."""
        if self.local:
            return tuple(_BEGIN + 4 * lane for lane in range(LANES))
        return tuple(first + step - self.steps[0] for step in self.steps)


class PatternCosts:
    """Keeps what accesses of a pattern cost, by the place of their group's first run in the unit of
    a device's rules, in elements."""

    def __init__(self, pattern: Pattern, rule: RowRule, unit: int) -> None:
        self._pattern, self._rule, self._unit = pattern, rule, unit
        self._known = np.zeros(unit // rule.size, np.bool_)
        self._costs = np.zeros((len(self._known), len(FIELDS)), np.int64)

    def first(self, place: int) -> int:
        """Returns an address that lane 0 reaches where the first run is at a place."""
        return _BEGIN + (place * self._rule.size + self._pattern.steps[0]) % self._unit

    def at(self, places: Words) -> Words:
        """Returns the costs of an access at each of some places, in the order of FIELDS."""
        for place in places[~self._known[places]].tolist():
            addresses = self._pattern.addresses(self.first(place))
            self._costs[place] = self._rule.cost(self._pattern.mask, addresses)
            self._known[place] = True
        return self._costs[places]


@lru_cache(maxsize=1 << 11)
def _costs_of(pattern: Pattern, rule: RowRule, unit: int) -> PatternCosts:
    return PatternCosts(pattern, rule, unit)


def add_repeats(tally: Tally, layout: CountLayout, words: Words) -> None:
    """Adds to a tally what repeated accesses cost; `words` are a worker's keys and caches."""
    for row, place in layout.caches.places.items():
        if words[place + LEADER]:
            _add_row(tally, layout, row, words)


def _add_row(tally: Tally, layout: CountLayout, row: int, words: Words) -> None:
    """Adds what repeated accesses of a row cost whose cache is in use."""
    caches, place = layout.caches, layout.caches.places[row]
    header, leader = words[place : place + HEADER], int(words[place + LEADER])
    rule = row_rule(layout.program, layout.rows[row], layout.rules)
    entries = _entries(caches, row, words, leader)
    times = entries[:, caches.counts :]
    if leader != place:
        times = times + _entries(caches, row, words, place)[:, caches.counts :]
    for number in np.flatnonzero(times.any(axis=1)):
        entry = entries[number]
        pattern = Pattern(
            int(entry[KEY]) & ALL_LANES,
            _steps(header, entry),
            layout.rows[row].space is Space.LOCAL,
        )
        places = np.flatnonzero(times[number])
        known = _costs_of(pattern, rule, caches.unit)
        costs = known.at(places)
        tally.accesses[row] += times[number, places] @ costs
        dearest = int(costs[:, TRANSACTIONS].argmax())
        if costs[dearest, TRANSACTIONS] > tally.records[row, EXAMPLE_COST]:
            first = known.first(int(places[dearest]))
            tally.records[row, EXAMPLE_COST] = costs[dearest, TRANSACTIONS]
            moved = _moved(entry, first - pattern.steps[0], rule.size, caches.unit)
            _keep_example(tally.records[row], pattern, first, moved)


def _entries(caches: RangeCacheLayout, row: int, words: Words, cache: int) -> Words:
    """Returns the entries of a cache that begins at some word, one a row; the cache of the first
    access of a row's group has entries as long as the row's own."""
    shape = entries_of(caches.sets), caches.entry(row)
    return words[cache + HEADER : cache + HEADER + math.prod(shape)].reshape(shape)


def _moved(entry: Words, begin: int, size: int, unit: int) -> int:
    """Returns how far a first run that begins at some address lies behind that of an access that
    there was, or may have been."""
    moved = begin - int(entry[FIRST])
    return unit * round(moved / unit) if entry[WITHIN] >= size else moved


def _keep_example(record: Counts, pattern: Pattern, first: int, moved: int) -> None:
    """Keeps an access as its row's example."""
    record[EXAMPLE_MASK] = pattern.mask
    record[EXAMPLE_ADDRESSES : EXAMPLE_ADDRESSES + LANES] = [
        address - moved if pattern.mask >> lane & 1 else 0
        for lane, address in enumerate(pattern.addresses(first))
    ]


def _steps(header: Words, entry: Words) -> tuple[int, ...]:
    """Returns how far each lane reaches behind where the first run of its group begins."""
    runs = int(header[RUNS])
    pitches = entry[PITCHES : PITCHES + runs].reshape(runs, 1)
    lanes = pitches + np.arange(LANES // runs) * entry[STEP]
    return tuple((header[AHEAD] + lanes).ravel().tolist())
