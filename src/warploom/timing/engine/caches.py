"""Caches whose lines are there in parts, and on their way: sets of lines of 128 bytes. The one
least recently used goes, unless a function of the user's chooses (`timing.policies`)."""

from __future__ import annotations

from typing import NamedTuple

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import Words, call_user_function, offset_array

L1_WAYS, L2_WAYS = 4, 16
"""Estimates, as in `machine.compiled.caches`; 16 at most, for the order of a set is a word."""

FIRST_ORDER = 0x0123456789ABCDEF


class Cache(NamedTuple):
    """A cache in an array, from the word `at` on: for each set the order of its ways, then the tags
    of all entries, then when the sectors of each are there. So what is looked through together
    stands together. `replacement` is the address of the user's replacement policy, 0 without one; from
    the word `replacement_words` on each set has SET_STRIDE words for it."""

    words: Words
    at: int
    sets: int
    ways: int
    replacement: int
    replacement_words: int


@jitable
def hash_line(line: int, count: int) -> int:
    """Return which of so many sets or slices a line belongs to: neighbours to different ones, and
    strides to all of them (an estimate: NVIDIA publishes no hash)."""
    group = line // count
    mixed = ((group ^ group >> 11) & 0xFFFFFFF) * 0x9E3779B1
    return int((line + (mixed >> 20 & 0xFFFFFF)) % count)


@jitable
def map_line(address: int, line: int, count: int, words: Words) -> int:
    """Return which of so many places the user's function at an address gives a line."""
    return int(call_user_function(address, line, count, 0, 0, 0, words) % count)


@jitable
def bank_of(line: int, bits: int) -> int:
    """Return which of 2 ** `bits` banks of DRAM holds a line: any, so that at a moment some have
    more to do than others, but of each group of 16 lines a bank every bank has as many (an
    estimate)."""
    hash_bits = bits + 4
    mask = (1 << hash_bits) - 1
    group = line >> hash_bits
    mixed = (line ^ group * 0x9E3779B1 ^ group >> 7) & mask
    for _ in range(2):
        mixed = mixed * 0x2C1B3C6D & mask
        mixed ^= mixed >> (hash_bits >> 1)
    return int(mixed >> 4)


@jitable
def tag_at(cache: Cache, entry: int) -> int:
    """Returns where the tag of an entry stands: its line's number and one more, above masks of
    sectors."""
    return int(cache.at + cache.sets + entry)


@jitable
def sector_times_at(cache: Cache, entry: int) -> int:
    """Returns where the times of an entry's sectors stand."""
    return int(cache.at + (1 + cache.ways) * cache.sets + w.SECTORS * entry)


@jitable
def find_line(cache: Cache, set_index: int, line: int) -> int:
    """Return the entry of a line in its set; -1 where it has none."""
    first, hit_way = set_index * cache.ways, -1
    tags = tag_at(cache, first)
    for way in range(cache.ways):
        hit_way = way if cache.words[tags + way] >> w.TAG_BITS == line + 1 else hit_way
    return int(first + hit_way if hit_way >= 0 else -1)


@jitable
def initial_order(cache: Cache) -> int:
    """Return the order in which the ways of a set fill; a set's word is what differs from it."""
    return int(FIRST_ORDER >> 4 * (16 - cache.ways))


@jitable
def recency_order(cache: Cache, set_index: int) -> int:
    """Return the ways of a set, four bits for each, the one last used lowest."""
    return int(cache.words[cache.at + set_index] ^ initial_order(cache))


@jitable
def oldest(cache: Cache, set_index: int) -> int:
    """Return the way of a set that is least recently used."""
    return int(recency_order(cache, set_index) >> 4 * (cache.ways - 1) & 15)


@jitable
def use_line(cache: Cache, set_index: int, line: int, now: int) -> int:
    """Return the entry of a line, which is used in cycle `now`; a new line has no sectors yet, and
    the place of one that gives way."""
    entry = choose_entry(cache, set_index, line, now)
    if not holds_line(cache, entry, line):
        replace_line(cache, entry, line)
    return entry


@jitable
def holds_line(cache: Cache, entry: int, line: int) -> bool:
    """Returns whether an entry is a line's."""
    return cache.words[tag_at(cache, entry)] >> w.TAG_BITS == line + 1


@jitable
def replace_line(cache: Cache, entry: int, line: int) -> None:
    """Gives an entry to a line, without any sectors yet."""
    cache.words[tag_at(cache, entry)] = (line + 1) << w.TAG_BITS


@jitable
def choose_entry(cache: Cache, set_index: int, line: int, now: int) -> int:
    """Returns the entry of a line, which is used in cycle `now`; where it has none, the entry of
    the line that gives way for it, as that left it."""
    entry = find_line(cache, set_index, line)
    if cache.replacement == 0:
        return mark_recent(cache, set_index, entry)
    first = set_index * cache.ways
    words = offset_array(cache.words, cache.replacement_words + set_index * w.SET_STRIDE)
    way = entry - first if entry >= 0 else -1
    victim = call_user_function(cache.replacement, set_index, way, line, cache.ways, now, words)
    return int(entry if entry >= 0 else first + victim % cache.ways)


@jitable
def mark_recent(cache: Cache, set_index: int, entry: int) -> int:
    """Return an entry, which is now the one last used; for none (-1), that of the line least
    recently used."""
    first = set_index * cache.ways
    order = recency_order(cache, set_index)
    shift = 4 * (cache.ways - 1)
    if entry < 0:
        entry = first + oldest(cache, set_index)
    else:
        shift = 0
        while order >> shift & 15 != entry - first:
            shift += 4
    newer = order & ((1 << shift) - 1)
    older = order >> shift >> 4 << shift << 4
    cache.words[cache.at + set_index] = (older | newer << 4 | (entry - first)) ^ initial_order(
        cache
    )
    return int(entry)
