"""Checks the lists of transactions against the counts of the rules, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.cost.device_rules import RULES
from warploom.cost.fields import CostRecord
from warploom.cost.served import _RULES, ServedTransaction, list_transactions  # pyright: ignore[reportPrivateUsage]

FULL = 0xFFFFFFFF
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
"""An overflow is a warning in Python, but wraps silently in compiled code."""


def patterns(size: int) -> list[tuple[np.ndarray, int]]:
    """Returns pairs of addresses and masks: consecutive, strided, one word, equal pairs, reversed,
    random; some lanes inactive."""
    random = np.random.default_rng(size)
    lanes = np.arange(32, dtype=np.uint64)
    cases = [lanes * np.uint64(size * step + shift * size) for step in (0, 1, 2, 3, 32)
            for shift in (0, 1)]  # fmt: skip
    cases += [lanes // np.uint64(2) * np.uint64(size), lanes[::-1] * np.uint64(size)]
    cases += [(random.integers(0, 4096, 32) * size).astype(np.uint64) for _ in range(3)]
    masks = [FULL, 0xFFFF0010, *random.integers(1, FULL, 2).tolist()]
    return [(a.copy(), int(mask)) for a in cases for mask in masks]


@pytest.mark.parametrize("rule", sorted(_RULES))
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_lists_are_as_long_as_the_rules_count(rule: str, size: int) -> None:
    for addresses, mask in patterns(size):
        if rule.startswith("local"):
            # The layout of local memory: a lane's word lies at its own place of a line.
            words = addresses // np.uint64(max(4, size)) * np.uint64(128 * max(1, size // 4))
            addresses = words + np.arange(32, dtype=np.uint64) * np.uint64(4)
        record = CostRecord(np.zeros(CostRecord.WORDS, np.int64), 0)
        RULES[rule](addresses, mask, size, record.words)
        transactions = list_transactions(rule, addresses.tolist(), mask, size)
        assert len(transactions) == record.transactions, (rule, size, addresses, hex(mask))
        served_lanes = 0
        for transaction in transactions:
            served_lanes |= transaction.lanes
        assert served_lanes == mask
        if rule.startswith(("global", "local")):
            assert sum(transaction.size for transaction in transactions) == record.bytes_moved


@pytest.mark.parametrize("rule", sorted(_RULES))
def test_each_transaction_contains_the_bytes_of_its_lanes(rule: str) -> None:
    """Passes over banks, which give words of several lines, have no start and no size."""
    for addresses, mask in patterns(4):
        for transaction in list_transactions(rule, addresses.tolist(), mask, 4):
            start, end = transaction.start, transaction.start + transaction.size
            if rule.startswith("shared"):
                assert start == end == 0
                continue
            lanes = [lane for lane in range(32) if transaction.lanes >> lane & 1]
            assert all(start <= int(addresses[lane]) <= end - 4 for lane in lanes)


def test_segments_of_half_warps_are_served_from_the_lowest_lane_on() -> None:
    for addresses, mask in patterns(4):
        found = list_transactions("global_by_halves", addresses.tolist(), mask, 4)
        lowest = [transaction.lanes & -transaction.lanes for transaction in found]
        assert lowest == sorted(lowest)


def test_a_stride_of_two_words_takes_two_passes_over_the_banks() -> None:
    """Lanes l and l + 16 load words 2l and 2l + 32 of one bank: the low half-warp is first."""
    transactions = list_transactions("shared_32_banks", [8 * lane for lane in range(32)], FULL, 4)
    assert transactions == (ServedTransaction(0, 0, 0xFFFF), ServedTransaction(0, 0, 0xFFFF0000))


def test_a_quarter_warp_of_16_bytes_takes_a_pass_that_serves_no_lane() -> None:
    found = list_transactions("shared_32_banks_quarters", range(0, 512, 16), FULL, 16)
    empty = ServedTransaction(0, 0, 0)
    assert found[1::2] == (empty,) * 4
    assert found[::2] == tuple(ServedTransaction(0, 0, 0xFF << 8 * q) for q in range(4))


def test_consecutive_floats_are_four_sectors_of_eight_lanes() -> None:
    transactions = list_transactions(
        "global_by_sectors", [1024 + 4 * lane for lane in range(32)], FULL, 4
    )
    assert transactions == tuple(
        ServedTransaction(1024 + 32 * s, 32, 0xFF << 8 * s) for s in range(4)
    )
