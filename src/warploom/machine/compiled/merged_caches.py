"""Adds up the counts of equal entries in the range caches of several parts of a launch, so that
each lane pattern is priced once for all parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

BATCH_WORDS = 1 << 18
"""The words of parts that are added at once: for small parts, calls of NumPy cost the most, and for
large ones the accesses to memory, which are to stay in the host's caches."""


def merged_caches(columns: CacheColumns, parts: Sequence[Words]) -> list[Words]:
    """Returns the tables of keys and range caches (`abi.range_cache`) of the parts that have counts
    of their own, as copies where there are several parts. Counts of an entry are moved to the equal
    entry of an earlier part: one of the same access, for the same lanes, stride and pitches. As
    parts are in the order of blocks, that entry's first address is the first of both."""
    if len(parts) == 1:
        return [*parts]
    if len({columns.identity_of(words) for words in parts}) == 1:
        return [columns.sum_of_alike(parts)]
    merged = list[Words]()
    # Mostly the first part has all entries.
    left = list(parts)
    while left:
        first, *sources = left
        target, rests = _Target(columns, first.copy()), dict[int, Words]()
        for batch in columns.batches(sources):
            added = target.add_counts([sources[number] for number in batch])
            rests |= {batch[at]: rest for at, rest in added.items()}
        merged.append(target.words)
        left = [rests[number] for number in sorted(rests)]
    return merged


class CacheColumns:
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

    def identity_of(self, words: Words) -> bytes:
        """Returns what parts have in common whose entries are equal, one by one: lane sets, their
        numbers, headers, and what makes entries equal."""
        entries = self.layout.entries_by_number(words)
        return words[: self.layout.entries_at].tobytes() + entries[:, self.identity].tobytes()

    def sum_of_alike(self, parts: Sequence[Words]) -> Words:
        """Returns a copy of the first of some parts with equal identities, with the counts of
        all."""
        words = parts[0].copy()
        entries = self.layout.entries_by_number(words)
        for part in parts[1:]:
            entries += self.layout.entries_by_number(part) * self.is_count
        return words

    def batches(self, parts: Sequence[Words]) -> Iterator[Sequence[int]]:
        """Yields the numbers of parts in batches that have equal lane sets, numbers of these, and
        headers: of BATCH_WORDS at most, or of one part."""
        alike: dict[bytes, list[int]] = {}
        for number, words in enumerate(parts):
            alike.setdefault(words[: self.layout.entries_at].tobytes(), []).append(number)
        for numbers in alike.values():
            step = max(1, BATCH_WORDS // len(parts[numbers[0]]))
            for start in range(0, len(numbers), step):
                yield numbers[start : start + step]


class _Target:
    """Adds counts of other parts to those of one part, `words`."""

    def __init__(self, columns: CacheColumns, words: Words) -> None:
        """Looks up what makes the part's entries equal to those of others."""
        self.words, self._columns = words, columns
        self._entries, self._numbers = (
            columns.layout.entries_by_number(words),
            columns.numbers(words),
        )
        self._identity = self._entries[:, columns.identity]
        self._headers = words[columns.headers]

    def add_counts(self, sources: Sequence[Words]) -> dict[int, Words]:
        """Adds the counts of the entries of some parts, which have equal lane sets and headers, to
        the equal entries. Returns, of the parts that have others, copies without these counts, by
        their positions."""
        columns, rows = self._columns, self._rows_of_same_lanes(sources[0])
        entries = [columns.layout.entries_by_number(source) for source in sources]
        moved = np.stack([of_part[rows] for of_part in entries])
        # By part, number of the entry in the target, and access record.
        equal = (moved[..., columns.identity] == self._identity).all(axis=3)
        equal &= (sources[0][columns.headers] == self._headers).all(axis=1)
        moved *= columns.is_count
        has_more = np.zeros(len(sources), np.bool_)
        if not equal.all():
            is_equal = equal[..., columns.record_of_word]
            has_more = (moved * ~is_equal).any(axis=(1, 2))
            moved *= is_equal
        self._entries += moved.sum(axis=0)
        other_rows = sorted(set(range(FULL_SET, len(entries[0]))).difference(rows.tolist()))
        if other_rows:
            others = np.stack([of_part[other_rows] for of_part in entries])
            has_more |= (others * columns.is_count).any(axis=(1, 2))
        rests = {number: sources[number].copy() for number in np.flatnonzero(has_more).tolist()}
        for number, rest in rests.items():
            columns.layout.entries_by_number(rest)[rows] -= moved[number]
        return rests

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
