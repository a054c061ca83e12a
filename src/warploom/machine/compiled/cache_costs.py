"""Converts the counters of range caches (`abi.range_cache`) into costs of accesses.

A range cache counts, for each lane pattern that an access instruction used, how often the pattern
occurred at each offset in a unit (128 bytes, or 256 on compute capability 3.x). The cost rules
depend on nothing else, so each (pattern, offset) is priced once and multiplied by its count.
Example: 32 lanes with stride 4, seen 1000 times at offset 0 and once at offset 4, touch 1000 * 4 +
1 * 5 sectors of 32 bytes.

Launches of a kernel mostly have the same patterns at the same offsets, in other numbers and at
other addresses. So what a table of counts costs is looked up as a whole (`Prices`), and a launch
multiplies and adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import CountLayout
from warploom.abi.range_cache import RangeCacheEntry, RangeCacheHeader
from warploom.isa.instruction import Space
from warploom.machine.access_costs import record_rule
from warploom.machine.compiled.cache_prices import PricedPattern, Prices
from warploom.machine.compiled.merged_caches import CacheColumns, merged_caches
from warploom.machine.compiled.pattern_costs import PatternCosts, pattern_costs
from warploom.machine.tally import Tally
from warploom.simt.lane_counts import ALL_LANES

Words = npt.NDArray[np.int64]

MOST_PRICES = 16
"""The tables of prices that are cached for a kernel."""


class CacheCosts:
    """Computes the costs of the accesses that the range caches of one kernel counted."""

    def __init__(self, layout: CountLayout) -> None:
        """Lists the counts of an entry number: one for each access record that has a cache and each
        offset of an access in the unit."""
        caches = self._caches = layout.caches
        self._columns = CacheColumns(caches)
        self._rules = {
            record: record_rule(layout.program, layout.records[record], layout.rules)
            for record in caches.headers
        }
        self._local = {r for r in caches.headers if layout.records[r].space is Space.LOCAL}
        ranges = {
            record: range(start + caches.counts, start + caches.entry(record))
            for record, start in caches.entries.items()
        }
        self._counts = np.array([at for of_record in ranges.values() for at in of_record])
        self._record = np.array([record for record, at in ranges.items() for _ in at])
        self._offset = np.array([offset for at in ranges.values() for offset in range(len(at))])
        self._first = dict(zip(ranges, np.cumsum([0, *map(len, ranges.values())]), strict=False))
        self._prices: dict[bytes, Prices] = {}

    def add(self, tally: Tally, parts: Sequence[Words]) -> None:
        """Adds to a tally the costs of the accesses that range caches counted; `parts` are the
        tables of lane masks and range caches of each part of a launch, in the order of blocks.
        Counts of equal entries are added up first."""
        if not self._caches.headers:
            return
        for words in merged_caches(self._columns, parts):
            entries, times = self._caches.entries_by_number(words), self._times(words)
            positions = np.flatnonzero(times)
            if len(positions):
                prices = self._prices_of(words, entries, positions)
                prices.add(tally, entries.reshape(-1), times.ravel())

    def _times(self, words: Words) -> Words:
        """Returns how often accesses occurred, shape (numbers in use, counts). The guard of a group
        is that of its leader, which counts for all members; a member counts in its own cache only
        when it runs without the group."""
        times = self._caches.entries_by_number(words)[:, self._counts]
        for record, leader in self._leaders(words):
            if record != leader:
                times[:, self._slots(record)] += times[:, self._slots(leader)]
        return times

    def _slots(self, record: int) -> slice:
        """Returns which of the counts of an entry number are those of an access record."""
        first = int(self._first[record])
        return slice(first, first + self._caches.unit // self._rules[record].size)

    def _leaders(self, words: Words) -> Iterator[tuple[int, int]]:
        """Yields the access records whose caches accesses have filled, each with the record of the
        first access of its group."""
        caches = self._caches
        leaders = words[self._columns.headers[:, RangeCacheHeader.leader]].tolist()
        for record, leader in zip(caches.headers, leaders, strict=True):
            if leader:
                yield record, caches.record_of_header[leader]

    def _prices_of(self, words: Words, entries: Words, positions: Words) -> Prices:
        """Returns the prices of the counts at some `positions` in the flattened table of counts,
        those of the last launches with the same entries and headers if they had counts there."""
        identity = entries[:, self._columns.identity]
        parts = (positions, words[self._columns.headers], identity)
        key = blake2b(b"".join([part.tobytes() for part in parts])).digest()
        prices = self._prices.get(key)
        if prices is None:
            if len(self._prices) >= MOST_PRICES:
                self._prices.clear()
            prices = self._priced(words, entries, positions)
            self._prices[key] = prices
        return prices

    def _priced(self, words: Words, entries: Words, positions: Words) -> Prices:
        """Returns what the accesses cost whose counts are at some `positions` in the flattened
        table of counts."""
        numbers, slots = np.divmod(positions, len(self._counts))
        leaders, records = dict(self._leaders(words)), self._record[slots]
        priced = list[PricedPattern]()
        for record in np.unique(records).tolist():
            start = self._caches.entries[leaders[record]]
            for number in np.unique(numbers[records == record]).tolist():
                at = (records == record) & (numbers == number)
                entry = RangeCacheEntry(entries[number], start)
                patterns = self._pattern(words, entry, record)
                first_address_at = number * self._caches.set_words + start
                first_address_at += RangeCacheEntry.first_address
                priced.append(
                    PricedPattern(
                        record,
                        positions[at],
                        self._offset[slots[at]],
                        patterns,
                        first_address_at,
                        entry.within >= patterns.size,
                    )
                )
        return Prices.of(priced, self._caches.unit)

    def _pattern(self, words: Words, entry: RangeCacheEntry, record: int) -> PatternCosts:
        """Returns the costs of accesses of a record with the lanes, stride and pitches of `entry`,
        which is its group's."""
        header = RangeCacheHeader(words, self._caches.headers[record])
        return pattern_costs(
            entry.key & ALL_LANES,  # above the active mask is the number of the warp's layout
            header.offset,
            entry.step,
            tuple(entry.pitches[: header.runs].tolist()),
            record in self._local,
            self._rules[record],
            self._caches.unit,
        )
