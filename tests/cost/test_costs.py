"""Checks the rules of memory access by hand, against counts by sets, and compiled by Numba against
Python."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_costs import ALL, Rule, accesses, active, cost, strided

from warploom.cost.atomics import count_passes
from warploom.cost.banks import shared_32_banks
from warploom.cost.coalescing import global_by_sectors, local_by_sectors
from warploom.cost.constant import constant_by_warp
from warploom.cost.costliest_access import store_example
from warploom.cost.deferred_atomics import LENGTH, AccessCounts, count_deferred_access
from warploom.cost.device_rules import RULES
from warploom.cost.fields import FIELDS, CostRecord
from warploom.cost.pattern_table import SLOTS
from warploom.helpers.table import count_compiled
from warploom.simt.lane_counts import Ints

COMPILED = {name: partial(count_compiled, name) for name in RULES}


@pytest.mark.parametrize(
    ("stride", "size", "start", "sectors", "lines"),
    [
        (4, 4, 0, 4, 1),  # consecutive floats: the whole of one line
        (4, 4, 4, 5, 2),  # shifted by one element: one sector and one line more
        (4, 4, 64, 4, 2),  # half a line off: as many sectors, over two lines
        (8, 8, 0, 8, 2),
        (16, 16, 0, 16, 4),
        (32, 32, 0, 32, 8),
        (8, 4, 0, 8, 2),  # every second float
        (32, 4, 0, 32, 8),
        (128, 4, 0, 32, 32),  # a column of a matrix: a sector and a line each
        (0, 4, 12, 1, 1),  # one address for all
        (1, 1, 0, 1, 1),
        (2, 2, 0, 2, 1),
        (-4, 4, 124, 4, 1),  # falling addresses cost what rising ones do
    ],
)
def test_sectors_and_lines_of_a_strided_global_access(
    stride: int, size: int, start: int, sectors: int, lines: int
) -> None:
    assert cost(global_by_sectors, strided(stride, (1 << 40) + start), ALL, size) == {
        "requests": 1,
        "sectors": sectors,
        "lines": lines,
        "transactions": sectors,
        "transactions_32": sectors,
        "bytes_requested": 32 * size,
        "bytes_moved": 32 * sectors,
    }


def test_lanes_that_are_off_touch_nothing() -> None:
    addresses = strided(4)
    addresses[8:] = 1
    assert cost(global_by_sectors, addresses, 0xFF, 4)["sectors"] == 1
    assert cost(global_by_sectors, addresses, 0b101, 4)["bytes_requested"] == 8


def test_alternating_halves_touch_two_sectors() -> None:
    addresses = [1024 * (lane % 2) + 4 * (lane // 2) for lane in range(32)]
    assert (
        cost(global_by_sectors, addresses, ALL, 4)["sectors"] == 4
    )  # 16 floats = 2 sectors, twice
    assert cost(global_by_sectors, addresses, ALL, 4)["lines"] == 2


@pytest.mark.parametrize(
    ("size", "sectors", "lines"), [(1, 4, 1), (4, 4, 1), (8, 8, 2), (16, 16, 4), (32, 32, 8)]
)
def test_local_access_at_one_index_fills_whole_lines(size: int, sectors: int, lines: int) -> None:
    found = cost(local_by_sectors, strided(4, 256), ALL, size)
    assert (found["sectors"], found["lines"]) == (sectors, lines)
    assert found["bytes_requested"] == 32 * size


def test_local_access_at_two_indices_that_overlap() -> None:
    # Lanes 0 and 8 read 16 bytes from rows 0 and 1, in different sector columns: 4 sectors each;
    # lane 1 reads rows 2 to 5 in the column of lane 0, of which rows 2 and 3 are counted already.
    addresses = [0] * 32
    addresses[0], addresses[1], addresses[8] = 0, 2 * 128 + 4, 128 + 32
    found = cost(local_by_sectors, addresses, 0b1_0000_0011, 16)
    assert found["sectors"] == 4 + 2 + 4
    assert found["lines"] == 6  # rows 0 to 5


@pytest.mark.parametrize(
    ("stride", "size", "wavefronts", "conflicts"),
    [
        (4, 4, 1, 0),
        (0, 4, 1, 0),  # broadcast
        (8, 4, 2, 1),  # two-way conflict
        (12, 4, 1, 0),  # an odd stride of words meets no bank twice
        (16, 4, 4, 3),
        (128, 4, 32, 31),  # a column of a 32 x 32 tile of floats
        (132, 4, 1, 0),  # the same, padded by one
        (1, 1, 1, 0),
        (2, 2, 1, 0),
        (8, 8, 2, 0),  # half-warps: what the width needs
        (0, 8, 2, 0),
        (16, 8, 4, 2),
        (16, 16, 4, 0),  # quarter-warps
        (32, 16, 8, 4),
        (-4, 4, 1, 0),
    ],
)
def test_wavefronts_of_a_strided_shared_access(
    stride: int, size: int, wavefronts: int, conflicts: int
) -> None:
    found = cost(shared_32_banks, strided(stride, 4096 - 128), ALL, size)
    assert found["wavefronts"] == found["transactions"] == wavefronts
    assert found.get("bank_conflicts", 0) == conflicts
    assert found["bytes_requested"] == 32 * size


def test_lanes_on_one_word_are_served_together() -> None:
    addresses = [4 * (lane // 2) for lane in range(32)]
    found = cost(shared_32_banks, addresses, ALL, 2)
    assert found["wavefronts"] == 1
    assert found["bytes_moved"] == 16 * 4


def test_half_a_warp_of_eight_bytes_needs_one_wavefront() -> None:
    found = cost(shared_32_banks, strided(8, 0), 0xFFFF, 8)
    assert (found["wavefronts"], found.get("bank_conflicts", 0)) == (1, 0)


def test_constant_reads_take_a_pass_for_each_word() -> None:
    assert cost(constant_by_warp, strided(0), ALL, 4)["passes"] == 1
    assert cost(constant_by_warp, strided(4), ALL, 4)["passes"] == 32
    assert cost(constant_by_warp, strided(1, 0), ALL, 1) == {
        "requests": 1,
        "sectors": 1,
        "lines": 1,
        "transactions": 8,
        "bytes_requested": 32,
        "bytes_moved": 32,
        "passes": 8,
    }


def test_atomics_take_a_pass_for_each_lane_on_the_busiest_address() -> None:
    assert cost(count_passes, strided(0), ALL, 4) == {"passes": 32}
    assert cost(count_passes, strided(4), ALL, 4) == {"passes": 1}
    assert cost(count_passes, [4 * (lane % 4) for lane in range(32)], ALL, 4) == {"passes": 8}
    assert cost(count_passes, strided(0), 0x80000001, 4) == {"passes": 2}


# ---- any addresses: the same numbers counted with sets ------------------------------------------


@given(accesses())
def test_global_costs_are_those_of_sets(case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    touched = {b for a in active(addresses, mask) for b in range(a, a + size)}
    found = cost(global_by_sectors, addresses, mask, size)
    assert found["sectors"] == len({b // 32 for b in touched})
    assert found["lines"] == len({b // 128 for b in touched})


@given(accesses())
def test_local_costs_are_those_of_sets(case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    words = max(1, size // 4)
    touched = {a + 128 * k for a in active(addresses, mask) for k in range(words)}
    found = cost(local_by_sectors, addresses, mask, size)
    assert found["sectors"] == len({b // 32 for b in touched})
    assert found["lines"] == len({b // 128 for b in touched})


@given(accesses())
def test_shared_costs_are_those_of_sets(case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    lanes = 32 // max(1, size // 4)
    groups = [
        {
            word
            for lane in range(first, first + lanes)
            if mask >> lane & 1
            for word in range(addresses[lane] // 4, (addresses[lane] + size + 3) // 4)
        }
        for first in range(0, 32, lanes)
    ]
    ways = [max(Counter(w % 32 for w in words).values()) for words in groups if words]
    found = cost(shared_32_banks, addresses, mask, size)
    assert found["wavefronts"] == sum(ways)
    assert found.get("bank_conflicts", 0) == sum(ways) - len(ways)
    assert found["bytes_moved"] == 4 * len(set.union(*groups))


@given(accesses())
def test_passes_are_those_of_sets(case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    on = active(addresses, mask)
    assert cost(count_passes, addresses, mask, size)["passes"] == max(Counter(on).values())
    unit = max(4, size)
    assert cost(constant_by_warp, addresses, mask, size)["passes"] == len({a // unit for a in on})


@pytest.mark.parametrize("name", RULES)
@given(case=accesses())
def test_compiled_rules_count_as_python_does(name: str, case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    rule: Rule = RULES[name]
    # Of a pattern the third argument is the number of its place; of a window that of bytes.
    third = size % SLOTS if name.endswith("_pattern") else size
    assert cost(COMPILED[name], addresses, mask, third) == cost(rule, addresses, mask, third)


@pytest.mark.parametrize("name", ["shared_32_banks", "global_by_sectors", "count_passes"])
@given(st.lists(accesses(), min_size=2, max_size=3))
def test_the_costs_of_accesses_add_up(name: str, cases: list[tuple[list[int], int, int]]) -> None:
    rows: list[Ints] = []
    for rule in (COMPILED[name], RULES[name]):
        rows.append(np.zeros(AccessCounts.WORDS, np.int64))
        for addresses, mask, size in cases:
            rule(np.array(addresses, np.uint64), mask, size, rows[-1])
    compiled, plain = (row[: len(FIELDS)].tolist() for row in rows)
    assert compiled == plain


@st.composite
def lists(draw: st.DrawFn) -> npt.NDArray[np.uint8]:
    """Draws words in a window of 256, by access and lane: random ones, few distinct ones, or few
    rows or banks."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    words = rng.integers(0, draw(st.sampled_from([1, 2, 8, 33, 256])), (LENGTH, 32))
    words = words * draw(st.sampled_from([1, 7, 8, 31, 32])) + draw(st.integers(0, 255))
    return words[: draw(st.integers(1, LENGTH))].astype(np.uint8)


def deferred_list(words: npt.NDArray[np.uint8]) -> Ints:
    """Returns the counters of an access with these accesses in its list."""
    row = AccessCounts(np.zeros(AccessCounts.WORDS, np.int64), 0)
    row.deferred, row.window = len(words), 384
    row.keys.view(np.uint8)[: words.size] = words.ravel()
    return row.words


@given(lists())
def test_deferred_accesses_cost_what_each_does(words: npt.NDArray[np.uint8]) -> None:
    """Counted together, accesses cost what they cost alone; the example is the first of the
    costliest."""
    rows = [deferred_list(words), np.zeros(AccessCounts.WORDS, np.int64)]
    COMPILED["count_deferred_access"](np.zeros(32, np.uint64), ALL, 0, rows[0])
    for one in words:
        addresses = 384 + 4 * one.astype(np.uint64)
        before = int(rows[1][CostRecord.transactions])
        for rule in (shared_32_banks, count_passes):
            rule(addresses, ALL, 4, rows[1])
        store_example(addresses, ALL, before, rows[1])
    assert rows[0][: CostRecord.WORDS].tolist() == rows[1][: CostRecord.WORDS].tolist()
    assert rows[0][AccessCounts.deferred] == 0


@pytest.mark.parametrize("count", [COMPILED["count_deferred_access"], count_deferred_access])
def test_deferred_accesses_by_hand(count: Rule) -> None:
    """Counts three accesses: one word of each bank; one word in all lanes; two words of each of 16
    banks."""
    lanes = np.arange(32)
    row = deferred_list(np.array([lanes, 0 * lanes + 9, lanes // 2 * 2 + lanes % 2 * 32], np.uint8))
    count(np.zeros(32, np.uint64), ALL, 0, row)
    costs = CostRecord(row, 0)
    assert (costs.requests, costs.wavefronts, costs.passes) == (3, 1 + 1 + 2, 1 + 32 + 1)
    assert (costs.lines, costs.sectors, costs.bytes_moved) == (1 + 1 + 2, 4 + 1 + 8, 4 * 65)
    assert (costs.bank_conflicts, costs.transactions) == (0 + 0 + 1, 4)
    assert costs.bytes_requested == 3 * 32 * 4
    assert (costs.example_cost, costs.example_mask) == (2, ALL)
    assert costs.example_addresses[:3].tolist() == [384, 384 + 4 * 32, 384 + 4 * 2]
