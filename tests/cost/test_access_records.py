"""What accesses leave in the records that compiled code keeps: sums, examples, patterns that
repeat, windows of deferred accesses; and which lane of several on one address is last or first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_costs import ALL, accesses, active

from warploom.cost.atomics import lane_order
from warploom.cost.banks import (
    _count_row_ways_branchless,  # pyright: ignore[reportPrivateUsage]
    count_row_ways,
    count_ways,
    count_ways_branchless,
)
from warploom.cost.costliest_access import store_example
from warploom.cost.deferred_atomics import AccessCounts, move_window
from warploom.cost.device_rules import RULES
from warploom.cost.fields import FIELDS, CostRecord
from warploom.cost.pattern_table import (
    ANY_STEP,
    NO_STEP,
    CostTable,
    StoredPattern,
    settle_pattern,
    step_of,
    store_pattern,
)
from warploom.cost.writes import lasting
from warploom.simt.schedule_layout import Plan
from warploom.simt.split_policy import ADVERSARIAL, CONVERGE, FAIR, RANDOM

COUNTING = [
    name
    for name in RULES
    if not name.endswith("_pattern")
    and name not in ("store_example", "count_deferred_access", "move_window")
]
"""The rules that count one access, and use nothing of what was counted before."""

FIRST = [4 * lane for lane in range(32)]


def words(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


# ---- sums and examples --------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTING)
@given(one=accesses(), other=accesses())
def test_costs_are_added_to_what_was_counted_before(
    name: str, one: tuple[list[int], int, int], other: tuple[list[int], int, int]
) -> None:
    together, *alone = np.zeros((3, CostRecord.WORDS), np.int64)
    for (addresses, mask, size), record in zip((one, other), alone, strict=True):
        for each in (together, record):
            RULES[name](words(addresses), mask, size, each)
    count = len(FIELDS)
    assert together[:count].tolist() == (alone[0] + alone[1])[:count].tolist()


def test_the_example_is_the_access_with_the_most_transactions() -> None:
    record = CostRecord(np.zeros(CostRecord.WORDS, np.int64), 0)
    record.example_cost = 1  # of an ideal access
    for before, after, mask in ((0, 1, ALL), (1, 4, 0b101), (4, 7, ALL), (7, 9, ALL)):
        record.transactions = after
        store_example(words([8 * lane for lane in range(32)]), mask, before, record.words)
    assert (record.example_cost, record.example_mask) == (3, 0b101)
    assert record.example_addresses.tolist() == [0, 0, 16] + 29 * [0]


@pytest.mark.parametrize("function", [count_ways, count_ways_branchless])
def test_ways_of_a_bank_by_hand(function: object) -> None:
    assert callable(function)
    addresses = words([0, 128, 256, 256, 4, 132, *[8] * 26])  # words 0, 32, 64 of bank 0; 1, 33
    assert function(addresses, ALL, 2, 32) == 3
    assert function(addresses, ALL & ~0b1, 2, 32) == 2
    assert function(addresses, 0b1100, 2, 32) == 1


@given(accesses(), st.sampled_from([2, 3]))
def test_loops_that_are_compiled_instead_of_sets_count_alike(
    case: tuple[list[int], int, int], shift: int
) -> None:
    where, mask, _ = words(case[0]), *case[1:]
    ways = count_ways(where, mask, shift, 32)
    assert count_ways_branchless(where, mask, shift, 32) == ways
    assert _count_row_ways_branchless(where, mask) == count_row_ways(where, mask)


# ---- patterns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("slot", [0, 5])
def test_a_pattern_that_repeats_costs_what_it_cost_at_first(slot: int) -> None:
    rule, record = RULES["global_by_sectors"], np.zeros(CostTable.WORDS, np.int64)
    record[0] = 7  # what was counted before
    settle_pattern(words(FIRST), ALL, slot, record)
    rule(words(FIRST), ALL, 4, record)
    store_pattern(words(FIRST), ALL, slot, record)
    pattern = StoredPattern(record, CostTable.patterns, slot)
    assert (pattern.mask, pattern.step, pattern.repeats) == (ALL, 4, 0)
    assert pattern.offsets.tolist() == FIRST
    pattern.repeats = 3
    settle_pattern(words(FIRST), ALL, slot, record)
    counted = dict(zip(FIELDS, record.tolist(), strict=False))
    assert counted["requests"] == 7 + 1 + 3
    assert (counted["sectors"], counted["lines"]) == (4 * 4, 4)
    assert pattern.repeats == 0
    settle_pattern(words(FIRST), ALL, slot, record)
    assert dict(zip(FIELDS, record.tolist(), strict=False)) == counted


@pytest.mark.parametrize(
    ("offsets", "mask", "step"),
    [
        (FIRST, ALL, 4),
        (FIRST, 0b1010, 4),  # lanes in between count
        ([9] * 32, ALL, 0),
        (FIRST, 0b100, ANY_STEP),
        ([0, 4, 9, *[0] * 29], 0b111, NO_STEP),
        ([8, 4, 0, *[0] * 29], 0b111, NO_STEP),
        ([0, 0, 9, *[0] * 29], 0b101, NO_STEP),  # 4.5 bytes from lane to lane
    ],
)
def test_the_stride_of_a_pattern(offsets: list[int], mask: int, step: int) -> None:
    assert step_of(words(offsets), mask) == step


# ---- windows ------------------------------------------------------------------------------------


def window_after(
    addresses: list[int], mask: int, limit: int, window: int, new_patterns: int = 99
) -> tuple[int, int]:
    """Returns start and length of the window that covers an access which missed it."""
    row = AccessCounts(np.zeros(AccessCounts.WORDS, np.int64), 0)
    row.window, row.table.new_patterns = window, new_patterns
    move_window(words(addresses), mask, limit, row.words)
    return row.window, row.extent


@pytest.mark.parametrize(
    ("addresses", "mask", "limit", "window", "expected"),
    [
        # From the line of the lowest lane on, 256 words of 4 bytes.
        ([1000 + lane for lane in range(32)], ALL, 1 << 16, 1 << 15, (896, 256)),
        ([1000 + lane for lane in range(32)], ALL, 1 << 16, 0, (896, 256)),
        # Where it is, if all lanes fit there.
        ([200 + lane for lane in range(32)], ALL, 1 << 16, 128, (128, 256)),
        ([128] * 31 + [128 + 1023], ALL, 1 << 16, 128, (128, 256)),
        ([128] * 31 + [128 + 1024], ALL, 1 << 16, 0, (128, 256)),
        # Lanes that are off count for nothing.
        ([0] * 16 + [5000] * 16, 0xFFFF0000, 1 << 16, 1 << 15, (4992, 256)),
        # Up to the end of the shared memory.
        ([1000 + lane for lane in range(32)], ALL, 896 + 400, 1 << 15, (896, 100)),
    ],
)
def test_a_window_covers_an_access(
    addresses: list[int], mask: int, limit: int, window: int, expected: tuple[int, int]
) -> None:
    assert window_after(addresses, mask, limit, window) == expected


@pytest.mark.parametrize(("new_patterns", "extent"), [(0, 0), (14, 0), (15, 256), (16, 256)])
def test_nothing_is_deferred_while_patterns_are_on_trial(new_patterns: int, extent: int) -> None:
    """Sixteen new patterns are all stored; from the fifteenth on the list is open."""
    assert window_after([0] * 32, ALL, 1 << 16, 0, new_patterns) == (0, extent)


# ---- orders -------------------------------------------------------------------------------------


def schedule(policy: int, seed: int = 0) -> np.ndarray:
    plan = Plan(np.zeros(Plan.WORDS, np.int64), 0)
    plan.policy, plan.seed = policy, seed
    return plan.words


@given(accesses(), st.integers(0, 1 << 30), st.integers(0, 9))
def test_one_lane_of_each_address_is_last(
    case: tuple[list[int], int, int], seed: int, block: int
) -> None:
    addresses, mask, _ = case
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    where = words(addresses)
    assert lasting(where, mask, schedule(CONVERGE, seed), block) == mask
    assert lasting(where, mask, schedule(FAIR, seed), block) == mask
    lowest = {addresses[lane]: lane for lane in reversed(lanes)}.values()
    assert lasting(where, mask, schedule(ADVERSARIAL), block) == sum(1 << lane for lane in lowest)
    chosen = lasting(where, mask, schedule(RANDOM, seed), block)
    assert chosen & ~mask == 0
    assert sorted(active(addresses, chosen)) == sorted(set(active(addresses, mask)))
    # Where the host has allocated the memory changes nothing.
    assert lasting(where + np.uint64(1 << 20), mask, schedule(RANDOM, seed), block) == chosen


def test_every_lane_may_be_last_under_random_orders() -> None:
    last = {lasting(words([64] * 32), 0xFF, schedule(RANDOM, seed), 3) for seed in range(300)}
    assert last == {1 << lane for lane in range(8)}
    blocks = {lasting(words([64] * 32), ALL, schedule(RANDOM, 5), block) for block in range(40)}
    assert len(blocks) > 10


def lanes_in_order(order: int) -> list[int]:
    """Returns the lanes that an order packs: from `order` on, by steps of `order >> 5`."""
    return [(order + k * (order >> 5)) % 32 for k in range(32)]


@given(accesses(), st.integers(0, 1 << 30), st.integers(0, 9))
def test_orders_of_atomics(case: tuple[list[int], int, int], seed: int, block: int) -> None:
    addresses, mask, _ = case
    where = words(addresses)
    for policy in (CONVERGE, FAIR):
        order = lane_order(where, mask, schedule(policy, seed), block)
        assert lanes_in_order(order) == list(range(32))
    order = lane_order(where, mask, schedule(ADVERSARIAL, seed), block)
    assert lanes_in_order(order) == list(range(31, -1, -1))
    order = lane_order(where, mask, schedule(RANDOM, seed), block)
    assert sorted(lanes_in_order(order)) == list(range(32))
    moved = where + np.uint64(1 << 20)
    assert lane_order(moved, mask, schedule(RANDOM, seed), block) == order


def test_random_orders_begin_at_any_lane_with_any_odd_step() -> None:
    orders = [lane_order(words(FIRST), ALL, schedule(RANDOM, seed), 1) for seed in range(3000)]
    assert {order % 32 for order in orders} == set(range(32))
    assert {order // 32 for order in orders} == set(range(1, 33, 2))
    blocks = {lane_order(words(FIRST), ALL, schedule(RANDOM, 1), block) for block in range(40)}
    assert len(blocks) > 10
