"""Fills the range caches (`abi.range_cache`), the inline caches of affine accesses: the slow path
of compiled code after a miss.

An entry counts accesses with its pitches only. If accesses with other pitches outnumber those that
it has counted, it is replaced, and its counts move to a RETIRED entry. An entry whose replacement
does not pay is given up: `GIVEN_UP`."""

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
    safe_pitches_at,
)
from warploom.simt.lane_counts import first_lane, jitable, last_lane

G_RUNS, G_STRIDE, G_SIZE, G_UNIT, G_MEMBERS, G_SETS, G_CAPACITY, MEMBERS = range(8)
"""The words of a group's constant descriptor: the number of runs of its addresses and the stride in
them (or ANY_STRIDE), the bytes that a lane accesses, the unit, the number of accesses; the number
of keys of the kernel's caches, and the number of pitches of an entry."""

M_PLACE, M_OFFSET, MEMBER_WORDS = range(3)
"""The words for each access of the group, which follow: the offset of its cache, and its byte
offset from the group's address."""

RangeCaches = GroupDescriptor = RunAddresses = Words = Any
"""Arrays of 64-bit integers, pointers in compiled code. RangeCaches: the kernel's keys, then its
caches. GroupDescriptor: the words above. RunAddresses: the first address of each run of lanes, and
at STEP_AT the stride if it is found at run time."""

FURTHEST = 1 << 40
"""The largest pitch or stride of an entry, in bytes: so no sum of addresses wraps around."""

NEVER = 256
"""The number of misses after which an entry may be given up (`_count_mismatch`,
`_count_failure`)."""

_LANES = 32


def fill_range_cache(
    sets: RangeCaches,
    group: GroupDescriptor,
    bases: RunAddresses,
    key: int,
    looked_up: int,
    bounds: Words,
) -> int:
    """Makes the entry of a lane set for a group that has missed, or moves it to `bounds` (start and
    end of an allocation), if all runs are aligned, no pitch or stride exceeds FURTHEST, and all
    active lanes are inside of the bounds. An entry with other pitches is first retired, once such
    accesses outnumber its own; nothing is entered before, or without a free RETIRED entry. Failed
    attempts and moves are counted in the entry (`_count_failure`), which must not be given up.

    `key`: that of the active lanes; `looked_up`: the number that compiled code has looked up for
    it. Returns 1 plus the index among the entry's counts by which code counts this access; 0 if
    nothing was entered, or if its key is new, so that `looked_up` is not its number: then the cost
    rules count this access.
    """
    number = find_or_insert_set(sets, key, group[G_SETS])
    if number < 0:
        return 0
    at = _entry_at(group, 0, number)
    if _is_unsupported(group, bases) or not _enter_members(sets, group):
        _count_failure(sets, at, group)
        return 0
    same_pitches = _has_same_pitches(sets, at, group, bases)
    if not same_pitches and not _count_mismatch(sets, at, group):
        return 0
    low, high = _extent(group, bases, key)
    lowest = int(bounds[0]) - low
    # The bounds need not be aligned: the first address that fits and is congruent to this one.
    lowest += (int(bases[0]) - lowest) & (group[G_SIZE] - 1)
    distance, last = int(bases[0]) - lowest, int(bounds[1]) - high - lowest
    in_bounds = distance >= 0 and distance <= last
    if not in_bounds or (same_pitches and sets[at + EXTENT] != 0 and sets[at + LOW] != lowest):
        _count_failure(sets, at, group)
    if not in_bounds or not (same_pitches or _retire(sets, group, number)):
        return 0
    sets[at + KEY] = key
    sets[at + LOW] = lowest
    sets[at + EXTENT] = 1 + last // group[G_SIZE]
    length, safe_pitches = _run_length(group), at + safe_pitches_at(group[G_CAPACITY])
    active_run = first_lane(key) // length
    for run in range(group[G_RUNS]):
        sets[at + PITCHES + run] = bases[run] - bases[0]
        # Runs of one lane have no safe pitches: PITCHES extend over their words.
        if length > 1:
            sets[safe_pitches + run] = (
                bases[run if _active_lanes(key, run, length) else active_run] - bases[0]
            )
    sets[at + STEP] = _stride(group, bases)
    if length == 1 and _is_consecutive(group, bases, key):
        sets[at + STEP] = group[G_SIZE]
    sets[at + WITHIN] = _cost_bits_mask(group, bases)
    sets[at + FIRST] = bases[0] + group[MEMBERS + M_OFFSET]
    first = (bases[0] + group[MEMBERS + M_OFFSET]) & sets[at + WITHIN]
    return int(1 + first // group[G_SIZE]) if number == looked_up else 0


@jitable
def _entry_at(group: GroupDescriptor, member: int, number: int) -> int:
    """Returns the offset, in words from the first key, of entry `number` in the cache of access
    `member` (its index in the group)."""
    place = group[MEMBERS + member * MEMBER_WORDS + M_PLACE]
    return place + HEADER + number * _entry_length(group)  # type: ignore[no-any-return]


@jitable
def _entry_length(group: GroupDescriptor) -> int:
    """Returns the words of an entry."""
    return int(entry_words(group[G_UNIT], group[G_SIZE], group[G_CAPACITY]))


@jitable
def _count_mismatch(sets: RangeCaches, at: int, group: GroupDescriptor) -> bool:
    """Counts an access with other pitches than those of the entry at offset `at` (MISSES); returns
    whether such accesses outnumber those that the entry has counted, False unless their number is a
    power of two. If they do after NEVER of them, the entry is given up: its replacements have not
    been hit either."""
    sets[at + MISSES] += 1
    misses = sets[at + MISSES]
    if misses & (misses - 1) != 0:
        return False
    hits = _count_hits(sets, at, group)
    if misses >= NEVER and misses > hits:
        sets[at + MISSES] = GIVEN_UP
    return misses > hits  # type: ignore[no-any-return]


@jitable
def _count_failure(sets: RangeCaches, at: int, group: GroupDescriptor) -> None:
    """Counts, in MISSES of the entry at offset `at`, a failed attempt to make an entry, or one that
    moves an entry with the same pitches to another allocation. After NEVER of them, when their
    number is a power of two, an entry is given up if they are more than half of the accesses that
    it has counted, as where accesses alternate between two allocations."""
    sets[at + MISSES] += 1
    misses = sets[at + MISSES]
    if misses >= NEVER and misses & (misses - 1) == 0 and 2 * misses > _count_hits(sets, at, group):
        sets[at + MISSES] = GIVEN_UP


@jitable
def _count_hits(sets: RangeCaches, at: int, group: GroupDescriptor) -> int:
    """Returns the number of accesses that the entry at offset `at` has counted."""
    hits = 0
    for word in range(at + counts_at(group[G_CAPACITY]), at + _entry_length(group)):
        hits += sets[word]
    return hits


@jitable
def _retire(sets: RangeCaches, group: GroupDescriptor, number: int) -> bool:
    """Moves entry `number` of all accesses of a group to a free RETIRED entry, which keeps its
    counts, and clears it; returns False, and moves nothing, if none is free."""
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
def _cost_bits_mask(group: GroupDescriptor, bases: RunAddresses) -> int:
    """Returns the mask of the low bits of the first address on which the costs of a group's
    accesses depend: those of the distance from an aligned unit (G_UNIT bytes); only of the distance
    from an aligned element if each run has one address, and all distances of runs are multiples
    of a unit."""
    unit = group[G_UNIT]
    # Runs of equal addresses that are whole units apart cost the same wherever they begin; then
    # all accesses share one counter.
    if _stride(group, bases) != 0:
        return unit - 1  # type: ignore[no-any-return]
    for run in range(1, group[G_RUNS]):
        if (bases[run] - bases[0]) & (unit - 1) != 0:
            return unit - 1  # type: ignore[no-any-return]
    return group[G_SIZE] - 1  # type: ignore[no-any-return]


@jitable
def _run_length(group: GroupDescriptor) -> int:
    """Returns the number of lanes of a run."""
    return _LANES // group[G_RUNS]


@jitable
def _active_lanes(key: int, run: int, length: int) -> int:
    """Returns the bits of a key's mask that belong to run `run` of `length` lanes."""
    return key >> (run * length) & ((1 << length) - 1)


@jitable
def _stride(group: GroupDescriptor, bases: RunAddresses) -> int:
    """Returns the stride of the lanes of a run, in bytes: the constant one, or that found at run
    time."""
    return bases[STEP_AT] if group[G_STRIDE] == ANY_STRIDE else group[G_STRIDE]  # type: ignore[no-any-return]


@jitable
def _enter_members(sets: RangeCaches, group: GroupDescriptor) -> bool:
    """Writes the headers of the caches of a group's accesses: the group's first cache (LEADER), its
    number of lane runs (RUNS), and the access's bytes from the first one (AHEAD). Returns False,
    and writes no further ones, if a cache belongs to another group already, as another version of
    the block may have it."""
    for member in range(group[G_MEMBERS]):
        at = MEMBERS + member * MEMBER_WORDS
        cache = group[at + M_PLACE]
        offset = group[at + M_OFFSET] - group[MEMBERS + M_OFFSET]
        leader = sets[cache + LEADER]
        if leader != 0 and (leader != group[MEMBERS] or sets[cache + AHEAD] != offset):
            return False
        sets[cache + LEADER] = group[MEMBERS + M_PLACE]
        sets[cache + RUNS] = group[G_RUNS]
        sets[cache + AHEAD] = offset
    return True


@jitable
def find_or_insert_set(sets: RangeCaches, key: int, count: int) -> int:
    """Returns the number of a lane set's key in the kernel's table of `count` keys, and inserts it
    if it is new: 0 for a full warp's key, the first; -1 if its bucket is full or its mask is empty.
    """
    if key & 0xFFFFFFFF == 0:
        return -1
    begin = bucket_of(key, count)
    if key == sets[0]:  # a full warp's key has number 0 whatever its hash is
        return 0
    for number in range(begin, begin + BUCKET):
        if sets[number] == 0:
            sets[number] = key
        if sets[number] == key:
            return number
    return -1


@jitable
def _member_offset(group: GroupDescriptor, member: int) -> int:
    """Returns the byte offset of access `member` (its index in the group) from the group's
    address."""
    return group[MEMBERS + member * MEMBER_WORDS + M_OFFSET]  # type: ignore[no-any-return]


@jitable
def _is_unsupported(group: GroupDescriptor, bases: RunAddresses) -> bool:
    """Returns whether no entry can be made for a group's accesses: some address is misaligned, or a
    pitch or stride exceeds FURTHEST.
    """
    bits = 0
    for member in range(group[G_MEMBERS]):
        bits |= bases[0] + _member_offset(group, member)
    step = _stride(group, bases)
    # Any low bit set in the address, a stride or a pitch misaligns some lane; sizes are powers of
    # two.
    bits |= step
    if step > FURTHEST or step < -FURTHEST:
        return True
    for run in range(group[G_RUNS]):
        pitch = bases[run] - bases[0]
        bits |= pitch
        if pitch > FURTHEST or pitch < -FURTHEST:
            return True
    return (bits & (group[G_SIZE] - 1)) != 0  # type: ignore[no-any-return]


@jitable
def _has_same_pitches(
    sets: RangeCaches, at: int, group: GroupDescriptor, bases: RunAddresses
) -> bool:
    """Returns whether the entry at offset `at` can count this access: it is free, or has the same
    distances of lane runs (pitches) and, if runs have more than one lane, the same stride.
    """
    if sets[at + KEY] == 0:
        return True
    if sets[at + STEP] != _stride(group, bases) and _run_length(group) > 1:
        return False
    differ = 0
    for run in range(group[G_RUNS]):
        differ |= sets[at + PITCHES + run] ^ (bases[run] - bases[0])
    return differ == 0  # type: ignore[no-any-return]


@jitable
def _is_consecutive(group: GroupDescriptor, bases: RunAddresses, key: int) -> bool:
    """Returns whether the active lanes of a key, each lane a run of its own, access consecutive
    elements from lane 0's address on."""
    for lane in range(_LANES):
        if (key >> lane) & 1 and bases[lane] - bases[0] != lane * group[G_SIZE]:
            return False
    return True


@jitable
def _extent(group: GroupDescriptor, bases: RunAddresses, key: int) -> tuple[int, int]:
    """Returns the byte range that the active lanes of a key access in all accesses of the group:
    begin and end, as offsets from the first run's address.
    """
    start = _member_offset(group, 0)
    stop = start
    for member in range(1, group[G_MEMBERS]):
        offset = _member_offset(group, member)
        start = min(start, offset)
        stop = max(stop, offset)
    length, stride = _run_length(group), _stride(group, bases)
    low = 1 << 62
    high = -(1 << 62)
    for run in range(group[G_RUNS]):
        active = _active_lanes(key, run, length)
        if active:
            first = bases[run] - bases[0] + first_lane(active) * stride
            last = bases[run] - bases[0] + last_lane(active) * stride
            low = min(low, first, last)
            high = max(high, first, last)
    return low + start, high + stop + group[G_SIZE]
