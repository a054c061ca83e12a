"""An address pattern is what stays equal when an access moves by whole units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.cost.address_pattern import AddressPattern, interleaved
from warploom.cost.device_rules import RULES
from warploom.cost.fields import FIELDS, CostRecord

LANES = st.integers(1, (1 << 32) - 1)
COSTS = [name for name in RULES if name.startswith(("global_", "shared_", "constant_"))]
"""The rules that count an access to memory that is not interleaved."""

ADDRESSES = st.lists(st.integers(0, 1 << 20), min_size=32, max_size=32)


def test_the_base_is_the_first_active_lane_s_address_rounded_down() -> None:
    pattern, base = AddressPattern.of(0b1011, (0x10C4, 0x10C8, 0x10C0), 128)
    assert base == 0x1080
    assert pattern == AddressPattern(0b1011, (0x44, 0x48, 0x40))


def test_offsets_of_inactive_lanes_are_left_out() -> None:
    assert AddressPattern.by_lane(0b1010, range(0, 128, 4)) == AddressPattern(0b1010, (4, 12))


def test_the_first_lane_alone() -> None:
    assert AddressPattern(0b1010, (4, 12)).of_first_lane() == AddressPattern(0b0010, (4,))


def test_unsigned_addresses_are_moved_by_whole_units() -> None:
    addresses, moved = AddressPattern(0b101, (4, -200)).addresses()
    assert moved == 256  # the least multiple of 256 that is at least 200
    assert addresses[[0, 1, 2]].tolist() == [260, 0, 56]


@pytest.mark.parametrize(("offset", "lane", "place"), [(0, 1, 4), (4, 0, 128), (9, 31, 381)])
def test_words_of_local_memory_are_interleaved(offset: int, lane: int, place: int) -> None:
    # Word w of lane l is word 32 w + l: byte 9 is byte 1 of word 2, (2 * 32 + 31) * 4 + 1.
    assert interleaved(offset, lane) == place


def test_a_word_of_all_lanes_is_one_line_of_local_memory() -> None:
    pattern, base = AddressPattern((1 << 32) - 1, (8,) * 32).in_local(128)
    assert (base, pattern.offsets) == (256, tuple(range(0, 128, 4)))


def test_words_of_some_lanes_are_at_their_own_places_of_local_memory() -> None:
    # Word 1 of lane 0, and word 3 of lane 2: 32 * 4, and (3 * 32 + 2) * 4.
    pattern, base = AddressPattern(0b101, (4, 12)).in_local(128)
    assert (base, pattern) == (128, AddressPattern(0b101, (0, 264)))


@given(LANES, ADDRESSES, st.integers(0, 1 << 12), st.sampled_from(COSTS))
def test_the_cost_is_that_of_the_access_wherever_it_is(
    lanes: int, addresses: list[int], units: int, rule: str
) -> None:
    active = [address * 4 for lane, address in enumerate(addresses) if lanes >> lane & 1]
    pattern, base = AddressPattern.of(lanes, active, 256)
    moved, moved_base = AddressPattern.of(lanes, [a + 256 * units for a in active], 256)
    assert (moved, moved_base) == (pattern, base + 256 * units)

    def cost(unsigned: np.ndarray) -> list[int]:
        record = np.zeros(CostRecord.WORDS, np.int64)
        RULES[rule](unsigned, lanes, 4, record)
        return record[: len(FIELDS)].tolist()

    real = np.zeros(32, np.uint64)
    real[[lane for lane in range(32) if lanes >> lane & 1]] = active
    assert cost(pattern.addresses()[0]) == cost(real)


def test_all_lanes_of_a_wavefront_of_64_have_a_place_in_local_memory() -> None:
    pattern, _ = AddressPattern((1 << 64) - 1, (0,) * 64).in_local(128)
    assert len(pattern.offsets) == 64
