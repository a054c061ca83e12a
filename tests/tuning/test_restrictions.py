"""Restrictions: which configurations are left, and what is refused."""

from __future__ import annotations

import pytest

from warploom.core.errors import WarploomError
from warploom.tuning.space import configurations

SPACE = {"block_size_x": [32, 64, 128], "block_size_y": [1, 8, 16], "kind": ["a", "b"]}


def test_what_is_left_satisfies_all_expressions_and_functions() -> None:
    kept = configurations(
        SPACE,
        [
            "block_size_x*block_size_y <= 512",
            "block_size_y == 1 or block_size_x % 64 == 0",
            lambda p: p["kind"] in "b",
        ],
    )
    pairs = [(c["block_size_x"], c["block_size_y"]) for c in kept]
    assert pairs == [(32, 1), (64, 1), (64, 8), (128, 1)]
    assert {c["kind"] for c in kept} == {"b"}


@pytest.mark.parametrize(
    ("restriction", "says"),
    [
        ("block_size_x <", "cannot be read"),
        ("tile < 4", "tile, which is not a parameter of the search space"),
        ("__import__('os')", "contain only arithmetic"),
        ("block_size_x.real > 1", "contain only arithmetic"),
        ("block_size_x ** 9 ** 9 > 1", "contain only arithmetic"),
        ("kind < 3", "cannot be evaluated"),
        ("block_size_x / 0 > 1", "cannot be evaluated"),
        ("block_size_x > 4096", "none of the 18"),
    ],
)
def test_a_restriction_that_means_nothing_says_why(restriction: str, says: str) -> None:
    with pytest.raises(WarploomError, match=says):
        configurations(SPACE, [restriction])
