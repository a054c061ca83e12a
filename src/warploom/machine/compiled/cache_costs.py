"""Converts the counters of range caches (`abi.range_cache`) into costs of accesses.

A range cache counts, for each lane pattern that an access instruction used, how often the pattern
occurred at each offset in a unit (128 bytes, or 256 on compute capability 3.x). The cost rules
depend on nothing else, so each (pattern, offset) is priced once and multiplied by its count.
Example: 32 lanes with stride 4, seen 1000 times at offset 0 and once at offset 4, touch 1000 * 4 +
1 * 5 sectors of 32 bytes.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import compress

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import CountLayout
from warploom.abi.range_cache import RangeCacheEntry, RangeCacheHeader
from warploom.cost.address_pattern import AddressPattern, active_lanes
from warploom.cost.fields import CostRecord
from warploom.isa.instruction import Space
from warploom.machine.access_costs import RecordRule, record_rule
from warploom.machine.tally import Counts, Tally
from warploom.program.accesses import FIELDS
from warploom.shapes.vector_shape import LANES
from warploom.simt.lane_counts import ALL_LANES

Words = npt.NDArray[np.int64]

_CONSECUTIVE = tuple(range(0, 4 * LANES, 4))


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

    def at(self, offsets: Words) -> Words:
        """Returns the costs at each of some offsets, in the order of FIELDS; shape (offsets,
        FIELDS). A cost is computed when its offset first occurs: that of active lanes at `offset *
        rule.size + steps` bytes in the unit."""
        for offset in offsets[~self._is_computed[offsets]].tolist():
            addresses = [offset * self._rule.size + step for step in self._steps]
            pattern, _ = AddressPattern.of(self._lanes, addresses, self._unit)
            self._costs[offset] = self._rule.cost(pattern)
            self._is_computed[offset] = True
        return self._costs[offsets]


costs_by_offset = lru_cache(maxsize=1 << 11)(CostsByOffset)
"""Returns the costs of an access by its offset in the unit; one object for all launches that have
the same steps, cost rules and unit."""


def add_range_cache_costs(tally: Tally, layout: CountLayout, words: Words) -> None:
    """Adds to a tally the costs of the accesses that range caches counted (tables of compiled code
    with counts by active lanes and address), and skips caches that no access has filled; `words`
    are a worker's table of lane masks and its range caches (`abi.range_cache`)."""
    for record, cache_at in layout.caches.headers.items():
        # `leader` is 0 in a cache that no access has filled.
        if RangeCacheHeader(words, cache_at).leader:
            _add_record(tally, layout, record, words)


def _add_record(tally: Tally, layout: CountLayout, record: int, words: Words) -> None:
    """Adds to a tally the costs of the accesses that two range caches counted, that of access
    record number `record` and that of its group's leader (the access whose guard counts for the
    whole group): each entry's counts by offset times the cost of its pattern there, in local memory
    that of 32 consecutive words. The costliest of them (in transactions) becomes the record's
    example if it costs more than the present one."""
    caches, cache_at = layout.caches, layout.caches.headers[record]
    header = RangeCacheHeader(words, cache_at)
    rule = record_rule(layout.program, layout.records[record], layout.rules)
    leader = caches.record_of_header[header.leader]
    entries = caches.entries_of(leader, words)
    # Shape (entries, elements in a unit): accesses by the offset of the first address.
    times = entries[:, caches.counts :]
    # The guard of a group is that of its leader, which counts for all members; a member counts in
    # its own cache only when it runs without the group.
    if leader != record:
        times = times + caches.entries_of(record, words)[:, caches.counts :]
    for number in np.flatnonzero(times.any(axis=1)):
        entry, offsets = RangeCacheEntry(entries[number], 0), np.flatnonzero(times[number])
        # A key is the active mask, and above it the number of the warp's layout.
        lanes, steps = entry.key & ALL_LANES, _steps(header, entry)
        first = steps[0]
        if layout.records[record].space is Space.LOCAL:
            # Local memory is interleaved by lane: the lanes access consecutive words, of one unit.
            steps, costed = _CONSECUTIVE, np.zeros_like(offsets)
        else:
            costed = offsets
        active = tuple(compress(steps, active_lanes(lanes)))
        costs = costs_by_offset(lanes, active, rule, caches.unit).at(costed)
        tally.accesses[record] += times[number, offsets] @ costs
        costliest = int(costs[:, CostRecord.transactions].argmax())
        if (
            costs[costliest, CostRecord.transactions]
            > tally.records[record, CostRecord.example_cost]
        ):
            tally.records[record, CostRecord.example_cost] = costs[
                costliest, CostRecord.transactions
            ]
            begin = _first_address(entry, int(offsets[costliest]), rule.size, caches.unit)
            if steps is _CONSECUTIVE:
                begin = (begin + first) // caches.unit * caches.unit
            _store_example(tally.records[record], lanes, [begin + step for step in steps])


def _first_address(entry: RangeCacheEntry, offset: int, size: int, unit: int) -> int:
    """Returns the first address of an access that `entry` counted at `offset` (in elements of
    `size` bytes) of the unit: the entry's FIRST, or if it counts at several offsets, the address at
    this offset that is nearest to `first`."""
    first = entry.first
    if entry.within < size:
        return first
    # The entry counts several offsets, and `first` may be at another one: the nearest at this one.
    distance = offset * size - first
    return first + distance - unit * round(distance / unit)


def _store_example(record: Counts, lanes: int, addresses: list[int]) -> None:
    """Stores an access as the example of its record: the mask, and of the 32 `addresses` those of
    active lanes (0 for inactive ones)."""
    costs = CostRecord(record, 0)
    costs.example_mask = lanes
    costs.example_addresses[:] = np.where(active_lanes(lanes), addresses, 0)


def _steps(header: RangeCacheHeader, entry: RangeCacheEntry) -> tuple[int, ...]:
    """Returns the byte offset of each of the 32 lanes from its group's first address:
    `offset`, the member's offset in its group, plus the pitch of the lane's run plus, for
    each lane before it in the run, the entry's `step`."""
    runs = header.runs
    pitches = entry.pitches[:runs].reshape(runs, 1)
    lanes = pitches + np.arange(LANES // runs) * entry.step
    return tuple((header.offset + lanes).ravel().tolist())
