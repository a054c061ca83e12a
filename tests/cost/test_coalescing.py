"""Checks the rules of global and local memory before compute capability 5.0 against the guide's
figures, and against sets of bytes.

Figures: CUDA C Programming Guide 4.2, figure F-1 (a warp of 4-byte words at address 128).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_costs import ALL, Rule, accesses, active, cost, strided

from warploom.cost.coalescing import (
    global_by_lines,
    global_by_sectors,
    global_by_segments,
    local_by_lines,
)
from warploom.cost.segments import (
    global_by_halves,
    global_in_order,
    local_by_halves,
    local_in_order,
)

IN_ORDER = [128 + 4 * lane for lane in range(32)]
SWAPPED = [128 + 4 * (lane ^ 1) for lane in range(32)]
ONE_OFF = [132 + 4 * lane for lane in range(32)]


def sizes(rule: Rule, addresses: list[int], mask: int = ALL, size: int = 4) -> dict[int, int]:
    """Returns the number of transactions by their size in bytes."""
    counts = cost(rule, addresses, mask, size)
    transactions_by_size = {n: counts.get(f"transactions_{n}", 0) for n in (32, 64, 128)}
    assert counts["transactions"] == sum(transactions_by_size.values())
    assert counts["bytes_moved"] == sum(n * count for n, count in transactions_by_size.items())
    return {n: count for n, count in transactions_by_size.items() if count}


@pytest.mark.parametrize(
    ("rule", "addresses", "transactions"),
    [
        (global_in_order, IN_ORDER, {64: 2}),
        (global_in_order, SWAPPED, {32: 32}),
        (global_in_order, ONE_OFF, {32: 32}),
        (global_by_halves, IN_ORDER, {64: 2}),
        (global_by_halves, SWAPPED, {64: 2}),
        (global_by_halves, ONE_OFF, {128: 1, 64: 1, 32: 1}),
        (global_by_lines, IN_ORDER, {128: 1}),
        (global_by_lines, SWAPPED, {128: 1}),
        (global_by_lines, ONE_OFF, {128: 2}),
        (global_by_segments, IN_ORDER, {32: 4}),
        (global_by_segments, SWAPPED, {32: 4}),
        (global_by_segments, ONE_OFF, {32: 5}),
        (global_by_sectors, ONE_OFF, {32: 5}),
    ],
)
def test_the_figure_of_the_guide(
    rule: Rule, addresses: list[int], transactions: dict[int, int]
) -> None:
    assert sizes(rule, addresses) == transactions


@pytest.mark.parametrize(("size", "transactions"), [(4, {64: 2}), (8, {128: 2}), (16, {128: 4})])
def test_words_in_order_on_the_first_devices(size: int, transactions: dict[int, int]) -> None:
    words = [1024 + size * lane for lane in range(32)]
    assert sizes(global_in_order, words, size=size) == transactions
    assert sizes(global_in_order, words, 0xF0F0_F0F1, size) == transactions  # lanes may be off
    moved = [a + size for a in words]  # no longer at the start of a segment
    assert sizes(global_in_order, moved, size=size) == {32: 32}


def test_sixteen_byte_words_need_only_a_segment_of_128() -> None:
    words = [1024 + 128 + 16 * lane for lane in range(32)]
    assert sizes(global_in_order, words, size=16) == {128: 4}


def test_small_words_are_never_in_order_on_the_first_devices() -> None:
    assert sizes(global_in_order, [1024 + lane for lane in range(32)], size=1) == {32: 32}
    assert sizes(global_in_order, [1024 + 2 * lane for lane in range(32)], 0xFF, 2) == {32: 8}


def test_one_half_out_of_order_leaves_the_other_alone() -> None:
    words = list(IN_ORDER)
    words[3], words[4] = words[4], words[3]
    assert sizes(global_in_order, words) == {32: 16, 64: 1}


@pytest.mark.parametrize(
    ("stride", "size", "transactions"),
    [
        (1, 1, {32: 2}),  # 16 bytes of a 32-byte segment, twice
        (2, 2, {32: 2}),
        (4, 4, {64: 2}),
        (8, 4, {128: 2}),  # every second word: a half-warp spans 128 bytes
        (16, 4, {128: 4}),
        (64, 4, {128: 16}),  # two words of a segment are 64 bytes apart, one in each of its halves
        (128, 4, {32: 32}),  # one word of a segment: 32 bytes
        (8, 8, {128: 2}),
        (16, 16, {128: 4}),
        (0, 4, {32: 2}),
    ],
)
def test_strides_by_half_warps(stride: int, size: int, transactions: dict[int, int]) -> None:
    assert sizes(global_by_halves, list(strided(stride)), size=size) == transactions


def test_wide_words_are_served_by_groups_on_2_x_and_3_x() -> None:
    # All lanes want one word: each half- or quarter-warp is a request of its own.
    assert sizes(global_by_lines, list(strided(0)), size=4) == {128: 1}
    assert sizes(global_by_lines, list(strided(0)), size=8) == {128: 2}
    assert sizes(global_by_lines, list(strided(0)), size=16) == {128: 4}
    assert sizes(global_by_segments, list(strided(0)), 0x00FF_0001, 16) == {32: 2}
    assert sizes(global_by_lines, list(strided(16)), size=16) == {128: 4}
    assert sizes(global_by_segments, list(strided(8)), size=8) == {32: 8}


@given(accesses())
def test_lines_and_segments_are_those_of_sets(case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    lanes = min(32, 128 // size)
    groups = [mask & ((1 << lanes) - 1) << first for first in range(0, 32, lanes)]
    for rule, unit in ((global_by_lines, 128), (global_by_segments, 32)):
        expected = sum(len({a // unit for a in active(addresses, group)}) for group in groups)
        assert sizes(rule, addresses, mask, size) == {unit: expected}


@given(accesses(), st.sampled_from([0, 16]))
def test_segments_cover_what_a_half_warp_accesses(
    case: tuple[list[int], int, int], first: int
) -> None:
    """Each touched segment of 128 bytes (less for small words) moves the smallest aligned part that
    contains all used bytes."""
    addresses, mask, size = case
    mask &= 0xFFFF << first
    size = min(size, 16)
    segment = min(32 * size, 128)
    expected: dict[int, int] = {}
    touched: dict[int, set[int]] = {}
    for a in active(addresses, mask):
        touched.setdefault(a // segment, set()).update(range(a, a + size))
    for used in touched.values():
        segment_bytes = next(
            n for n in (32, 64, 128) if n == segment or min(used) // n == max(used) // n
        )
        expected[segment_bytes] = expected.get(segment_bytes, 0) + 1
    if mask:
        assert sizes(global_by_halves, addresses, mask, size) == expected


@pytest.mark.parametrize(
    ("rule", "one", "four"),
    [
        (local_in_order, {64: 2}, {64: 8}),
        (local_by_halves, {64: 2}, {64: 8}),
        (local_by_lines, {128: 1}, {128: 4}),
    ],
)
def test_one_slot_of_local_memory_is_consecutive(
    rule: Rule, one: dict[int, int], four: dict[int, int]
) -> None:
    slots = [512 + 4 * lane for lane in range(32)]
    assert sizes(rule, slots, size=4) == one
    assert sizes(rule, slots, size=16) == four


def test_slots_that_differ_by_lane_are_scattered() -> None:
    slots = [128 * lane + 4 * lane for lane in range(32)]  # lane l at word l of its own array
    assert sizes(local_in_order, slots) == {32: 32}
    assert sizes(local_by_halves, slots) == {32: 32}
    assert sizes(local_by_lines, slots) == {128: 32}
