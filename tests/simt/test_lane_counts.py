"""Lanes of masks are counted and found alike in Python and in machine code."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from warploom.simt.lane_counts import count_lanes, first_lane, register_jitables

KINDS: tuple[Any, ...] = (int, np.int64, np.uint64)
"""The types of the words that hold masks: of the reference machine, of states, of addresses."""


@pytest.mark.parametrize(
    ("mask", "lanes", "first"),
    [(1, 1, 0), (0b1000, 1, 3), (0xF0F0, 8, 4), (0xFFFFFFFF, 32, 0), (1 << 62 | 1 << 31, 2, 31)],
)
def test_python_and_machine_code_count_the_same_bits(mask: int, lanes: int, first: int) -> None:
    register_jitables()
    for kind in KINDS:
        assert (count_lanes(kind(mask)), first_lane(kind(mask))) == (lanes, first)
    assert compiled(mask) == (lanes, first)


def test_the_highest_of_64_lanes_is_no_sign() -> None:
    assert (count_lanes(1 << 63), first_lane(1 << 63)) == (1, 63)
    assert first_lane(KINDS[-1](1 << 63)) == 63
    assert first_lane(~0xFFFF) == 16


@numba.njit
def compiled(mask: int) -> tuple[int, int]:
    return count_lanes(mask), first_lane(mask)
