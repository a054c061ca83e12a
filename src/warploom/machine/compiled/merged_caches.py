"""Adds up the counts of equal entries in the range caches of several parts of a launch, so that
each lane pattern is priced once for all parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warploom.abi.range_cache import (
    FULL_SET,
    NO_SET,
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
    left, columns = [part.copy() for part in parts], _Columns(layout)
    merged: list[Words] = []
    # Mostly the first part has all entries.
    while left:
        target, *rest = left
        merged.append(target)
        left = columns.move_counts(rest, target) if rest else []
    return merged


class _Columns:
    """Holds which words of the entries with one number are counts, and which make entries equal, by
    access record."""

    def __init__(self, layout: RangeCacheLayout) -> None:
        """Lists the words by their offsets from the first entry with the same number."""
        self._layout = layout
        own = (RangeCacheEntry.key, RangeCacheEntry.within, RangeCacheEntry.step)
        pitches = range(RangeCacheEntry.WORDS, RangeCacheEntry.WORDS + layout.runs)
        starts = np.array(list(layout.entries.values()))
        self._identity = starts[:, None] + np.array([*own, *pitches])
        sizes = [layout.entry(record) - layout.counts for record in layout.entries]
        first_counts = [start + layout.counts for start in layout.entries.values()]
        self._counts = np.concatenate(
            [
                first_count + np.arange(size)
                for first_count, size in zip(first_counts, sizes, strict=True)
            ]
        )
        self._record_of_count = np.repeat(np.arange(len(starts)), sizes)
        headers = np.array(list(layout.headers.values()))
        self._headers = headers[:, None] + np.arange(RangeCacheHeader.WORDS)

    def move_counts(self, sources: Sequence[Words], target: Words) -> list[Words]:
        """Moves the counts of entries of several parts to equal ones of `target`; returns the parts
        that have counts left."""
        target_entries = self._entries(target)
        source_entries = [self._entries(source) for source in sources]
        rows = [self._rows_of_same_lanes(source, target) for source in sources]
        compared = np.stack([entries[at] for entries, at in zip(source_entries, rows, strict=True)])
        # By part, number of the entry in the target, and access record.
        equal = (compared[..., self._identity] == target_entries[:, self._identity]).all(axis=3)
        headers = np.stack([source[self._headers] for source in sources])
        equal &= (headers == target[self._headers]).all(axis=2)[:, None]
        moved = compared[..., self._counts] * equal[..., self._record_of_count]
        target_entries[:, self._counts] += moved.sum(axis=0)
        for entries, at, counts in zip(source_entries, rows, moved, strict=True):
            entries[at[:, None], self._counts] -= counts
        return [
            source
            for source, entries in zip(sources, source_entries, strict=True)
            if entries[:, self._counts].any()
        ]

    def _rows_of_same_lanes(self, source: Words, target: Words) -> Words:
        """Returns for each number of the target's lane sets that of the source's set of the same
        lanes; NO_SET, which counts nothing, if it has none, and for the numbers of replaced
        entries."""
        numbers = self._numbers(source)
        rows = np.full(len(self._entries(target)), NO_SET)
        for key, number in self._numbers(target).items():
            rows[number] = numbers.get(key, NO_SET)
        return rows

    def _numbers(self, words: Words) -> dict[int, int]:
        """Returns the number of each lane set that occurred in a part, by its key."""
        sets = self._layout.sets
        keys, numbers = words[:sets].tolist(), words[sets : 2 * sets].tolist()
        # The first key is a full warp's, whose number is not stored.
        return {key: number or FULL_SET for key, number in zip(keys, numbers, strict=True) if key}

    def _entries(self, words: Words) -> Words:
        """Returns a view of the entries in use of a part's caches, a row for each number."""
        layout = self._layout
        used = words[layout.entries_at : layout.used_words(words)]
        return used.reshape(-1, layout.set_words)
