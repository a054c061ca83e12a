"""Caches whose lines are there in parts, and on their way: sets of lines of 128 bytes, the one
least recently used goes."""

from __future__ import annotations

from warploom.rules.distinct import jitable
from warploom.timing import words as w
from warploom.timing.machine import Words


@jitable
def place_of(line: int, places: int) -> int:
    """Which of so many sets or slices a line belongs to: neighbours to different ones, and strides
    to all of them (an estimate: NVIDIA publishes no hash)."""
    group = line // places
    mixed = ((group ^ group >> 11) & 0xFFFFFFF) * 0x9E3779B1
    return int((line + (mixed >> 20 & 0xFFFFFF)) % places)


@jitable
def find_line(m: Words, cache: int, sets: int, ways: int, line: int) -> int:
    """Where a line stands in a cache; -1 where it does not."""
    start = cache + place_of(line, sets) * ways * w.LINE_WORDS
    for way in range(ways):
        entry = start + way * w.LINE_WORDS
        if m[entry + w.LINE_TAG] == line + 1:
            return int(entry)
    return -1


@jitable
def use_line(m: Words, cache: int, sets: int, ways: int, line: int, clock: int) -> int:
    """The entry of a line, which is now the one last used; a new line has no sectors yet."""
    start = cache + place_of(line, sets) * ways * w.LINE_WORDS
    oldest = start
    for way in range(ways):
        entry = start + way * w.LINE_WORDS
        if m[entry + w.LINE_TAG] == line + 1:
            m[entry + w.LINE_USED] = clock
            return int(entry)
        if m[entry + w.LINE_USED] < m[oldest + w.LINE_USED]:
            oldest = entry
    m[oldest + w.LINE_TAG] = line + 1
    m[oldest + w.LINE_VALID] = 0
    m[oldest + w.LINE_DIRTY] = 0
    m[oldest + w.LINE_USED] = clock
    return int(oldest)
