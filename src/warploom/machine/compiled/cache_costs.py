"""Converts the counters of range caches (`abi.range_cache`) into costs of accesses.

A range cache counts, for each lane pattern that an access instruction used, how often the pattern
occurred at each offset in a unit (128 bytes, or 256 on compute capability 3.x). The cost rules
depend on nothing else, so each (pattern, offset) is priced once and multiplied by its count.
Example: 32 lanes with stride 4, seen 1000 times at offset 0 and once at offset 4, touch 1000 * 4 +
1 * 5 sectors of 32 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import CountLayout
from warploom.abi.range_cache import RangeCacheEntry, RangeCacheHeader
from warploom.cost.address_pattern import AddressPattern, active_lanes
from warploom.cost.fields import CostRecord
from warploom.isa.instruction import Space
from warploom.machine.access_costs import RecordRule, record_rule
from warploom.machine.compiled.merged_caches import merged_caches
from warploom.machine.tally import Counts, Tally
from warploom.program.accesses import FIELDS
from warploom.shapes.vector_shape import LANES
from warploom.simt.lane_counts import ALL_LANES

Words = npt.NDArray[np.int64]

MOST_OFFSETS = 64
"""The sets of offsets whose costs are cached for an access."""

_CONSECUTIVE = tuple(range(0, 4 * LANES, 4))


class PricedOffsets(NamedTuple):
    """The `costs` of an access at each of some offsets, shape (offsets, FIELDS); the most
    `transactions` of them, and the position of the first offset that has the most."""

    costs: Words
    transactions: int
    costliest: int


class CostsByOffset:
    """Computes the costs of an access wherever it is in the unit (`unit` bytes, 128 or 256), and
    caches them. An offset is counted in elements of `rule.size` bytes; there, the lanes of the mask
    `lanes` access the addresses that are `steps` bytes further."""

    def __init__(self, lanes: int, steps: tuple[int, ...], rule: RecordRule, unit: int) -> None:
        """Starts with no cost computed, for each of the `unit // rule.size` offsets (of an access's
        first address in the unit)."""
        self._lanes, self._steps, self._rule, self._unit = lanes, steps, rule, unit
        self._is_computed = np.zeros(unit // rule.size, np.bool_)
        self._costs = np.zeros((len(self._is_computed), len(FIELDS)), np.int64)
        self._priced: dict[bytes, PricedOffsets] = {}

    def at(self, offsets: Words) -> PricedOffsets:
        """Returns the costs at some offsets, of which there is at least one. Launches mostly have
        the same ones again."""
        key = offsets.tobytes()
        priced = self._priced.get(key)
        if priced is None:
            costs = self._costs_at(offsets)
            transactions = costs[:, CostRecord.transactions]
            costliest = int(transactions.argmax())
            priced = PricedOffsets(costs, int(transactions[costliest]), costliest)
            if len(self._priced) >= MOST_OFFSETS:
                self._priced.clear()
            self._priced[key] = priced
        return priced

    def _costs_at(self, offsets: Words) -> Words:
        """Returns the costs at each of some offsets, in the order of FIELDS. A cost is computed
        when its offset first occurs: that of active lanes at `offset * rule.size + steps` bytes in
        the unit."""
        for offset in offsets[~self._is_computed[offsets]].tolist():
            addresses = [offset * self._rule.size + step for step in self._steps]
            pattern, _ = AddressPattern.of(self._lanes, addresses, self._unit)
            self._costs[offset] = self._rule.cost(pattern)
            self._is_computed[offset] = True
        return self._costs[offsets]


@lru_cache(maxsize=1 << 11)
def _priced_pattern(
    lanes: int,
    offset: int,
    step: int,
    pitches: tuple[int, ...],
    is_local: bool,
    rule: RecordRule,
    unit: int,
) -> tuple[tuple[int, ...], CostsByOffset]:
    """Returns the byte offset of each of the 32 lanes from its group's first address, and the costs
    of the access by its offset in the unit; one object for all launches that have the same lanes,
    steps, cost rules and unit. Arguments as in `_steps`."""
    steps = _steps(offset, step, pitches)
    # Local memory is interleaved by lane: the lanes access consecutive words, of one unit.
    active = tuple(compress(_CONSECUTIVE if is_local else steps, active_lanes(lanes)))
    return steps, CostsByOffset(lanes, active, rule, unit)


def add_range_cache_costs(tally: Tally, layout: CountLayout, parts: Sequence[Words]) -> None:
    """Adds to a tally the costs of the accesses that range caches counted (tables of compiled code
    with counts by active lanes and address), and skips caches that no access has filled; `parts`
    are the tables of lane masks and range caches (`abi.range_cache`) of each part of a launch, in
    the order of blocks. Counts of equal entries are added up first."""
    caches = layout.caches
    for words in merged_caches(caches, parts):
        of_groups: dict[int, list[_CountedEntry]] = {}
        for record, cache_at in caches.headers.items():
            header = RangeCacheHeader(words, cache_at)
            # `leader` is 0 in a cache that no access has filled.
            if not header.leader:
                continue
            leader, runs = caches.record_of_header[header.leader], header.runs
            entries = caches.entries_of(leader, words)
            if leader not in of_groups:
                times = entries[:, caches.counts :]
                of_groups[leader] = list(_counted_entries(entries, times, runs))
            counted = of_groups[leader]
            # The guard of a group is that of its leader, which counts for all members; a member
            # counts in its own cache only when it runs without the group.
            own = caches.entries_of(record, words)[:, caches.counts :]
            if leader != record and own.any():
                times = entries[:, caches.counts :] + own
                counted = list(_counted_entries(entries, times, runs))
            _add_record(tally, layout, record, header.offset, counted)


class _CountedEntry(NamedTuple):
    """An entry of a group's cache with its active lanes, pitches and stride (`RangeCacheEntry`),
    and the `times` that its accesses occurred at each of some `offsets` in the unit."""

    entry: RangeCacheEntry
    lanes: int
    step: int
    pitches: tuple[int, ...]
    offsets: Words
    times: Words


def _counted_entries(entries: Words, times: Words, runs: int) -> Iterator[_CountedEntry]:
    """Yields the entries of a cache whose accesses occurred; `times` has shape (entries, elements
    in a unit): accesses by the offset of the first address."""
    for number in np.flatnonzero(times.any(axis=1)):
        entry, offsets = RangeCacheEntry(entries[number], 0), np.flatnonzero(times[number])
        pitches = tuple(entry.pitches[:runs].tolist())
        # A key is the active mask, and above it the number of the warp's layout.
        lanes = entry.key & ALL_LANES
        yield _CountedEntry(entry, lanes, entry.step, pitches, offsets, times[number, offsets])


def _add_record(
    tally: Tally, layout: CountLayout, record: int, offset: int, counted: Sequence[_CountedEntry]
) -> None:
    """Adds to a tally the costs of the accesses of record number `record`, `offset` bytes after
    those of its group's first access, that range caches counted. They are each entry's counts by
    offset in the unit, times the cost of its pattern at that offset; in local memory the cost of 32
    consecutive words. The costliest of these accesses (in transactions) becomes the record's
    example if it costs more than the present one."""
    unit = layout.caches.unit
    rule = record_rule(layout.program, layout.records[record], layout.rules)
    is_local = layout.records[record].space is Space.LOCAL
    for entry, lanes, step, pitches, offsets, times in counted:
        steps, priced = _priced_pattern(lanes, offset, step, pitches, is_local, rule, unit)
        costs, transactions, costliest = priced.at(np.zeros_like(offsets) if is_local else offsets)
        tally.accesses[record] += times @ costs
        if transactions > tally.records[record, CostRecord.example_cost]:
            tally.records[record, CostRecord.example_cost] = transactions
            begin = _first_address(entry, int(offsets[costliest]), rule.size, unit)
            if is_local:
                begin = (begin + steps[0]) // unit * unit
                steps = _CONSECUTIVE
            _store_example(tally.records[record], lanes, [begin + distance for distance in steps])


def _first_address(entry: RangeCacheEntry, offset: int, size: int, unit: int) -> int:
    """Returns the first address of an access that `entry` counted at `offset` (in elements of
    `size` bytes) of the unit: its first recorded one, or if it counts at several offsets, the
    address at this offset that is nearest to the recorded one."""
    recorded = entry.first_address
    if entry.within < size:
        return recorded
    # The entry counts several offsets, and the recorded address may be at another one of them.
    distance = offset * size - recorded
    return recorded + distance - unit * round(distance / unit)


def _store_example(record: Counts, lanes: int, addresses: list[int]) -> None:
    """Stores an access as the example of its record: the mask, and of the 32 `addresses` those of
    active lanes (0 for inactive ones)."""
    costs = CostRecord(record, 0)
    costs.example_mask = lanes
    costs.example_addresses[:] = np.where(active_lanes(lanes), addresses, 0)


def _steps(offset: int, step: int, pitches: Sequence[int]) -> tuple[int, ...]:
    """Returns the byte offset of each of the 32 lanes from its group's first address: `offset`, the
    member's offset in its group, plus the pitch of the lane's run plus, for each lane before it in
    the run, `step`."""
    in_run = range(LANES // len(pitches))
    return tuple(offset + pitch + lane * step for pitch in pitches for lane in in_run)
