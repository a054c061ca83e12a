"""Fills the range caches (`abi.range_cache`), the inline caches of affine accesses: the slow path
of compiled code after a miss.

An entry counts accesses with its pitches only. If accesses with other pitches outnumber those that
it has counted, it is replaced, and its counts move to one of RETIRED_SETS. An entry whose
replacement does not pay is given up: `GIVEN_UP`."""

from __future__ import annotations

from typing import Any

from warploom.abi.range_cache import (
    ANY_STRIDE,
    BUCKET,
    FULL_SET,
    GIVEN_UP,
    RETIRED_SETS,
    STEP_AT,
    RangeCacheEntry,
    RangeCacheHeader,
    bucket_of,
    counts_at,
    entry_words,
    safe_pitches_at,
    used_at,
)
from warploom.simt.lane_counts import first_lane, jitable, last_lane
from warploom.simt.records import WordRecord, Words


class GroupDescriptor(WordRecord):
    """The constant description of a group of accesses, whose members follow."""

    runs: int  # of its addresses
    stride: int  # in them, or ANY_STRIDE
    size: int  # bytes that a lane accesses
    unit: int
    members: int  # how many
    sets: int  # the number of keys of the kernel's caches
    capacity: int  # the number of pitches of an entry
    entries_at: int  # the offset of the entries with number 0
    set_words: int  # the words of all entries of one number


class GroupMember(WordRecord):
    """An access of a group."""

    header: int  # the offset of its cache's header
    entry: int  # the offset of its entry from the first one with the same number
    offset: int  # its byte offset from the group's address


RangeCaches = RunAddresses = Any
"""Arrays of 64-bit integers, pointers in compiled code. RangeCaches: the kernel's keys, then its
caches. RunAddresses: the first address of each run of lanes, and at STEP_AT the stride if it is
found at run time."""

FURTHEST = 1 << 40
"""The largest pitch or stride of an entry, in bytes: so no sum of addresses wraps around."""

NEVER = 256
"""The number of misses after which an entry may be given up (`_count_mismatch`,
`_count_failure`)."""

_LANES = 32
_FIRST_RETIRED, _AFTER_RETIRED = RETIRED_SETS.start, RETIRED_SETS.stop


def fill_range_cache(
    sets: RangeCaches,
    group_words: Words,
    bases: RunAddresses,
    key: int,
    looked_up: int,
    bounds: Words,
) -> int:
    """Makes the entry of a lane set for a group that has missed, or moves it to `bounds` (start and
    end of an allocation), if all runs are aligned, no pitch or stride exceeds FURTHEST, and all
    active lanes are inside of the bounds. An entry with other pitches is first retired, once such
    accesses outnumber its own; nothing is entered before, or without a free one of
    RETIRED_SETS. Failed attempts and moves are counted in the entry (`_count_failure`), which must
    not be given up.

    `key`: that of the active lanes; `looked_up`: the number that compiled code has looked up for
    it. Returns 1 plus the index among the entry's counts by which code counts this access; 0 if
    nothing was entered, or if its key is new, so that `looked_up` is not its number: then the cost
    rules count this access.
    """
    group = GroupDescriptor(group_words, 0)
    number = find_or_insert_set(sets, key, group.sets)
    if number < 0:
        return 0
    entry = _entry(sets, group, 0, number)
    if _is_unsupported(group, bases) or not _enter_members(sets, group):
        _count_failure(entry, group)
        return 0
    same_pitches = _has_same_pitches(entry, group, bases)
    if not same_pitches and not _count_mismatch(entry, group):
        return 0
    low, high = _extent(group, bases, key)
    lowest = int(bounds[0]) - low
    # The bounds need not be aligned: the first address that fits and is congruent to this one.
    lowest += (int(bases[0]) - lowest) & (group.size - 1)
    distance, last = int(bases[0]) - lowest, int(bounds[1]) - high - lowest
    in_bounds = distance >= 0 and distance <= last
    if not in_bounds or (same_pitches and entry.extent != 0 and entry.low != lowest):
        _count_failure(entry, group)
    if not in_bounds or not (same_pitches or _retire(sets, group, number)):
        return 0
    entry.key, entry.low, entry.extent = key, lowest, 1 + last // group.size
    length, safe_pitches = _run_length(group), entry.at + safe_pitches_at(group.capacity)
    active_run = first_lane(key) // length
    for run in range(group.runs):
        entry.pitches[run] = bases[run] - bases[0]
        # Runs of one lane have no safe pitches: pitches extend over their words.
        if length > 1:
            sets[safe_pitches + run] = (
                bases[run if _active_lanes(key, run, length) else active_run] - bases[0]
            )
    entry.step = _stride(group, bases)
    if length == 1 and _is_consecutive(group, bases, key):
        entry.step = group.size
    entry.within = _cost_bits_mask(group, bases)
    entry.first_address = bases[0] + _member(group, 0).offset
    return int(1 + (entry.first_address & entry.within) // group.size) if number == looked_up else 0


@jitable
def _member(group: GroupDescriptor, member: int) -> GroupMember:
    """Returns an access of a group by its index."""
    return GroupMember(group, GroupDescriptor.WORDS, member)


@jitable
def _entry(sets: RangeCaches, group: GroupDescriptor, member: int, number: int) -> RangeCacheEntry:
    """Returns entry `number` in the cache of access `member` (its index in the group)."""
    first = group.entries_at + _member(group, member).entry
    return RangeCacheEntry(sets, first + number * group.set_words)


@jitable
def _entry_length(group: GroupDescriptor) -> int:
    """Returns the number of 64-bit words of an entry in the caches of a group."""
    return int(entry_words(group.unit, group.size, group.capacity))


@jitable
def _count_mismatch(entry: RangeCacheEntry, group: GroupDescriptor) -> bool:
    """Counts an access with other pitches than those of an entry (`misses`);
    returns whether such accesses outnumber those that the entry has counted, False unless their
    number is a power of two. If they do after NEVER of them, the entry is given up: its
    replacements have not been hit either."""
    entry.misses += 1
    misses = entry.misses
    if misses & (misses - 1) != 0:
        return False
    hits = _count_hits(entry, group)
    if misses >= NEVER and misses > hits:
        entry.misses = GIVEN_UP
    return misses > hits


@jitable
def _count_failure(entry: RangeCacheEntry, group: GroupDescriptor) -> None:
    """Counts, in `misses` of an entry, a failed attempt to make an entry, or one
    that moves an entry with the same pitches to another allocation. After NEVER of them, when their
    number is a power of two, an entry is given up if they are more than half of the accesses that
    it has counted, as where accesses alternate between two allocations."""
    entry.misses += 1
    misses = entry.misses
    if misses >= NEVER and misses & (misses - 1) == 0 and 2 * misses > _count_hits(entry, group):
        entry.misses = GIVEN_UP


@jitable
def _count_hits(entry: RangeCacheEntry, group: GroupDescriptor) -> int:
    """Returns the number of accesses that an entry has counted."""
    hits = 0
    for word in range(counts_at(group.capacity), _entry_length(group)):
        hits += entry.words[entry.at + word]
    return hits


@jitable
def _retire(sets: RangeCaches, group: GroupDescriptor, number: int) -> bool:
    """Moves entry `number` of all accesses of a group to free entries of RETIRED_SETS, which retain
    their counts, and clears it; returns False, and moves nothing, if none is free."""
    for retired in range(_FIRST_RETIRED, _AFTER_RETIRED):
        if _entry(sets, group, 0, retired).key == 0:
            for member in range(group.members):
                at = _entry(sets, group, member, number).at
                target = _entry(sets, group, member, retired).at
                for word in range(_entry_length(group)):
                    sets[target + word] = sets[at + word]
                    sets[at + word] = 0
            return True
    return False


@jitable
def _cost_bits_mask(group: GroupDescriptor, bases: RunAddresses) -> int:
    """Returns the mask of the low bits of the first address on which the costs of a group's
    accesses depend: `unit` - 1, for the distance from an aligned unit, or `size` - 1 if all lanes
    of a run have one address and the addresses of all runs differ by multiples of a unit, so that
    costs are equal wherever they begin."""
    unit = group.unit
    # Runs of equal addresses that are whole units apart cost the same wherever they begin; then
    # all accesses share one counter.
    if _stride(group, bases) != 0:
        return unit - 1
    for run in range(1, group.runs):
        if (bases[run] - bases[0]) & (unit - 1) != 0:
            return unit - 1
    return group.size - 1


@jitable
def _run_length(group: GroupDescriptor) -> int:
    """Returns the number of lanes of a run."""
    return _LANES // group.runs


@jitable
def _active_lanes(key: int, run: int, length: int) -> int:
    """Returns the bits of a key's mask that belong to run number `run`, of `length` lanes, moved
    down to bit 0."""
    return key >> (run * length) & ((1 << length) - 1)


@jitable
def _stride(group: GroupDescriptor, bases: RunAddresses) -> int:
    """Returns the stride of the lanes of a run, in bytes: the constant one, or that found at run
    time."""
    return bases[STEP_AT] if group.stride == ANY_STRIDE else group.stride  # type: ignore[no-any-return]


@jitable
def _enter_members(sets: RangeCaches, group: GroupDescriptor) -> bool:
    """Writes the headers of the caches of a group's accesses: the group's first cache (`leader`),
    its number of lane runs (`runs`), and the access's bytes from the first one (`offset`). Returns
    False, and writes no further ones, if a cache belongs to another group already, or has another
    distance or number of runs, as another version of the block may have it: a header describes all
    entries of its cache, also those that count for the other version."""
    first = _member(group, 0)
    for number in range(group.members):
        member = _member(group, number)
        cache, offset = RangeCacheHeader(sets, member.header), member.offset - first.offset
        same_group = cache.leader == first.header and cache.runs == group.runs
        if cache.leader != 0 and not (same_group and cache.offset == offset):
            return False
        cache.leader, cache.runs, cache.offset = first.header, group.runs, offset
    return True


@jitable
def find_or_insert_set(sets: RangeCaches, key: int, count: int) -> int:
    """Returns the number of a lane set's key in the kernel's table of `count` keys; inserts it if
    it is new, with the next number. FULL_SET for a full warp's key, the first; -1 if its bucket is
    full or its mask is empty."""
    if key & 0xFFFFFFFF == 0:
        return -1
    begin = bucket_of(key, count)
    if key == sets[0]:  # a full warp's key has this number whatever its hash is
        return FULL_SET
    for cache_offset in range(begin, begin + BUCKET):
        if sets[cache_offset] == 0:
            used = used_at(count)
            sets[cache_offset], sets[count + cache_offset] = key, sets[used]
            sets[used] += 1
        if sets[cache_offset] == key:
            return int(sets[count + cache_offset])
    return -1


@jitable
def _is_unsupported(group: GroupDescriptor, bases: RunAddresses) -> bool:
    """Returns whether no entry can be made for a group's accesses: some address is misaligned, or a
    pitch or stride exceeds FURTHEST.
    """
    bits = 0
    for member in range(group.members):
        bits |= bases[0] + _member(group, member).offset
    step = _stride(group, bases)
    # Any low bit set in the address, a stride or a pitch misaligns some lane; sizes are powers of
    # two.
    bits |= step
    if step > FURTHEST or step < -FURTHEST:
        return True
    for run in range(group.runs):
        pitch = bases[run] - bases[0]
        bits |= pitch
        if pitch > FURTHEST or pitch < -FURTHEST:
            return True
    return (bits & (group.size - 1)) != 0  # type: ignore[no-any-return]


@jitable
def _has_same_pitches(entry: RangeCacheEntry, group: GroupDescriptor, bases: RunAddresses) -> bool:
    """Returns whether an entry can count this access: it is free, or has the same
    distances of lane runs (pitches) and, if runs have more than one lane, the same stride.
    """
    if entry.key == 0:
        return True
    if entry.step != _stride(group, bases) and _run_length(group) > 1:
        return False
    differ = 0
    for run in range(group.runs):
        differ |= entry.pitches[run] ^ (bases[run] - bases[0])
    return differ == 0  # type: ignore[no-any-return]


@jitable
def _is_consecutive(group: GroupDescriptor, bases: RunAddresses, key: int) -> bool:
    """Returns whether the active lanes of a key, each lane a run of its own, access consecutive
    elements from lane 0's address on."""
    for lane in range(_LANES):
        if (key >> lane) & 1 and bases[lane] - bases[0] != lane * group.size:
            return False
    return True


@jitable
def _extent(group: GroupDescriptor, bases: RunAddresses, key: int) -> tuple[int, int]:
    """Returns the byte range that the active lanes of a key access in all accesses of the group:
    begin and end (exclusive), as offsets from the first run's address."""
    start = _member(group, 0).offset
    stop = start
    for member in range(1, group.members):
        offset = _member(group, member).offset
        start = min(start, offset)
        stop = max(stop, offset)
    length, stride = _run_length(group), _stride(group, bases)
    low = 1 << 62
    high = -(1 << 62)
    for run in range(group.runs):
        active = _active_lanes(key, run, length)
        if active:
            first = bases[run] - bases[0] + first_lane(active) * stride
            last = bases[run] - bases[0] + last_lane(active) * stride
            low = min(low, first, last)
            high = max(high, first, last)
    return low + start, high + stop + group.size
