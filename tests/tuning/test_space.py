"""Spaces: what texts and dictionaries mean, and the launches that come of them."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.core.errors import WarploomError
from warploom.tuning.space import compiler_options, configurations, geometry, parse_space


def test_a_range_has_its_last_value_and_a_list_its_own() -> None:
    space = parse_space("block=64:192:64,device=v100,a100,T=2:3,f=0.5")
    assert space == {
        "block": [64, 128, 192],
        "device": ["v100", "a100"],
        "T": [2, 3],
        "f": [0.5],
    }


@pytest.mark.parametrize(
    "text", ["", "64", "block", "block=", "block=64,,128", "a=1,a=2", "n=9:1", "n=1:9:0", "2x=1"]
)
def test_what_cannot_be_read_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(WarploomError, match="--space"):
        parse_space(text)


def test_all_combinations_the_first_slowest() -> None:
    assert configurations({"block": [(16, 8), 32], "T": list(np.array([1, 2]))}) == [
        {"block": "16x8", "T": 1},
        {"block": "16x8", "T": 2},
        {"block": 32, "T": 1},
        {"block": 32, "T": 2},
    ]


@pytest.mark.parametrize(
    "space", [{"block": []}, {"a b": [1]}, {"block": [32], "block_size_x": [32]}, {"n": [None]}]
)
def test_a_space_that_means_nothing_is_refused(space: dict[str, list[object]]) -> None:
    with pytest.raises(WarploomError):
        configurations(space)


def test_the_grid_covers_the_problem() -> None:
    assert geometry({"block": 64}, [1000]) == ((16, 1, 1), (64, 1, 1))
    assert geometry({"block": "16x8"}, [100, 50]) == ((7, 7, 1), (16, 8, 1))
    assert geometry({"block_size_x": 32, "block_size_y": 4}, [33, 4]) == ((2, 1, 1), (32, 4, 1))
    assert geometry({"block": 64, "grid": "3x2"}) == ((3, 2, 1), (64, 1, 1))


@pytest.mark.parametrize("block", ["16xy", 2.5, "1x2x3x4", 0])
def test_a_shape_that_is_none_is_refused(block: int | float | str) -> None:
    with pytest.raises(WarploomError):
        geometry({"block": block}, [64])


def test_kernel_tuners_names_and_all_others_are_macros() -> None:
    given = {"block_size_x": 64, "TILE": 4, "block": 32, "regs": 40, "device": "v100", "shared": 9}
    assert compiler_options(given) == ["-Dblock_size_x=64", "-DTILE=4", "-maxrregcount=40"]
