"""Checks simulated caches: hits, replacement and stores by hand and against a plain LRU, and
compiled code against Python."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from rule_costs import ALL, accesses

from warploom.cost.caches import (
    BY_WORDS,
    DROPS_L1,
    THROUGH_CONSTANT,
    THROUGH_L1,
    WRITES,
    CacheEntry,
    CacheHierarchy,
    count_cached,
)
from warploom.cost.fields import FIELDS, CostRecord
from warploom.simt.lane_counts import register_jitables

Words = npt.NDArray[np.int64]

register_jitables()
_numba: Any = numba
COMPILED = _numba.cfunc(
    "int64(CPointer(uint64), int64, int64, CPointer(int64), CPointer(int64), int64, int64, int64)",
    nopython=True,
)(count_cached).ctypes


def count_compiled(*arguments: Any) -> None:
    """Calls the machine code of `count_cached`, with pointers to arrays."""
    COMPILED(
        *(
            value.ctypes.data_as(kind) if isinstance(value, np.ndarray) else value
            for value, kind in zip(arguments, COMPILED.argtypes, strict=True)
        )
    )


def caches(l1_sets: int = 2, l1_ways: int = 2, l2_sets: int = 4, sms: int = 2) -> Words:
    """Returns the array of small caches: L1 with `l1_sets` and `l1_ways` per SM, a two-way L2, a
    constant cache of one line."""
    hierarchy = CacheHierarchy(np.zeros(CacheHierarchy.WORDS, np.int64), 0)
    hierarchy.sms = sms
    end = CacheHierarchy.WORDS
    for level, sets, ways, copies in (
        (hierarchy.l1, l1_sets, l1_ways, sms),
        (hierarchy.constant, 1, 1, sms),
        (hierarchy.l2, l2_sets, 2, 1),
    ):
        level.first_entry, level.sets, level.ways = end, sets, ways
        level.words_per_sm = sets * ways * CacheEntry.WORDS
        end += level.words_per_sm * copies
    return np.concatenate([hierarchy.words, np.zeros(end - CacheHierarchy.WORDS, np.int64)])


def look_up(
    caches_state: Words, addresses: list[int], path: int = THROUGH_L1, block: int = 0, size: int = 4
) -> dict[str, int]:
    """Returns the hits and misses of one access, in a lane for each address."""
    record = np.zeros(CostRecord.WORDS, np.int64)
    where = np.zeros(32, np.uint64)
    where[: len(addresses)] = addresses
    count_cached(where, (1 << len(addresses)) - 1, size, record, caches_state, path, block, 0)
    return {name: int(n) for name, n in zip(FIELDS, record, strict=False) if n}


def test_a_sector_misses_once_and_hits_after() -> None:
    caches_state = caches()
    assert look_up(caches_state, [0, 4, 32]) == {"l1_misses": 2, "l2_misses": 2}
    assert look_up(caches_state, [0, 4, 32]) == {"l1_hits": 2}
    assert look_up(caches_state, [64]) == {
        "l1_misses": 1,
        "l2_misses": 1,
    }  # the line is there, not the sector


def test_each_sm_has_its_own_l1_and_all_share_l2() -> None:
    caches_state = caches()
    look_up(caches_state, [0], block=0)
    assert look_up(caches_state, [0], block=1) == {"l1_misses": 1, "l2_hits": 1}
    assert look_up(caches_state, [0], block=2) == {"l1_hits": 1}  # block 2 is on SM 0 again


def test_the_least_recently_used_line_of_a_set_is_replaced() -> None:
    """Lines 0, 2 and 4 share one of two two-way sets."""
    caches_state = caches()
    look_up(caches_state, [0])
    look_up(caches_state, [256])
    look_up(caches_state, [0])
    look_up(caches_state, [512])  # takes the place of line 2
    assert "l1_hits" in look_up(caches_state, [0])
    assert "l1_misses" in look_up(caches_state, [256])


def test_paths_past_l1_and_through_constants() -> None:
    caches_state = caches()
    assert look_up(caches_state, [0], path=0) == {"l2_misses": 1}
    assert look_up(caches_state, [0], path=THROUGH_CONSTANT) == {"l1_misses": 1, "l2_hits": 1}
    assert look_up(caches_state, [0], path=THROUGH_CONSTANT) == {"l1_hits": 1}
    assert look_up(caches_state, [128], path=THROUGH_CONSTANT)["l1_misses"] == 1
    assert (
        look_up(caches_state, [0], path=THROUGH_CONSTANT)["l1_misses"] == 1
    )  # the one line was replaced


def test_stores_look_up_l2_and_may_invalidate_l1() -> None:
    caches_state = caches()
    look_up(caches_state, [0])
    assert look_up(caches_state, [0], path=WRITES) == {"l2_hits": 1}
    assert look_up(caches_state, [0]) == {"l1_hits": 1}
    look_up(caches_state, [0], path=WRITES | DROPS_L1)
    assert look_up(caches_state, [0]) == {"l1_misses": 1, "l2_hits": 1}


def test_words_of_local_memory_are_looked_up_in_one_line_each() -> None:
    caches_state = caches(l1_ways=4)
    local = THROUGH_L1 | BY_WORDS
    assert look_up(caches_state, [0], local, size=16) == {"l1_misses": 4, "l2_misses": 4}
    assert look_up(caches_state, [128], local, size=8) == {"l1_hits": 2}
    assert look_up(caches_state, [384], local, size=4) == {"l1_hits": 1}  # the fourth word
    assert look_up(caches_state, [512], local, size=2) == {"l1_misses": 1, "l2_misses": 1}


def test_a_device_without_caches_counts_nothing() -> None:
    caches_state = caches(l1_sets=0, l2_sets=0)
    assert look_up(caches_state, [0, 512]) == {}


def test_addresses_count_from_the_origin() -> None:
    caches_state, moved = caches(), caches()
    moved[CacheHierarchy.origin] = 1 << 40
    for step in (0, 256, 512, 0, 768, 256):
        assert look_up(caches_state, [step]) == look_up(moved, [(1 << 40) + step])


@given(st.lists(accesses(), min_size=1, max_size=6), st.integers(0, 3))
def test_hits_and_misses_are_those_of_a_plain_lru(
    requests: list[tuple[list[int], int, int]], block: int
) -> None:
    """The model has a list for each set: lines in order of use, each with its sectors."""
    caches_state, sets = caches(4, 2), [list[tuple[int, set[int]]]() for _ in range(4)]
    for addresses, _, size in requests:
        hits = misses = 0
        for sector in dict.fromkeys(a // 32 for a in addresses):
            line = sector // 4
            ways = sets[line % 4]
            found = next((way for way in ways if way[0] == line), None)
            if found is None:
                found = (line, set[int]())
            else:
                ways.remove(found)
            if sector in found[1]:
                hits += 1
            else:
                misses += 1
            found[1].add(sector)
            ways.append(found)
            del ways[:-2]
        counts = look_up(caches_state, addresses, block=block, size=size)
        assert (counts.get("l1_hits", 0), counts.get("l1_misses", 0)) == (hits, misses)


@given(accesses(), st.integers(0, 3), st.sampled_from([0, 1, 4, 16, 24]))
def test_compiled_caches_count_as_python_does(
    case: tuple[list[int], int, int], block: int, path: int
) -> None:
    addresses, mask, size = case
    where = np.array(addresses, np.uint64)
    plain, compiled = caches(), caches()
    rows = np.zeros((2, CostRecord.WORDS), np.int64)
    for lanes in (mask, ALL):
        count_cached(where, lanes, size, rows[0], plain, path, block, 0)
        count_compiled(where, lanes, size, rows[1], compiled, path, block, 0)
    assert rows[0].tolist() == rows[1].tolist()
    assert plain.tolist() == compiled.tolist()
