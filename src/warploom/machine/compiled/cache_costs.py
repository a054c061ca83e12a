"""Converts the counters of range caches (`abi.range_cache`) into costs of accesses.

A range cache counts, for each lane pattern that an access instruction used, how often the pattern
occurred at each offset in a unit (128 bytes, or 256 on compute capability 3.x). The cost rules
depend on nothing else, so each (pattern, offset) is priced once and multiplied by its count.
Example: 32 lanes with stride 4, seen 1000 times at offset 0 and once at offset 4, touch 1000 * 4 +
1 * 5 sectors of 32 bytes.
"""

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
from warploom.cost.fields import (
    EXAMPLE_ADDRESSES,
    EXAMPLE_COST,
    EXAMPLE_MASK,
    TRANSACTIONS,
)
from warploom.isa.instruction import Space
from warploom.machine.compiled.access_costs import RowRule, row_rule
from warploom.machine.tally import Counts, Tally
from warploom.program.accesses import FIELDS
from warploom.shapes.vector_shape import LANES
from warploom.simt.lane_counts import ALL_LANES

Words = npt.NDArray[np.int64]

_ORIGIN = 1 << 44
"""The base of synthetic addresses: a multiple of every unit, large enough that no lane's address is
negative."""


@dataclass(frozen=True)
class LanePattern:
    """The active mask and relative addresses of an access: `steps` are the byte offsets of its 32
    lanes from the first lane of the access group's first access. `local` accesses touch consecutive
    words whatever the steps, since local memory is interleaved by lane."""

    mask: int
    steps: tuple[int, ...]
    local: bool

    def addresses(self, first_address: int) -> tuple[int, ...]:
        """Returns the lanes' addresses if lane 0 accesses `first_address`; for local accesses,
        consecutive words."""
        if self.local:
            return tuple(_ORIGIN + 4 * lane for lane in range(LANES))
        return tuple(first_address + step - self.steps[0] for step in self.steps)


class LanePatternCosts:
    """Caches the costs of a lane pattern by the offset of its group's first address in the unit
    (`unit` bytes, 128 or 256), counted in elements of `rule.size` bytes."""

    def __init__(self, pattern: LanePattern, rule: RowRule, unit: int) -> None:
        """Starts with no cost computed, for each of the `unit // rule.size` offsets."""
        self._pattern, self._rule, self._unit = pattern, rule, unit
        self._is_computed = np.zeros(unit // rule.size, np.bool_)
        self._costs = np.zeros((len(self._is_computed), len(FIELDS)), np.int64)

    def first_address(self, offset: int) -> int:
        """Returns an address of lane 0 for which the group's first address is at `offset` (in
        elements) of a unit; costs depend on nothing else of it."""
        return _ORIGIN + (offset * self._rule.size + self._pattern.steps[0]) % self._unit

    def costs_at(self, offsets: Words) -> Words:
        """Returns the costs of an access at each of some offsets, in the order of FIELDS; shape
        (offsets, FIELDS). A cost is computed when its offset first occurs, and cached."""
        for offset in offsets[~self._is_computed[offsets]].tolist():
            addresses = self._pattern.addresses(self.first_address(offset))
            self._costs[offset] = self._rule.cost(self._pattern.mask, addresses)
            self._is_computed[offset] = True
        return self._costs[offsets]


@lru_cache(maxsize=1 << 11)
def _costs_of(pattern: LanePattern, rule: RowRule, unit: int) -> LanePatternCosts:
    """Returns the cost cache of a lane pattern; one object for all launches that have the same
    pattern, cost rules and unit."""
    return LanePatternCosts(pattern, rule, unit)


def add_repeats(tally: Tally, layout: CountLayout, words: Words) -> None:
    """Adds to a tally the costs of the accesses that range caches counted, and skips caches that no
    access has filled; `words` are a worker's lane sets and caches (`abi.range_cache`)."""
    for row, cache_at in layout.caches.places.items():
        # LEADER is 0 in a cache that no access has filled.
        if words[cache_at + LEADER]:
            _add_row(tally, layout, row, words)


def _add_row(tally: Tally, layout: CountLayout, row: int, words: Words) -> None:
    """Adds to a tally the costs of the accesses that the range cache of access record number `row`
    and that of its group's leader counted, each entry's count times the cost of its pattern, and
    stores the costliest of them (in transactions) as the record's example if it costs more than the
    present one."""
    caches, cache_at = layout.caches, layout.caches.places[row]
    header, leader = words[cache_at : cache_at + HEADER], int(words[cache_at + LEADER])
    rule = row_rule(layout.program, layout.rows[row], layout.rules)
    entries = _entries(caches, row, words, leader)
    # Shape (entries, elements in a unit): accesses by the offset of the first address.
    times = entries[:, caches.counts :]
    # The guard of a group is that of its leader, which counts for all members; a member counts in
    # its own cache only when it runs without the group.
    if leader != cache_at:
        times = times + _entries(caches, row, words, cache_at)[:, caches.counts :]
    for number in np.flatnonzero(times.any(axis=1)):
        entry = entries[number]
        # A key is the active mask, and above it the number of the warp's layout.
        pattern = LanePattern(
            int(entry[KEY]) & ALL_LANES,
            _steps(header, entry),
            layout.rows[row].space is Space.LOCAL,
        )
        offsets = np.flatnonzero(times[number])
        pattern_costs = _costs_of(pattern, rule, caches.unit)
        costs = pattern_costs.costs_at(offsets)
        tally.accesses[row] += times[number, offsets] @ costs
        costliest = int(costs[:, TRANSACTIONS].argmax())
        if costs[costliest, TRANSACTIONS] > tally.records[row, EXAMPLE_COST]:
            first_address = pattern_costs.first_address(int(offsets[costliest]))
            tally.records[row, EXAMPLE_COST] = costs[costliest, TRANSACTIONS]
            relocation = _relocation(
                entry, first_address - pattern.steps[0], rule.size, caches.unit
            )
            _store_example(tally.records[row], pattern, first_address, relocation)


def _entries(caches: RangeCacheLayout, row: int, words: Words, start: int) -> Words:
    """Returns a view of the entries of the range cache that starts at word `start`, shape (entries,
    words of an entry). `row` only gives the length of an entry: callers pass the start of the row's
    own cache, or of that of its group's leader, whose entries are as long (they access as many
    bytes)."""
    shape = entries_of(caches.sets), caches.entry(row)
    return words[start + HEADER : start + HEADER + math.prod(shape)].reshape(shape)


def _relocation(entry: Words, begin: int, size: int, unit: int) -> int:
    """Returns the distance in bytes from the first address of an access that `entry` counted to
    `begin`, that of a synthetic access with the same cost. Where the entry counts several offsets
    in multiples of `size` bytes, the distance is rounded to a multiple of `unit`: FIRST may be the
    address of another one."""
    distance = begin - int(entry[FIRST])
    # With bits of `size` or more in WITHIN, the entry counts several offsets, and FIRST may be at
    # another one than `begin`: a multiple of the unit keeps the synthetic access's offset.
    return unit * round(distance / unit) if entry[WITHIN] >= size else distance


def _store_example(
    record: Counts, pattern: LanePattern, first_address: int, relocation: int
) -> None:
    """Stores an access as the example of its record: the mask, and each active lane's address (0
    for inactive lanes). Costs were computed at synthetic addresses from `first_address` on;
    `relocation`, the distance from an access of the kernel to the synthetic one, is subtracted from
    each."""
    record[EXAMPLE_MASK] = pattern.mask
    record[EXAMPLE_ADDRESSES : EXAMPLE_ADDRESSES + LANES] = [
        address - relocation if pattern.mask >> lane & 1 else 0
        for lane, address in enumerate(pattern.addresses(first_address))
    ]


def _steps(header: Words, entry: Words) -> tuple[int, ...]:
    """Returns the byte offset of each of the 32 lanes from its group's first address:
    `header[AHEAD]`, the member's offset in its group, plus the pitch of the lane's run plus, for
    each lane before it in the run, the entry's STEP."""
    runs = int(header[RUNS])
    pitches = entry[PITCHES : PITCHES + runs].reshape(runs, 1)
    lanes = pitches + np.arange(LANES // runs) * entry[STEP]
    return tuple((header[AHEAD] + lanes).ravel().tolist())
