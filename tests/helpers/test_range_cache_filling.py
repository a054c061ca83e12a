"""Entries of access caches, worked out by hand (`abi.range_cache`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from warploom.abi.range_cache import (
    ANY_STRIDE,
    EXTENT,
    FEW_SETS,
    GIVEN_UP,
    HEADER,
    KEY,
    LAYOUT_SHIFT,
    LEADER,
    LOW,
    MANY_SETS,
    MISSES,
    PITCHES,
    RETIRED,
    STEP,
    STEP_AT,
    WITHIN,
    counts_at,
    entries_of,
    entry_words,
    safe_at,
)
from warploom.helpers.range_cache_filling import NEVER, find_set, learn_access

Words = npt.NDArray[np.int64]

ALL = 0xFFFFFFFF
UNIT, SIZE = 128, 4
SETS, MOST = FEW_SETS, 16
"""Keys, and for how many runs an entry has room."""
LENGTH = entry_words(UNIT, SIZE, MOST)
SAFE, COUNTS = safe_at(MOST), counts_at(MOST)
PLACE = SETS
"""Where the one cache stands, behind the keys."""


def empty() -> Words:
    words = np.zeros(SETS + HEADER + entries_of(SETS) * LENGTH, np.int64)
    words[0] = ALL
    return words


def group(runs: int, stride: int, offset: int = 0) -> Words:
    """One access of words at an offset."""
    known = runs, stride, SIZE, UNIT, 1, SETS, MOST
    return np.array([*known, PLACE, offset], np.int64)


def at(*firsts: int) -> Words:
    return np.array([*firsts, *[0] * (STEP_AT + 1 - len(firsts))], np.int64)


def rows_of_6(pitch: int) -> Words:
    """Where lanes reach that are 6 to a row of words, rows a pitch apart."""
    return at(*(4096 + lane // 6 * pitch + lane % 6 * SIZE for lane in range(32)))


def learned(
    words: Words, one: Words, bases: Words, key: int = ALL, bounds: tuple[int, int] = (4096, 8192)
) -> Words | None:
    """The entry that is made, which then counts the access; None where none is."""
    number = find_set(words, key, SETS)
    begin = PLACE + HEADER + number * LENGTH
    entry = words[begin : begin + LENGTH]
    counted = learn_access(words, one, bases, key, number, np.array(bounds, np.uint64))
    if not counted:
        return None
    entry[COUNTS + counted - 1] += 1
    return entry


def last_place(entry: Words) -> int:
    """Where the first run may begin at last."""
    return int(entry[LOW] + SIZE * (entry[EXTENT] - 1))


def test_places_are_aligned_in_an_allocation_that_is_not() -> None:
    """Bytes 4097 to 8190 are known: 32 words begin at 4100 at first, and end at 8188 at last."""
    entry = learned(empty(), group(1, SIZE), at(4096 + 36), bounds=(4097, 8191))
    assert entry is not None
    assert (entry[LOW], last_place(entry)) == (4100, 8188 - 128)
    assert learned(empty(), group(1, SIZE), at(4096 + 38), bounds=(4097, 8191)) is None


def test_an_address_is_as_far_from_a_place_as_the_offset_makes_good() -> None:
    """At an offset of 6 words are aligned where the address is 2 bytes behind a multiple of 4."""
    entry = learned(empty(), group(1, SIZE, offset=6), at(4096 + 38))
    assert entry is not None
    assert (entry[LOW], last_place(entry)) == (4096 - 6, 8192 - 128 - 6)


def test_consecutive_words_of_all_lanes_may_begin_wherever_they_fit() -> None:
    entry = learned(empty(), group(1, SIZE), at(4096 + 36))
    assert entry is not None
    # 32 words end 128 bytes behind the first: the last place is 8192 - 128.
    assert (entry[LOW], last_place(entry)) == (4096, 8192 - 128)
    assert entry[WITHIN] == 127
    assert entry[COUNTS:].nonzero()[0].tolist() == [9]  # 36 bytes into the unit


def test_only_active_lanes_must_fit() -> None:
    """The first 8 lanes end 32 bytes behind the first; others would be outside."""
    entry = learned(empty(), group(1, SIZE), at(8192 - 32), key=0xFF)
    assert entry is not None
    assert last_place(entry) == 8192 - 32
    assert learned(empty(), group(1, SIZE), at(8192 - 32)) is None


def test_runs_have_pitches_and_those_without_a_lane_borrow_one() -> None:
    """Four runs of 8 lanes, 256 bytes apart, of which the first two have lanes."""
    entry = learned(empty(), group(4, SIZE), at(4096, 4352, 4608, 4864), key=0xFFFF)
    assert entry is not None
    assert entry[PITCHES : PITCHES + 4].tolist() == [0, 256, 512, 768]
    assert entry[SAFE : SAFE + 4].tolist() == [0, 256, 0, 0]
    # The second run ends 256 + 32 bytes behind the first one's begin.
    assert last_place(entry) == 8192 - 288


def test_where_lanes_agree_their_place_does_not_matter() -> None:
    """Runs that lie whole units apart cost the same wherever they are; others do not."""
    apart = learned(empty(), group(2, 0), at(4096 + 8, 4096 + 8 + 2 * UNIT))
    beside = learned(empty(), group(2, 0), at(4096 + 8, 4096 + 8 + 32))
    assert apart is not None
    assert beside is not None
    assert (apart[WITHIN], beside[WITHIN]) == (SIZE - 1, UNIT - 1)
    assert apart[COUNTS:].nonzero()[0].tolist() == [0]
    assert beside[COUNTS:].nonzero()[0].tolist() == [2]


def test_what_comes_more_often_takes_the_place_of_what_came_first() -> None:
    """Rows of 16 lanes: two are at the same place, as where an image begins, then all are 256 bytes
    apart. The entry has counted one, so the second of the others takes its place."""
    words = empty()
    assert learned(words, group(2, SIZE), at(4096, 4096)) is not None
    assert learned(words, group(2, SIZE), at(4160, 4416)) is None
    entry = learned(words, group(2, SIZE), at(4160, 4416))
    assert entry is not None
    assert entry[PITCHES : PITCHES + 2].tolist() == [0, 256]
    assert entry[COUNTS:].nonzero()[0].tolist() == [64 // SIZE]
    kept = words[PLACE + HEADER + (SETS + 1) * LENGTH :][:LENGTH]
    assert kept[KEY] == ALL
    assert kept[PITCHES : PITCHES + 2].tolist() == [0, 0]
    assert kept[COUNTS:].nonzero()[0].tolist() == [0]


def test_what_comes_less_often_than_what_is_there_does_not() -> None:
    words = empty()
    for _ in range(3):
        assert learned(words, group(2, SIZE), at(4096, 4096)) is not None
    rarer = [learned(words, group(2, SIZE), at(4160, 4416)) is None for _ in range(3)]
    assert all(rarer)


def test_as_many_are_replaced_as_there_is_room_for() -> None:
    """Each entry counts one access, so the second one with another pitch replaces it."""
    words = empty()
    assert learned(words, group(2, SIZE), at(4096, 4096)) is not None
    for pitch in range(1, RETIRED + 2):
        places = at(4096, 4096 + 256 * pitch)
        tries = [learned(words, group(2, SIZE), places) is not None for _ in range(2)]
        assert tries == [False, pitch <= RETIRED]


@pytest.mark.parametrize("runs", [1, 4])
def test_a_step_that_code_finds_is_kept(runs: int) -> None:
    """Lanes 12 bytes apart: of one run the last begins 372 bytes behind the first; of four, 512
    bytes apart, 3 x 512 and 84."""
    bases = at(*range(4096, 4096 + 512 * runs, 512))
    bases[STEP_AT] = 12
    words = empty()
    entry = learned(words, group(runs, ANY_STRIDE), bases)
    assert entry is not None
    assert entry[STEP] == 12
    assert last_place(entry) == 8192 - ({1: 372, 4: 3 * 512 + 84}[runs] + SIZE)
    bases[STEP_AT] = 8  # the entry is of another step
    assert learned(words, group(runs, ANY_STRIDE), bases) is None


def test_each_lane_can_be_a_run() -> None:
    """Rows of 6 lanes 64 bytes apart: the last lane is the second of the sixth row. Only where rows
    lie side by side do all lanes follow."""
    entry = learned(empty(), group(32, 0), rows_of_6(64))
    assert entry is not None
    assert entry[PITCHES : PITCHES + 8].tolist() == [0, 4, 8, 12, 16, 20, 64, 68]
    assert last_place(entry) == 8192 - (5 * 64 + 4 + SIZE)
    assert (entry[STEP], entry[WITHIN]) == (0, UNIT - 1)
    following = learned(empty(), group(32, 0), rows_of_6(6 * SIZE))
    assert following is not None
    assert following[STEP] == SIZE


def test_what_never_comes_again_is_given_up() -> None:
    """The first is counted once, so the second of the others replaces it, and so on; when there is
    no room for more, others are only counted, until there were NEVER of them."""
    words = empty()
    for pitch in range(64, 64 + 4 * NEVER * SIZE, SIZE):
        learned(words, group(32, 0), rows_of_6(pitch), bounds=(4096, 1 << 20))
    assert words[PLACE + HEADER + MISSES] >= GIVEN_UP


def test_what_alternates_between_allocations_is_given_up() -> None:
    """Each access makes the entry anew, for its own allocation: NEVER times, then code looks no
    more. (`learned` counts each access as code does.)"""
    words, misses = empty(), PLACE + HEADER + MISSES
    for number in range(NEVER + 1):
        place = 4096 if number % 2 else 1 << 16
        assert words[misses] < GIVEN_UP
        learned(words, group(1, SIZE), at(place), bounds=(place, place + 4096))
    assert words[misses] == GIVEN_UP


def test_what_moves_seldom_is_kept() -> None:
    """Three accesses in each allocation: of all that are counted, a third makes the entry anew."""
    words, misses = empty(), PLACE + HEADER + MISSES
    for number in range(4 * NEVER):
        place = 4096 + 4096 * (number % 2)
        entry = learned(words, group(1, SIZE), at(place), bounds=(place, place + 4096))
        assert entry is not None
        entry[COUNTS] += 2
    assert words[misses] < GIVEN_UP


def test_a_group_in_no_allocation_is_given_up() -> None:
    words = empty()
    for _ in range(NEVER):
        assert learned(words, group(1, SIZE, offset=4096), at(4096), bounds=(4096, 8192)) is None
    assert words[PLACE + HEADER + MISSES] == GIVEN_UP


@pytest.mark.parametrize(
    ("one", "bases", "bounds"),
    [
        (group(1, SIZE), at(4098), (4096, 8192)),  # not aligned
        (group(2, SIZE), at(4096, 4096 + 66), (4096, 8192)),  # the second run is not
        (group(1, SIZE), at(4096), (4100, 8192)),  # begins outside
        (group(1, SIZE, offset=4096), at(4096), (4096, 8192)),  # ends outside
        (group(2, SIZE), at(4096, 4096 + (1 << 41)), (4096, 1 << 42)),  # too far
        (group(1, SIZE), at(4096), (0, 0)),  # no allocation is known yet
    ],
)
def test_others_have_no_entry(one: Words, bases: Words, bounds: tuple[int, int]) -> None:
    assert learned(empty(), one, bases, bounds=bounds) is None


def test_an_entry_keeps_its_pitches() -> None:
    """Its counts are of those; accesses with others are not known."""
    words = empty()
    assert learned(words, group(2, SIZE), at(4096, 4096 + 256)) is not None
    before = words.copy()
    learned(words, group(2, SIZE), at(4096, 4096 + 512))
    before[PLACE + HEADER + MISSES] = 1
    assert (words == before).all()


def test_lanes_whose_key_is_new_are_not_counted_yet() -> None:
    """Code looked the key up before it had a number, and so does not know where to count."""
    words, bounds = empty(), np.array((4096, 8192), np.uint64)
    assert learn_access(words, group(1, SIZE), at(4096), 0xFF, SETS, bounds) == 0
    assert learn_access(words, group(1, SIZE), at(4096), 0xFF, 1, bounds) == 1


def test_a_cache_is_of_one_group() -> None:
    words = empty()
    words[PLACE + LEADER] = PLACE + 1
    assert learned(words, group(1, SIZE), at(4096)) is None


def test_there_are_so_many_keys() -> None:
    words = empty()
    assert [find_set(words, key, SETS) for key in range(1, SETS)] == list(range(1, SETS))
    assert find_set(words, 1000, SETS) == -1
    assert find_set(words, 3, SETS) == 3
    assert find_set(words, 5 << 32, SETS) == -1  # no lane is in its mask


def test_all_lanes_of_each_layout_have_a_key() -> None:
    """A warp has at most 32 layouts, one for each lane at which a row of threads can begin: none of
    them finds its bucket full."""
    words = np.zeros(MANY_SETS, np.int64)
    words[0] = ALL
    numbers = [find_set(words, ALL | layout << LAYOUT_SHIFT, MANY_SETS) for layout in range(32)]
    assert numbers[0] == 0
    assert -1 not in numbers
    assert len(set(numbers)) == 32
