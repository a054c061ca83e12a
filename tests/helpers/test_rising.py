"""Checks the stride that vector instructions find, against values worked out by hand and against
the loop in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.cost.pattern_table import (
    ANY_STEP,
    NO_STEP,
    CostTable,
    StoredPattern,
    step_of,
)
from warploom.helpers.table import count_compiled

BASE = 1 << 40


def compiled(offsets: Any, mask: int) -> int:
    """Returns the stride that machine code stores with a pattern."""
    row = np.zeros(CostTable.WORDS, np.int64)
    count_compiled("store_pattern", offsets, mask, 0, row)
    return StoredPattern(row, CostTable.patterns).step


def offsets(steps: list[int]) -> Any:
    return np.array([BASE + step for step in steps], np.uint64)


@pytest.mark.parametrize(
    ("steps", "mask", "expected"),
    [
        ([4 * lane for lane in range(32)], 0xFFFFFFFF, 4),
        ([4 * lane for lane in range(32)], 0x80000000, ANY_STEP),
        ([4 * lane for lane in range(32)], 0b101_0000_1000, 4),
        ([0] * 32, 0xFFFF0000, 0),
        ([-4 * lane for lane in range(32)], 0b11, NO_STEP),
        ([0, 9, 7, *[0] * 29], 0b101, NO_STEP),  # 7 bytes over two lanes
        ([0, 9, 8, *[0] * 29], 0b101, 4),
        ([0, 4, 8, 13, *[0] * 28], 0b1111, NO_STEP),
        ([0, 4, 8, 13, *[0] * 28], 0b0111, 4),
    ],
)
def test_steps_by_hand(steps: list[int], mask: int, expected: int) -> None:
    assert step_of(offsets(steps), mask) == expected
    assert compiled(offsets(steps), mask) == expected


@given(
    st.integers(0, 40),
    st.integers(1, 0xFFFFFFFF),
    st.lists(st.tuples(st.integers(0, 31), st.integers(-8, 8)), max_size=2),
)
def test_machine_code_finds_the_stride_of_the_loop(
    step: int, mask: int, moved: list[tuple[int, int]]
) -> None:
    steps = [step * lane for lane in range(32)]
    for lane, by in moved:
        steps[lane] += by
    assert compiled(offsets(steps), mask) == step_of(offsets(steps), mask)
