"""benchmarks/moves.py compares launches that leave the same behind, by the fastest of each."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import moves
import numpy as np
import pytest


def side(times: list[float], **changed: Any) -> moves.Side:
    """Returns launches of 4 million warp instructions that take these times, again and again."""
    left: dict[str, Any] = {"result": np.arange(3), "counters": {"branches": 2}}
    return moves.Side(cycle(times).__next__, 4_000_000, "level 3", **(left | changed))


def test_rates_are_those_of_the_fastest_launches() -> None:
    assert moves.rates("k", [side([2.0, 4.0]), side([1.0, 0.5])]) == [2.0, 8.0]


@pytest.mark.parametrize("changed", [{"result": np.arange(3) + 1}, {"counters": {"branches": 3}}])
def test_launches_that_leave_other_things_behind_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match=r"k: the .* differ"):
        moves.rates("k", [side([1.0]), side([1.0], **changed)])
