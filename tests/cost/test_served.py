"""What each transaction serves, held against what the rules count, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.cost.device_rules import RULES
from warploom.cost.fields import FIELDS, RECORD_WIDTH, TRANSACTIONS
from warploom.cost.served import _RULES, ServedTransaction, list_transactions  # pyright: ignore[reportPrivateUsage]

FULL = 0xFFFFFFFF
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
"""What overflows in Python would wrap silently in compiled code."""


def patterns(size: int) -> list[tuple[np.ndarray, int]]:
    """Addresses and masks: in order, strided, one word, two alike, reversed, random, part off."""
    random = np.random.default_rng(size)
    lanes = np.arange(32, dtype=np.uint64)
    made = [lanes * np.uint64(size * step + shift * size) for step in (0, 1, 2, 3, 32)
            for shift in (0, 1)]  # fmt: skip
    made += [lanes // np.uint64(2) * np.uint64(size), lanes[::-1] * np.uint64(size)]
    made += [(random.integers(0, 4096, 32) * size).astype(np.uint64) for _ in range(3)]
    masks = [FULL, 0xFFFF0010, *random.integers(1, FULL, 2).tolist()]
    return [(a.copy(), int(mask)) for a in made for mask in masks]


@pytest.mark.parametrize("rule", sorted(_RULES))
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_as_many_are_listed_as_the_rule_counts(rule: str, size: int) -> None:
    for addresses, mask in patterns(size):
        if rule.startswith("local"):
            # The layout of local memory: a lane's word lies at its own place of a line.
            words = addresses // np.uint64(max(4, size)) * np.uint64(128 * max(1, size // 4))
            addresses = words + np.arange(32, dtype=np.uint64) * np.uint64(4)
        row = np.zeros(RECORD_WIDTH, np.int64)
        RULES[rule](addresses, mask, size, row)
        found = list_transactions(rule, addresses.tolist(), mask, size)
        assert len(found) == row[TRANSACTIONS], (rule, size, addresses, hex(mask))
        together = 0
        for one in found:
            together |= one.lanes
        assert together == mask
        if rule.startswith(("global", "local")):
            assert sum(one.size for one in found) == row[FIELDS.index("bytes_moved")]


def test_each_lane_finds_its_bytes_in_what_serves_it() -> None:
    for rule in ("global_by_sectors", "global_by_lines", "global_by_halves", "global_in_order"):
        for addresses, mask in patterns(4):
            for one in list_transactions(rule, addresses.tolist(), mask, 4):
                inside = [a for lane, a in enumerate(addresses.tolist()) if one.lanes >> lane & 1]
                assert all(one.start <= a and a + 4 <= one.start + one.size for a in inside)


def test_a_stride_of_two_words_takes_two_passes_over_the_banks() -> None:
    """Lanes l and l + 16 want words 2l and 2l + 32 of one bank: the low half goes first."""
    found = list_transactions("shared_32_banks", [8 * lane for lane in range(32)], FULL, 4)
    assert found == (ServedTransaction(0, 0, 0xFFFF), ServedTransaction(0, 0, 0xFFFF0000))


def test_consecutive_floats_are_four_sectors_of_eight_lanes() -> None:
    found = list_transactions("global_by_sectors", [1024 + 4 * lane for lane in range(32)], FULL, 4)
    assert found == tuple(ServedTransaction(1024 + 32 * s, 32, 0xFF << 8 * s) for s in range(4))
