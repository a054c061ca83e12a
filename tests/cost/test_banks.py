"""Checks the rules of shared memory, constants and stores against the examples of the guides.

Examples: CUDA C Programming Guide 4.2, F.3.3 (1.x), F.4.3 (2.x), F.5.3 (3.x) and figure F-2.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from rule_costs import ALL, Rule, accesses, active, cost, strided

from warploom.cost.banks import (
    shared_32_banks,
    shared_32_banks_quarters,
    shared_wide_banks,
    shared_wide_banks_of_words,
)
from warploom.cost.constant import constant_by_halves, constant_by_warp
from warploom.cost.half_warp_banks import shared_16_banks_read, shared_16_banks_write
from warploom.cost.writes import write_by_address, write_by_halves, write_by_lane


def ways(rule: Rule, addresses: list[int], mask: int = ALL, size: int = 4) -> tuple[int, int]:
    """Returns the wavefronts and bank conflicts of an access."""
    counters = cost(rule, addresses, mask, size)
    assert counters["transactions"] == counters["wavefronts"]
    return counters["wavefronts"], counters.get("bank_conflicts", 0)


def stride(step: int) -> list[int]:
    return [4096 + step * lane for lane in range(32)]


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        (stride(4), 4, (2, 0)),  # linear, odd strides: no conflict
        (stride(12), 4, (2, 0)),
        (stride(8), 4, (4, 2)),  # two ways in each half-warp
        (stride(64), 4, (32, 30)),
        (stride(0), 4, (2, 0)),  # broadcast
        (stride(1), 1, (8, 6)),  # an array of char: four lanes in each bank
        (stride(2), 2, (4, 2)),  # of short: two
        (stride(8), 8, (8, 4)),  # of double: split in two requests of stride 2, two ways each
        (stride(16), 16, (32, 24)),  # four requests of stride 4
    ],
)
def test_sixteen_banks_serve_half_warps(
    addresses: list[int], size: int, expected: tuple[int, int]
) -> None:
    assert ways(shared_16_banks_read, addresses, size=size) == expected


def test_only_one_word_is_broadcast_in_a_step() -> None:
    # Lanes in pairs on words 0, 16, 32, ...: all in one bank. Each step serves one word: 8 of them.
    addresses = [64 * (lane // 2) for lane in range(16)] * 2
    assert ways(shared_16_banks_read, addresses, 0xFFFF)[0] == 8
    # Pairs on words 0 to 7, eight banks. The first step broadcasts word 0 to both its lanes and
    # serves one lane of the seven others; each step after that finishes one more word, with one
    # lane left of each: 1 + 1 steps.
    addresses = [4 * (lane // 2) for lane in range(16)] * 2
    assert ways(shared_16_banks_read, addresses, 0xFFFF)[0] == 2


def test_stores_to_one_word_are_one_write_of_a_half_warp() -> None:
    assert ways(shared_16_banks_write, stride(0)) == (2, 0)
    assert ways(shared_16_banks_write, stride(8)) == (4, 2)
    assert ways(shared_16_banks_write, [4 * (lane // 2) for lane in range(32)]) == (2, 0)


@pytest.mark.parametrize(
    ("step", "size", "expected"),
    [
        (4, 4, (1, 0)),
        (8, 4, (2, 1)),
        (12, 4, (1, 0)),
        (1, 1, (1, 0)),  # multicast: any number of words for any number of lanes
        (8, 8, (2, 0)),  # conflicts only within half-warps
        (16, 8, (4, 2)),
        (16, 16, (8, 4)),  # 128 bits: one more than a quarter-warp's most
        (32, 16, (12, 8)),
    ],
)
def test_2_x_multicasts_and_pays_for_quarters(
    step: int, size: int, expected: tuple[int, int]
) -> None:
    assert ways(shared_32_banks_quarters, stride(step), size=size) == expected


@pytest.mark.parametrize(
    ("step", "size", "of_eight", "of_four"),
    [
        (4, 4, (1, 0), (1, 0)),
        (8, 4, (1, 0), (1, 0)),  # stride of two words: no conflict (figure F-2)
        (
            12,
            4,
            (2, 1),
            (1, 0),
        ),  # of three: none in the mode of 4; words 2 and 66 meet in that of 8
        (16, 4, (2, 1), (2, 1)),
        (128, 4, (16, 15), (16, 15)),  # a column of 32 words: two of each row of 64
        (256, 4, (32, 31), (32, 31)),
        (8, 8, (1, 0), (1, 0)),  # doubles: a whole warp at once
        (16, 8, (2, 1), (2, 1)),
        (16, 16, (2, 0), (2, 0)),
    ],
)
def test_banks_of_eight_bytes(
    step: int, size: int, of_eight: tuple[int, int], of_four: tuple[int, int]
) -> None:
    assert ways(shared_wide_banks, stride(step), size=size) == of_eight
    assert ways(shared_wide_banks_of_words, stride(step), size=size) == of_four


def test_words_at_distance_32_in_a_row_of_64_share_a_bank() -> None:
    # Mode of 4 bytes: words i and i + 32 of one aligned row go together; across rows they do not.
    assert ways(shared_wide_banks_of_words, [0, 128], 0b11) == (1, 0)
    assert ways(shared_wide_banks_of_words, [128, 256], 0b11) == (2, 1)
    # Mode of 8 bytes: words 0 and 1 share a place; words 0 and 64 have one bank, 0 and 32 none.
    assert ways(shared_wide_banks, [0, 4], 0b11) == (1, 0)
    assert ways(shared_wide_banks, [0, 256], 0b11) == (2, 1)
    assert ways(shared_wide_banks, [0, 128], 0b11) == (1, 0)


def test_an_ldmatrix_matrix_with_rows_in_different_banks_takes_one_wavefront() -> None:
    """Each matrix has eight rows of 16 bytes: padded rows in different banks, and rows in one."""
    tight = [128 * lane for lane in range(32)]  # rows of 64 halves: all begin in bank 0
    padded = [144 * lane for lane in range(32)]
    assert ways(shared_32_banks, tight, 0xFF, 16) == (8, 7)
    assert ways(shared_32_banks, padded, 0xFF, 16) == (1, 0)
    assert ways(shared_32_banks, padded, ALL, 16) == (4, 0)


def model(addresses: list[int], mask: int, size: int, bank_bytes: int) -> tuple[int, int]:
    """Counts wavefronts and conflicts over banks of 4 or 8 bytes by sets, in groups of lanes that
    fill all banks once."""
    lanes = min(32, 32 * bank_bytes // size)
    wavefronts_of_groups = []
    for first in range(0, 32, lanes):
        group = active(addresses, mask & ((1 << lanes) - 1) << first)
        words = {w for a in group for w in range(a // bank_bytes, -(-(a + size) // bank_bytes))}
        if words:
            wavefronts_of_groups.append(max(Counter(w % 32 for w in words).values()))
    return sum(wavefronts_of_groups), sum(wavefronts_of_groups) - len(wavefronts_of_groups)


@given(accesses())
def test_conflicts_are_those_of_sets(case: tuple[list[int], int, int]) -> None:
    addresses, mask, size = case
    assert ways(shared_32_banks, addresses, mask, size) == model(addresses, mask, size, 4)
    assert ways(shared_wide_banks, addresses, mask, size) == model(addresses, mask, size, 8)


@given(accesses())
def test_conflicts_in_the_mode_of_four_bytes_are_those_of_sets(
    case: tuple[list[int], int, int],
) -> None:
    addresses, mask, size = case
    lanes = min(32, 256 // size)
    wavefronts_of_groups = []
    for first in range(0, 32, lanes):
        group = active(addresses, mask & ((1 << lanes) - 1) << first)
        words = {w for a in group for w in range(a // 4, -(-(a + size) // 4))}
        places = {(w // 64, w % 32) for w in words}
        if places:
            wavefronts_of_groups.append(max(Counter(bank for _, bank in places).values()))
    expected = (sum(wavefronts_of_groups), sum(wavefronts_of_groups) - len(wavefronts_of_groups))
    assert ways(shared_wide_banks_of_words, addresses, mask, size) == expected


@given(accesses())
def test_half_warps_need_a_step_for_each_word_of_a_bank_at_least(
    case: tuple[list[int], int, int],
) -> None:
    """A load takes at least one step for each distinct word of the busiest bank (as a store does),
    and at most one for each of its lanes."""
    addresses, mask, size = case
    least = most = 0
    for first in (0, 16):
        group = active(addresses, mask & 0xFFFF << first)
        if group:
            parts = max(1, size // 4)
            least += parts * max(Counter(w % 16 for w in {a // 4 for a in group}).values())
            most += parts * max(Counter(a // 4 % 16 for a in group).values())
    assert ways(shared_16_banks_write, addresses, mask, size)[0] == least
    assert least <= ways(shared_16_banks_read, addresses, mask, size)[0] <= most


def test_constants_are_one_word_a_pass() -> None:
    halves = [0] * 16 + [4] * 16
    assert cost(constant_by_warp, strided(0), ALL, 4)["passes"] == 1
    assert cost(constant_by_warp, halves, ALL, 4)["passes"] == 2
    assert cost(constant_by_halves, strided(0), ALL, 4)["passes"] == 2  # a request a half-warp
    assert cost(constant_by_halves, halves, ALL, 4)["passes"] == 2
    assert cost(constant_by_halves, halves, 0xFFFF, 4)["passes"] == 1


@given(accesses())
def test_writes_are_made_by_address_by_half_warp_or_by_lane(
    case: tuple[list[int], int, int],
) -> None:
    addresses, mask, size = case
    on = active(addresses, mask)
    low, high = active(addresses, mask & 0xFFFF), active(addresses, mask & 0xFFFF << 16)
    assert cost(write_by_address, addresses, mask, size) == {"writes": len(set(on))}
    assert cost(write_by_halves, addresses, mask, size) == {
        "writes": len(set(low)) + len(set(high))
    }
    assert cost(write_by_lane, addresses, mask, size) == {"writes": len(on)}
