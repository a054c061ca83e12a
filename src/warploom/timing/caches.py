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
def bank_of(line: int, bits: int) -> int:
    """Which of 2 ** `bits` banks of DRAM holds a line: any, so that at a moment some have more to
    do than others, but of each group of 16 lines a bank every bank has as many (an estimate)."""
    some = bits + 4
    mask = (1 << some) - 1
    group = line >> some
    mixed = (line ^ group * 0x9E3779B1 ^ group >> 7) & mask
    for _ in range(2):
        mixed = mixed * 0x2C1B3C6D & mask
        mixed ^= mixed >> (some >> 1)
    return int(mixed >> 4)


@jitable
def set_of(cache: int, sets: int, ways: int, line: int) -> int:
    """Where the set of a line begins: the tags of its ways, when each was used, then the lines."""
    return int(cache + place_of(line, sets) * ways * (2 + w.LINE_WORDS))


@jitable
def find_line(m: Words, cache: int, sets: int, ways: int, line: int) -> int:
    """Where a line stands in a cache; -1 where it does not."""
    tags = set_of(cache, sets, ways, line)
    for way in range(ways):
        if m[tags + way] == line + 1:
            return int(tags + 2 * ways + way * w.LINE_WORDS)
    return -1


@jitable
def use_line(m: Words, cache: int, sets: int, ways: int, line: int, clock: int) -> int:
    """The entry of a line, which is now the one last used; a new line has no sectors yet."""
    tags = set_of(cache, sets, ways, line)
    used = tags + ways
    for way in range(ways):
        if m[tags + way] == line + 1:
            m[used + way] = clock
            return int(used + ways + way * w.LINE_WORDS)
    oldest = 0
    for way in range(1, ways):
        if m[used + way] < m[used + oldest]:
            oldest = way
    entry = used + ways + oldest * w.LINE_WORDS
    m[tags + oldest] = m[entry + w.LINE_TAG] = line + 1
    m[used + oldest] = clock
    m[entry + w.LINE_VALID] = 0
    m[entry + w.LINE_DIRTY] = 0
    return int(entry)
