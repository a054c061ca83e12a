"""Models set-associative caches with lines of 128 bytes, whose sectors are valid, missing or on
their way. The least recently used line is evicted, unless a user's function chooses
(`timing.policies`)."""

from __future__ import annotations

from typing import NamedTuple

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import Words, call_user_function, offset_array

L1_WAYS, L2_WAYS = 4, 16
"""Estimates, as in `machine.caches`; 16 at most, because the recency order of a set is
packed in one word."""

WAY_BITS = 4
WAY_MASK = (1 << WAY_BITS) - 1
"""A way's index in a recency order, and the mask of its number."""

FIRST_ORDER = 0x0123456789ABCDEF
"""The order in which the 16 ways of an empty set fill, WAY_BITS for each."""


class Cache(NamedTuple):
    """Describes a cache in the array `words`, from the offset `at` on: for each set the recency
    order of its ways, then the tags of all entries, then the times at which the sectors of each
    arrive. So the words that a lookup scans are contiguous. `replacement` is the address of the
    user's replacement policy, or 0; from the offset `replacement_words` on each set has SET_STRIDE
    words for it."""

    words: Words
    at: int
    sets: int
    ways: int
    replacement: int
    replacement_words: int


@jitable
def hash_line(line: int, count: int) -> int:
    """Returns which of `count` sets of a cache, or slices of L2, a line (by its number) belongs to:
    neighbors to different ones, and strides to all of them (an estimate: NVIDIA publishes no
    hash)."""
    group = line // count
    # Multiplicative hash (2^32 / golden ratio) of the bits above the number of the set.
    mixed = ((group ^ group >> 11) & 0xFFFFFFF) * 0x9E3779B1
    return int((line + (mixed >> 20 & 0xFFFFFF)) % count)


@jitable
def map_line(address: int, line: int, count: int, words: Words) -> int:
    """Returns which of `count` sets or banks a line (by its number) belongs to by the user's
    function at `address`, which is called with both: its result modulo `count`. `words` is the
    memory that the function retains between calls."""
    # A mapping has two arguments; the others are not used.
    return int(call_user_function(address, (line, count, 0, 0, 0), words) % count)


@jitable
def bank_of(line: int, bits: int) -> int:
    """Returns which of 2 ** `bits` banks of DRAM holds a line (by its number): pseudo-random, so
    that at a given moment some banks have longer queues, but of each aligned group of 16 * 2 **
    `bits` lines every bank holds 16 (an estimate)."""
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
    """Returns the offset in `cache.words` of the tag word of an entry (set times ways plus way),
    which holds 1 plus its line's number, above the masks of its valid and its dirty sectors."""
    return int(cache.at + cache.sets + entry)


@jitable
def sector_times_at(cache: Cache, entry: int) -> int:
    """Returns the offset in `cache.words` of the first of the four words with the times at which
    the sectors of an entry (set times ways plus way) arrive: cycles in L1, ticks in L2."""
    return int(cache.at + (1 + cache.ways) * cache.sets + w.SECTORS * entry)


@jitable
def find_line(cache: Cache, set_index: int, line: int) -> int:
    """Returns the entry (set times ways plus way) that holds a line in set `set_index`, whatever
    sectors are valid, or -1 if none does."""
    first, hit_way = set_index * cache.ways, -1
    tags = tag_at(cache, first)
    for way in range(cache.ways):
        hit_way = way if cache.words[tags + way] >> w.TAG_BITS == line + 1 else hit_way
    return int(first + hit_way if hit_way >= 0 else -1)


@jitable
def initial_order(cache: Cache) -> int:
    """Returns the recency order of the ways of an empty set, four bits a way, cut to the cache's
    ways: way 0 is filled first. The word of a set is its recency order XOR this, so that zeroed
    memory is an empty cache."""
    return int(FIRST_ORDER >> WAY_BITS * (w.MOST_WAYS - cache.ways))


@jitable
def recency_order(cache: Cache, set_index: int) -> int:
    """Returns the ways of a set in the order of their last use, four bits a way, the most recently
    used lowest."""
    return int(cache.words[cache.at + set_index] ^ initial_order(cache))


@jitable
def oldest(cache: Cache, set_index: int) -> int:
    """Returns the least recently used way of a set."""
    return int(recency_order(cache, set_index) >> WAY_BITS * (cache.ways - 1) & WAY_MASK)


@jitable
def use_line(cache: Cache, set_index: int, line: int, now: int) -> int:
    """Returns the entry for a line that is accessed in the cycle `now`, and marks it as used
    (`choose_entry`). A line that was not in the cache replaces another, without valid sectors yet;
    the dirty sectors of the replaced line are lost, not written back."""
    entry = choose_entry(cache, set_index, line, now)
    if not holds_line(cache, entry, line):
        replace_line(cache, entry, line)
    return entry


@jitable
def holds_line(cache: Cache, entry: int, line: int) -> bool:
    """Returns whether an entry (set times ways plus way) holds a line, whatever sectors are
    valid."""
    return cache.words[tag_at(cache, entry)] >> w.TAG_BITS == line + 1


@jitable
def replace_line(cache: Cache, entry: int, line: int) -> None:
    """Replaces the line of an entry by `line`, without any valid or dirty sectors yet; the recency
    order and the sectors' times stay."""
    cache.words[tag_at(cache, entry)] = (line + 1) << w.TAG_BITS


@jitable
def choose_entry(cache: Cache, set_index: int, line: int, now: int) -> int:
    """Returns the entry that holds a line or, if none does, the one to be evicted for it, still
    with its old line so that the caller can write that back: the least recently used, unless the
    cache has a user's replacement policy. The entry becomes the most recently used; with a policy,
    the policy is called instead, on hits as well, and its result modulo the ways is the victim on a
    miss. `now`, the cycle, is only for the policy."""
    entry = find_line(cache, set_index, line)
    if cache.replacement == 0:
        return mark_recent(cache, set_index, entry)
    first = set_index * cache.ways
    # The user's policy is called for hits as well, so that it can record uses.
    words = offset_array(cache.words, cache.replacement_words + set_index * w.SET_STRIDE)
    way = entry - first if entry >= 0 else -1
    arguments = set_index, way, line, cache.ways, now
    victim = call_user_function(cache.replacement, arguments, words)
    return int(entry if entry >= 0 else first + victim % cache.ways)


@jitable
def mark_recent(cache: Cache, set_index: int, entry: int) -> int:
    """Makes an entry (set times ways plus way) the most recently used of its set and returns it; -1
    stands for the least recently used entry of the set."""
    first = set_index * cache.ways
    order = recency_order(cache, set_index)
    shift = WAY_BITS * (cache.ways - 1)
    if entry < 0:
        entry = first + oldest(cache, set_index)
    else:
        shift = 0
        while order >> shift & WAY_MASK != entry - first:
            shift += WAY_BITS
    # Moves the way's four bits to the bottom, and the bits of more recent ways up.
    newer = order & ((1 << shift) - 1)
    # Shifted twice: the sum of both shifts can be 64.
    older = order >> shift >> WAY_BITS << shift << WAY_BITS
    order = older | newer << WAY_BITS | (entry - first)
    cache.words[cache.at + set_index] = order ^ initial_order(cache)
    return int(entry)
