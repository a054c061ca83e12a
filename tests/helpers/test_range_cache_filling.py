"""Checks entries of range caches against values worked out by hand (`abi.range_cache`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from warploom.abi.range_cache import (
    ANY_STRIDE,
    FEW_SETS,
    FIRST_SET,
    FULL_SET,
    GIVEN_UP,
    LAYOUT_SHIFT,
    MANY_SETS,
    NO_SET,
    RETIRED_SETS,
    STEP_AT,
    RangeCacheEntry,
    RangeCacheHeader,
    counts_at,
    entry_words,
    headers_at,
    safe_pitches_at,
    used_at,
)
from warploom.helpers.range_cache_filling import NEVER, fill_range_cache, find_or_insert_set

Words = npt.NDArray[np.int64]

ALL = 0xFFFFFFFF
UNIT, SIZE = 128, 4
SETS, RUN_CAPACITY = FEW_SETS, 16
"""The number of keys, and of pitches of an entry."""
LENGTH = entry_words(UNIT, SIZE, RUN_CAPACITY)
SAFE, COUNTS = safe_pitches_at(RUN_CAPACITY), counts_at(RUN_CAPACITY)
HEADER = headers_at(SETS)
ENTRIES = HEADER + RangeCacheHeader.WORDS
"""The offsets of the one cache's header and of its entries."""
FULL = ENTRIES + FULL_SET * LENGTH
"""The offset of the entry of a full warp."""


def empty() -> Words:
    words = np.zeros(ENTRIES + (FIRST_SET + SETS) * LENGTH, np.int64)
    words[0], words[used_at(SETS)] = ALL, FIRST_SET
    return words


def group(runs: int, stride: int, offset: int = 0) -> Words:
    """Returns the descriptor of a group of one access of words, at a byte offset."""
    descriptor = runs, stride, SIZE, UNIT, 1, SETS, RUN_CAPACITY, ENTRIES, LENGTH
    return np.array([*descriptor, HEADER, 0, offset], np.int64)


def at(*firsts: int) -> Words:
    return np.array([*firsts, *[0] * (STEP_AT + 1 - len(firsts))], np.int64)


def rows_of_6(pitch: int) -> Words:
    """Returns the addresses of lanes that access rows of 6 words, with a pitch from row to row."""
    return at(*(4096 + lane // 6 * pitch + lane % 6 * SIZE for lane in range(32)))


def learn(
    words: Words,
    access: Words,
    bases: Words,
    key: int = ALL,
    bounds: tuple[int, int] = (4096, 8192),
) -> Words | None:
    """Returns the entry that an access makes, with the access counted as code counts it; None if
    it makes none."""
    number = find_or_insert_set(words, key, SETS)
    begin = ENTRIES + number * LENGTH
    entry = words[begin : begin + LENGTH]
    counted = fill_range_cache(words, access, bases, key, number, np.array(bounds, np.uint64))
    if not counted:
        return None
    entry[COUNTS + counted - 1] += 1
    return entry


def last_address(entry: Words) -> int:
    """Returns the greatest first address of an entry."""
    return int(entry[RangeCacheEntry.low] + SIZE * (entry[RangeCacheEntry.extent] - 1))


def test_first_addresses_are_aligned_in_an_unaligned_allocation() -> None:
    """In bytes 4097 to 8190, 32 words begin at 4100 at the earliest and end at 8188 at the
    latest."""
    entry = learn(empty(), group(1, SIZE), at(4096 + 36), bounds=(4097, 8191))
    assert entry is not None
    assert (entry[RangeCacheEntry.low], last_address(entry)) == (4100, 8188 - 128)
    assert learn(empty(), group(1, SIZE), at(4096 + 38), bounds=(4097, 8191)) is None


def test_the_range_is_shifted_by_the_offset_of_the_access() -> None:
    """Words at offset 6 are aligned if the address is 2 bytes above a multiple of 4."""
    entry = learn(empty(), group(1, SIZE, offset=6), at(4096 + 38))
    assert entry is not None
    assert (entry[RangeCacheEntry.low], last_address(entry)) == (4096 - 6, 8192 - 128 - 6)


def test_consecutive_words_of_all_lanes_may_begin_at_any_word_that_fits() -> None:
    entry = learn(empty(), group(1, SIZE), at(4096 + 36))
    assert entry is not None
    # 32 words end 128 bytes after the first address: the greatest is 8192 - 128.
    assert (entry[RangeCacheEntry.low], last_address(entry)) == (4096, 8192 - 128)
    assert entry[RangeCacheEntry.within] == 127
    assert entry[COUNTS:].nonzero()[0].tolist() == [9]  # 36 bytes into the unit


def test_only_active_lanes_must_fit() -> None:
    """The first 8 lanes end 32 bytes after the first address; others would be outside."""
    entry = learn(empty(), group(1, SIZE), at(8192 - 32), key=0xFF)
    assert entry is not None
    assert last_address(entry) == 8192 - 32
    assert learn(empty(), group(1, SIZE), at(8192 - 32)) is None


def test_inactive_runs_get_the_pitch_of_an_active_run() -> None:
    """Four runs of 8 lanes have a pitch of 256 bytes; the first two have active lanes."""
    entry = learn(empty(), group(4, SIZE), at(4096, 4352, 4608, 4864), key=0xFFFF)
    assert entry is not None
    assert entry[RangeCacheEntry.pitches : RangeCacheEntry.pitches + 4].tolist() == [
        0,
        256,
        512,
        768,
    ]
    assert entry[SAFE : SAFE + 4].tolist() == [0, 256, 0, 0]
    # The second run ends 256 + 32 bytes after the first one's begin.
    assert last_address(entry) == 8192 - 288


def test_equal_addresses_in_runs_at_distances_of_whole_units_share_one_counter() -> None:
    """Runs of equal addresses cost the same at any address if their pitch is whole units."""
    whole_units = learn(empty(), group(2, 0), at(4096 + 8, 4096 + 8 + 2 * UNIT))
    part_of_unit = learn(empty(), group(2, 0), at(4096 + 8, 4096 + 8 + 32))
    assert whole_units is not None
    assert part_of_unit is not None
    assert (whole_units[RangeCacheEntry.within], part_of_unit[RangeCacheEntry.within]) == (
        SIZE - 1,
        UNIT - 1,
    )
    assert whole_units[COUNTS:].nonzero()[0].tolist() == [0]
    assert part_of_unit[COUNTS:].nonzero()[0].tolist() == [2]


def test_more_frequent_pitches_replace_an_entry() -> None:
    """Two runs of 16 lanes have pitch 0 once, as at the border of an image, then pitch 256. The
    entry has counted one access, so the second of the others replaces it."""
    words = empty()
    assert learn(words, group(2, SIZE), at(4096, 4096)) is not None
    assert learn(words, group(2, SIZE), at(4160, 4416)) is None
    entry = learn(words, group(2, SIZE), at(4160, 4416))
    assert entry is not None
    assert entry[RangeCacheEntry.pitches : RangeCacheEntry.pitches + 2].tolist() == [0, 256]
    assert entry[COUNTS:].nonzero()[0].tolist() == [64 // SIZE]
    retired = words[ENTRIES + RETIRED_SETS.start * LENGTH :][:LENGTH]
    assert retired[RangeCacheEntry.key] == ALL
    assert retired[RangeCacheEntry.pitches : RangeCacheEntry.pitches + 2].tolist() == [0, 0]
    assert retired[COUNTS:].nonzero()[0].tolist() == [0]


def test_less_frequent_pitches_do_not_replace_an_entry() -> None:
    words = empty()
    for _ in range(3):
        assert learn(words, group(2, SIZE), at(4096, 4096)) is not None
    all_missed = [learn(words, group(2, SIZE), at(4160, 4416)) is None for _ in range(3)]
    assert all(all_missed)


def test_entries_are_replaced_up_to_the_number_of_retired_entries() -> None:
    """Each entry counts one access, so the second access with another pitch replaces it."""
    words = empty()
    assert learn(words, group(2, SIZE), at(4096, 4096)) is not None
    for pitch in range(1, len(RETIRED_SETS) + 2):
        bases_of_pitch = at(4096, 4096 + 256 * pitch)
        tries = [learn(words, group(2, SIZE), bases_of_pitch) is not None for _ in range(2)]
        assert tries == [False, pitch <= len(RETIRED_SETS)]


@pytest.mark.parametrize("runs", [1, 4])
def test_an_entry_holds_a_stride_found_at_run_time(runs: int) -> None:
    """With stride 12, the last lane of one run is 372 bytes after the first; of four runs with a
    pitch of 512 bytes, 3 x 512 + 84."""
    bases = at(*range(4096, 4096 + 512 * runs, 512))
    bases[STEP_AT] = 12
    words = empty()
    entry = learn(words, group(runs, ANY_STRIDE), bases)
    assert entry is not None
    assert entry[RangeCacheEntry.step] == 12
    assert last_address(entry) == 8192 - ({1: 372, 4: 3 * 512 + 84}[runs] + SIZE)
    bases[STEP_AT] = 8  # the entry is of another step
    assert learn(words, group(runs, ANY_STRIDE), bases) is None


def test_each_lane_can_be_a_run() -> None:
    """Rows of 6 lanes have a pitch of 64 bytes: the last lane is the second of the sixth row. Lanes
    have a common stride only if the rows are contiguous."""
    entry = learn(empty(), group(32, 0), rows_of_6(64))
    assert entry is not None
    assert entry[RangeCacheEntry.pitches : RangeCacheEntry.pitches + 8].tolist() == [
        0,
        4,
        8,
        12,
        16,
        20,
        64,
        68,
    ]
    assert last_address(entry) == 8192 - (5 * 64 + 4 + SIZE)
    assert (entry[RangeCacheEntry.step], entry[RangeCacheEntry.within]) == (0, UNIT - 1)
    consecutive = learn(empty(), group(32, 0), rows_of_6(6 * SIZE))
    assert consecutive is not None
    assert consecutive[RangeCacheEntry.step] == SIZE


def test_an_entry_whose_pitches_never_recur_is_given_up() -> None:
    """Each entry counts one access, so the second access with other pitches replaces it; when all
    retired entries are in use, misses are only counted, up to NEVER."""
    words = empty()
    for pitch in range(64, 64 + 4 * NEVER * SIZE, SIZE):
        learn(words, group(32, 0), rows_of_6(pitch), bounds=(4096, 1 << 20))
    assert words[FULL + RangeCacheEntry.misses] >= GIVEN_UP


def test_an_entry_alternating_between_allocations_is_given_up() -> None:
    """Each access moves the entry to its own allocation, NEVER times; then the entry is given up.
    (`learn` counts each access as code does.)"""
    words, misses = empty(), FULL + RangeCacheEntry.misses
    for number in range(NEVER + 1):
        start = 4096 if number % 2 else 1 << 16
        assert words[misses] < GIVEN_UP
        learn(words, group(1, SIZE), at(start), bounds=(start, start + 4096))
    assert words[misses] == GIVEN_UP


def test_an_entry_that_rarely_changes_its_allocation_is_not_given_up() -> None:
    """Of three accesses in each allocation, one moves the entry."""
    words, misses = empty(), FULL + RangeCacheEntry.misses
    for number in range(4 * NEVER):
        start = 4096 + 4096 * (number % 2)
        entry = learn(words, group(1, SIZE), at(start), bounds=(start, start + 4096))
        assert entry is not None
        entry[COUNTS] += 2
    assert words[misses] < GIVEN_UP


def test_a_group_in_no_allocation_is_given_up() -> None:
    words = empty()
    for _ in range(NEVER):
        assert learn(words, group(1, SIZE, offset=4096), at(4096), bounds=(4096, 8192)) is None
    assert words[FULL + RangeCacheEntry.misses] == GIVEN_UP


@pytest.mark.parametrize(
    ("access", "bases", "bounds"),
    [
        (group(1, SIZE), at(4098), (4096, 8192)),  # not aligned
        (group(2, SIZE), at(4096, 4096 + 66), (4096, 8192)),  # the second run is not
        (group(1, SIZE), at(4096), (4100, 8192)),  # begins outside
        (group(1, SIZE, offset=4096), at(4096), (4096, 8192)),  # ends outside
        (group(2, SIZE), at(4096, 4096 + (1 << 41)), (4096, 1 << 42)),  # too far
        (group(1, SIZE), at(4096), (0, 0)),  # no allocation is known yet
    ],
)
def test_misaligned_or_out_of_bounds_accesses_have_no_entry(
    access: Words, bases: Words, bounds: tuple[int, int]
) -> None:
    assert learn(empty(), access, bases, bounds=bounds) is None


def test_an_access_with_other_pitches_leaves_the_entry_unchanged() -> None:
    """An entry's counts are for its pitches only; the access is counted as a miss."""
    words = empty()
    assert learn(words, group(2, SIZE), at(4096, 4096 + 256)) is not None
    before = words.copy()
    learn(words, group(2, SIZE), at(4096, 4096 + 512))
    before[FULL + RangeCacheEntry.misses] = 1
    assert (words == before).all()


def test_an_access_whose_key_is_new_is_not_counted_by_code() -> None:
    """Code looked the key up before it had a number, so it has no index to count at."""
    words, bounds = empty(), np.array((4096, 8192), np.uint64)
    assert fill_range_cache(words, group(1, SIZE), at(4096), 0xFF, NO_SET, bounds) == 0
    assert fill_range_cache(words, group(1, SIZE), at(4096), 0xFF, FIRST_SET, bounds) == 1


def test_a_cache_belongs_to_one_group() -> None:
    words = empty()
    words[HEADER + RangeCacheHeader.leader] = HEADER + 1
    assert learn(words, group(1, SIZE), at(4096)) is None


def test_a_full_bucket_rejects_keys() -> None:
    words = empty()
    numbers = [find_or_insert_set(words, key, SETS) for key in range(1, SETS)]
    assert numbers == list(range(FIRST_SET, FIRST_SET + SETS - 1))
    assert find_or_insert_set(words, 1000, SETS) == -1
    assert find_or_insert_set(words, 3, SETS) == FIRST_SET + 2
    assert find_or_insert_set(words, 5 << 32, SETS) == -1  # no lane is in its mask


def test_all_lanes_of_each_layout_have_a_key() -> None:
    """A warp has at most 32 layouts, one for each lane at which a row of threads can begin; the
    keys of full warps of all layouts fit their buckets."""
    words = np.zeros(used_at(MANY_SETS) + 1, np.int64)
    words[0], words[used_at(MANY_SETS)] = ALL, FIRST_SET
    numbers = [
        find_or_insert_set(words, ALL | layout << LAYOUT_SHIFT, MANY_SETS) for layout in range(32)
    ]
    assert numbers[0] == FULL_SET
    assert -1 not in numbers
    assert len(set(numbers)) == 32
