"""Adds up the counts of equal entries in the range caches of several parts of a launch, so that
each lane pattern is priced once for all parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warploom.abi.range_cache import (
    FULL_SET,
    NO_SET,
    RETIRED_SETS,
    RangeCacheEntry,
    RangeCacheHeader,
    RangeCacheLayout,
)

Words = npt.NDArray[np.int64]


def merged_caches(layout: RangeCacheLayout, parts: Sequence[Words]) -> list[Words]:
    """Returns the tables of keys and range caches (`abi.range_cache`) of the parts that have counts
    of their own, as copies where there are several parts. Counts of an entry are moved to the equal
    entry of an earlier part: one of the same access, for the same lanes, stride and pitches. As
    parts are in the order of blocks, that entry's first address is the first of both."""
    if len(parts) == 1 or not layout.headers:
        return [*parts]
    columns, merged = _Columns(layout), list[Words]()
    # Mostly the first part has all entries.
    left = list(parts)
    while left:
        first, *sources = left
        target = _Target(columns, first.copy())
        merged.append(target.words)
        rests = map(target.add_counts, sources)
        left = [rest for rest in rests if rest is not None]
    return merged


class _Columns:
    """Holds which words of the entries with one number are counts, and which make entries equal, by
    access record."""

    def __init__(self, layout: RangeCacheLayout) -> None:
        """Lists the words by their offsets from the first entry with the same number."""
        self.layout = layout
        own = (RangeCacheEntry.key, RangeCacheEntry.within, RangeCacheEntry.step)
        pitches = range(RangeCacheEntry.WORDS, RangeCacheEntry.WORDS + layout.runs)
        starts = np.array(list(layout.entries.values()))
        self.identity = starts[:, None] + np.array([*own, *pitches])
        self.is_count = np.zeros(layout.set_words, np.bool_)
        self.record_of_word = np.zeros(layout.set_words, np.intp)
        for number, (record, start) in enumerate(layout.entries.items()):
            end = start + layout.entry(record)
            self.is_count[start + layout.counts : end] = True
            self.record_of_word[start:end] = number
        headers = np.array(list(layout.headers.values()))
        self.headers = headers[:, None] + np.arange(RangeCacheHeader.WORDS)

    def numbers(self, words: Words) -> dict[int, int]:
        """Returns the number of each lane set that occurred in a part, by its key."""
        sets = self.layout.sets
        keys, numbers = words[:sets].tolist(), words[sets : 2 * sets].tolist()
        # The first key is a full warp's, whose number is not stored.
        return {key: number or FULL_SET for key, number in zip(keys, numbers, strict=True) if key}

    def entries(self, words: Words) -> Words:
        """Returns a view of the entries in use of a part's caches, a row for each number."""
        layout = self.layout
        used = words[layout.entries_at : layout.used_words(words)]
        return used.reshape(-1, layout.set_words)


class _Target:
    """Adds counts of other parts to those of one part, `words`."""

    def __init__(self, columns: _Columns, words: Words) -> None:
        """Looks up what makes the part's entries equal to those of others."""
        self.words, self._columns = words, columns
        self._entries, self._numbers = columns.entries(words), columns.numbers(words)
        self._identity = self._entries[:, columns.identity]
        self._headers = words[columns.headers]

    def add_counts(self, source: Words) -> Words | None:
        """Adds the counts of a part's entries to the equal ones; returns a copy of the part without
        them, None if no counts are left."""
        columns = self._columns
        entries, rows = columns.entries(source), self._rows_of_same_lanes(source)
        # By number of the entry in the target, and access record.
        equal = (entries[rows[:, None, None], columns.identity] == self._identity).all(axis=2)
        equal &= (source[columns.headers] == self._headers).all(axis=1)
        moved = entries[rows]
        moved *= equal[:, columns.record_of_word] & columns.is_count
        self._entries += moved
        # No count is negative.
        if int(entries.sum(axis=0) @ columns.is_count) == int(moved.sum()):
            return None
        rest = source.copy()
        columns.entries(rest)[rows] -= moved
        return rest

    def _rows_of_same_lanes(self, source: Words) -> Words:
        """Returns for each number of the target's lane sets that of the source's set of the same
        lanes; NO_SET, which counts nothing, if it has none. Entries that were replaced are compared
        with those of the same number: launches with the same arguments replace the same ones."""
        numbers = self._columns.numbers(source)
        rows = np.full(len(self._entries), NO_SET)
        rows[RETIRED_SETS] = RETIRED_SETS
        for key, number in self._numbers.items():
            rows[number] = numbers.get(key, NO_SET)
        return rows
