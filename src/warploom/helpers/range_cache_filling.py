"""Fills the access caches (`abi.range_cache`), for compiled code that finds an access in none.

The counts of an entry are of the pitches that it has. Where more accesses come with
others than it has counted, those take its place, and its counts are kept (`RETIRED`).
"""

from __future__ import annotations

from typing import Any

from warploom.abi.range_cache import (
    AHEAD,
    ANY_STRIDE,
    BUCKET,
    EXTENT,
    FIRST,
    GIVEN_UP,
    HEADER,
    KEY,
    LEADER,
    LOW,
    MISSES,
    PITCHES,
    RUNS,
    STEP,
    STEP_AT,
    WITHIN,
    bucket_of,
    counts_at,
    entries_of,
    entry_words,
    safe_at,
)
from warploom.simt.lane_counts import first_lane, jitable, last_lane

G_RUNS, G_STRIDE, G_SIZE, G_UNIT, G_MEMBERS, G_SETS, G_CAPACITY, MEMBERS = range(8)
"""What is known of a group before it runs: the runs of its addresses and the stride in them, the
bytes that a lane accesses, the unit, how many accesses there are; and of the
kernel's caches how many keys they have, and for how many runs an entry has room."""

M_PLACE, M_OFFSET, MEMBER_WORDS = range(3)
"""Then for each of its accesses: where its cache stands, and its offset from the group's
address."""

FURTHEST = 1 << 40
"""A pitch or step that is longer is not kept: so no sum of addresses begins again at 0."""

NEVER = 256
"""After so many accesses with other pitches, more than the entry has counted and with no room to
replace it, or where it has counted none, more of them are not looked at."""

_LANES = 32


def learn_access(sets: Any, group: Any, bases: Any, key: int, known: int, bounds: Any) -> int:
    """Makes an entry for accesses like those of a group, if all their active lanes are aligned and
    inside of `bounds`, two addresses.

    Returns 1 and where such accesses are counted, among the counts of the entry, if `known` is the
    number of their key; else 0: then code does not know where to count this one, and the rules are
    to. `sets` are the kernel's keys, behind which the caches stand; `bases` says where each run
    begins, and at STEP_AT by how much lanes follow where that is not known before; `key` is that
    of the active lanes.
    """
    number = find_set(sets, key, group[G_SETS])
    if number < 0:
        return 0
    at = _entry_at(group, 0, number)
    if _is_unsupported(group, bases) or not _enter_members(sets, group):
        _count_failure(sets, at, group)
        return 0
    same_pitches = _has_same_pitches(sets, at, group, bases)
    if not same_pitches and not _is_outnumbered(sets, at, group):
        return 0
    low, high = _extent(group, bases, key)
    lowest = int(bounds[0]) - low
    lowest += (int(bases[0]) - lowest) & (group[G_SIZE] - 1)
    behind, last = int(bases[0]) - lowest, int(bounds[1]) - high - lowest
    in_bounds = behind >= 0 and behind <= last
    if not in_bounds or (same_pitches and sets[at + EXTENT] != 0 and sets[at + LOW] != lowest):
        _count_failure(sets, at, group)
    if not in_bounds or not (same_pitches or _retire(sets, group, number)):
        return 0
    sets[at + KEY] = key
    sets[at + LOW] = lowest
    sets[at + EXTENT] = 1 + last // group[G_SIZE]
    length, safe_pitches = _length(group), at + safe_at(group[G_CAPACITY])
    some = first_lane(key) // length
    for run in range(group[G_RUNS]):
        sets[at + PITCHES + run] = bases[run] - bases[0]
        if length > 1:
            sets[safe_pitches + run] = bases[run if _active(key, run, length) else some] - bases[0]
    sets[at + STEP] = _stride(group, bases)
    if length == 1 and _is_consecutive(group, bases, key):
        sets[at + STEP] = group[G_SIZE]
    sets[at + WITHIN] = _within(group, bases)
    sets[at + FIRST] = bases[0] + group[MEMBERS + M_OFFSET]
    first = (bases[0] + group[MEMBERS + M_OFFSET]) & sets[at + WITHIN]
    return int(1 + first // group[G_SIZE]) if number == known else 0


@jitable
def _entry_at(group: Any, member: int, number: int) -> int:
    """Returns where an entry of the cache of one of a group's accesses stands."""
    place = group[MEMBERS + member * MEMBER_WORDS + M_PLACE]
    return place + HEADER + number * _entry_length(group)  # type: ignore[no-any-return]


@jitable
def _entry_length(group: Any) -> int:
    """Returns the words of an entry."""
    return int(entry_words(group[G_UNIT], group[G_SIZE], group[G_CAPACITY]))


@jitable
def _is_outnumbered(sets: Any, at: int, group: Any) -> bool:
    """Counts an access that an entry does not hold for; returns whether there are more such than
    the entry has counted. That is looked at when their number is a power of two. What is still not
    seen again after NEVER of them is given up."""
    sets[at + MISSES] += 1
    misses = sets[at + MISSES]
    if misses & (misses - 1) != 0:
        return False
    hits = _hits(sets, at, group)
    if misses >= NEVER and misses > hits:
        sets[at + MISSES] = GIVEN_UP
    return misses > hits  # type: ignore[no-any-return]


@jitable
def _count_failure(sets: Any, at: int, group: Any) -> None:
    """Counts an attempt to make an entry that was not possible, or that moves one with the same
    pitches to where it holds now. When there are NEVER of them, and half of what the entry has
    counted has made it anew, as where accesses alternate between two allocations, it is given
    up."""
    sets[at + MISSES] += 1
    misses = sets[at + MISSES]
    if misses >= NEVER and misses & (misses - 1) == 0 and 2 * misses > _hits(sets, at, group):
        sets[at + MISSES] = GIVEN_UP


@jitable
def _hits(sets: Any, at: int, group: Any) -> int:
    """Returns how many accesses an entry has counted."""
    hits = 0
    for place in range(at + counts_at(group[G_CAPACITY]), at + _entry_length(group)):
        hits += sets[place]
    return hits


@jitable
def _retire(sets: Any, group: Any, number: int) -> bool:
    """Empties an entry of all accesses of a group, and keeps what it has counted; False where there
    is no room for that."""
    for retired in range(group[G_SETS] + 1, entries_of(group[G_SETS])):
        if sets[_entry_at(group, 0, retired) + KEY] == 0:
            for member in range(group[G_MEMBERS]):
                at, target = _entry_at(group, member, number), _entry_at(group, member, retired)
                for word in range(_entry_length(group)):
                    sets[target + word] = sets[at + word]
                    sets[at + word] = 0
            return True
    return False


@jitable
def _within(group: Any, bases: Any) -> int:
    """Returns the bits of the first run's address that decide about costs."""
    unit = group[G_UNIT]
    if _stride(group, bases) != 0:
        return unit - 1  # type: ignore[no-any-return]
    for run in range(1, group[G_RUNS]):
        if (bases[run] - bases[0]) & (unit - 1) != 0:
            return unit - 1  # type: ignore[no-any-return]
    return group[G_SIZE] - 1  # type: ignore[no-any-return]


@jitable
def _length(group: Any) -> int:
    """Returns the lanes of a run."""
    return _LANES // group[G_RUNS]


@jitable
def _active(key: int, run: int, length: int) -> int:
    """Returns which lanes of a run of so many are in a key's mask."""
    return key >> (run * length) & ((1 << length) - 1)


@jitable
def _stride(group: Any, bases: Any) -> int:
    """Returns by how much lanes of a run follow each other."""
    return bases[STEP_AT] if group[G_STRIDE] == ANY_STRIDE else group[G_STRIDE]  # type: ignore[no-any-return]


@jitable
def _enter_members(sets: Any, group: Any) -> bool:
    """Enters the accesses of a group in their caches; False where one belongs to another."""
    for member in range(group[G_MEMBERS]):
        at = MEMBERS + member * MEMBER_WORDS
        place = group[at + M_PLACE]
        ahead = group[at + M_OFFSET] - group[MEMBERS + M_OFFSET]
        known = sets[place + LEADER]
        if known != 0 and (known != group[MEMBERS] or sets[place + AHEAD] != ahead):
            return False
        sets[place + LEADER] = group[MEMBERS + M_PLACE]
        sets[place + RUNS] = group[G_RUNS]
        sets[place + AHEAD] = ahead
    return True


@jitable
def find_set(sets: Any, key: int, count: int) -> int:
    """Returns the number of a key among so many, which is entered where there is room; -1 where
    there is none, or no lane in its mask."""
    if key & 0xFFFFFFFF == 0:
        return -1
    begin = bucket_of(key, count)
    if key == sets[0]:
        return 0
    for number in range(begin, begin + BUCKET):
        if sets[number] == 0:
            sets[number] = key
        if sets[number] == key:
            return number
    return -1


@jitable
def _member_offset(group: Any, member: int) -> int:
    """Returns how far an access of a group lies behind the group's address."""
    return group[MEMBERS + member * MEMBER_WORDS + M_OFFSET]  # type: ignore[no-any-return]


@jitable
def _is_unsupported(group: Any, bases: Any) -> bool:
    """Returns whether some run of some access is not aligned, or too far from the first."""
    some = 0
    for member in range(group[G_MEMBERS]):
        some |= bases[0] + _member_offset(group, member)
    step = _stride(group, bases)
    some |= step
    if step > FURTHEST or step < -FURTHEST:
        return True
    for run in range(group[G_RUNS]):
        pitch = bases[run] - bases[0]
        some |= pitch
        if pitch > FURTHEST or pitch < -FURTHEST:
            return True
    return (some & (group[G_SIZE] - 1)) != 0  # type: ignore[no-any-return]


@jitable
def _has_same_pitches(sets: Any, at: int, group: Any, bases: Any) -> bool:
    """Returns whether an entry is free, or of accesses with the same pitches."""
    if sets[at + KEY] == 0:
        return True
    if sets[at + STEP] != _stride(group, bases) and _length(group) > 1:
        return False
    differ = 0
    for run in range(group[G_RUNS]):
        differ |= sets[at + PITCHES + run] ^ (bases[run] - bases[0])
    return differ == 0  # type: ignore[no-any-return]


@jitable
def _is_consecutive(group: Any, bases: Any, key: int) -> bool:
    """Return whether lanes, each of which is a run, reach one element behind the other."""
    for lane in range(_LANES):
        if (key >> lane) & 1 and bases[lane] - bases[0] != lane * group[G_SIZE]:
            return False
    return True


@jitable
def _extent(group: Any, bases: Any, key: int) -> tuple[int, int]:
    """Returns how far the first byte that any active lane reaches lies behind the first run's
    address, and the end of the last."""
    start = _member_offset(group, 0)
    stop = start
    for member in range(1, group[G_MEMBERS]):
        ahead = _member_offset(group, member)
        start = min(start, ahead)
        stop = max(stop, ahead)
    length, stride = _length(group), _stride(group, bases)
    low = 1 << 62
    high = -(1 << 62)
    for run in range(group[G_RUNS]):
        active = _active(key, run, length)
        if active:
            first = bases[run] - bases[0] + first_lane(active) * stride
            last = bases[run] - bases[0] + last_lane(active) * stride
            low = min(low, first, last)
            high = max(high, first, last)
    return low + start, high + stop + group[G_SIZE]
