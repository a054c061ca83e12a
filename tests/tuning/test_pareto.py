"""The best of a tuning, and the Pareto set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.core.errors import WarploomError
from warploom.tuning.result import Tuned, check_objectives
from warploom.tuning.trial import Costs, Trial


def costs(cycles: int, dram_bytes: int) -> Costs:
    return Costs(
        cycles=cycles,
        cycles_error=0,
        seconds=cycles / 1e9,
        replayed=1.0,
        occupancy=1.0,
        achieved_occupancy=1.0,
        limiters=("warps",),
        registers=16,
        registers_from="estimate",
        dram_bytes=dram_bytes,
        global_sectors=0,
        shared_bank_conflicts=0,
        warp_instructions=0,
        stalls={},
        bound="bound by DRAM",
    )


def tuned(*pairs: tuple[int, int]) -> Tuned:
    ran = (Trial({"n": n}, costs(*pair)) for n, pair in enumerate(pairs))
    return Tuned((*ran, Trial({"n": -1}, refused="too large")))


def test_of_four_by_hand_two_are_beaten_by_none() -> None:
    found = tuned((3, 10), (1, 30), (3, 20), (2, 31))
    assert [trial.configuration["n"] for trial in found.pareto] == [1, 0]
    assert found.best.configuration == {"n": 1}
    assert [trial.configuration["n"] for trial in found.ranked] == [1, 3, 0, 2]
    assert [trial.refused for trial in found.refused] == ["too large"]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_no_member_is_beaten_and_all_others_are(pairs: list[tuple[int, int]]) -> None:
    found = tuned(*pairs)
    front = [pairs[int(trial.configuration["n"])] for trial in found.pareto]
    for a in pairs:
        beaten = any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in pairs)
        assert (a in front) == (not beaten)
    assert found.best in found.pareto


def test_where_none_ran_there_is_no_best_and_the_reason_is_reported() -> None:
    with pytest.raises(WarploomError, match="too large"):
        _ = tuned().best


def test_what_is_no_objective_is_refused() -> None:
    with pytest.raises(WarploomError, match="choose from seconds"):
        check_objectives(["speed"])
    with pytest.raises(WarploomError, match="minimize"):
        check_objectives([])
