"""Tests that options read without pydantic have the values that their types say."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warploom.cli.typer_commands import plain_value


def settings(**limits: Any) -> SimpleNamespace:
    """Returns the settings of an option without limits, but for these."""
    return SimpleNamespace(**{"min": None, "max": None, **limits})


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "12", "12"),
        (str, "", ""),
        (bool, False, False),
        (int, "-12", -12),
        (int, 0, 0),
        (float, "2.5", 2.5),
        (float, "3", 3.0),
        (Path, "a.cu", Path("a.cu")),
        (list[str], ("x", "1"), ["x", "1"]),
    ],
)
def test_usual_values_are_converted(annotation: Any, value: Any, expected: Any) -> None:
    found = plain_value(annotation, settings(), value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "1.5"),
        (int, "\u0661"),
        (int, "12 "),
        (int, True),
        (float, "nan"),
        (float, "1e3"),
        (bool, "yes"),
        (list[str], "x"),
        (list[int], ["1"]),
    ],
)
def test_unusual_values_are_left_to_typer(annotation: Any, value: Any) -> None:
    assert plain_value(annotation, settings(), value) is None


def test_numbers_outside_the_limits_are_left_to_typer() -> None:
    assert plain_value(int, settings(min=1), "0") is None
    assert plain_value(int, settings(min=1), "1") == 1
    assert plain_value(int, settings(max=4), "5") is None


def test_paths_with_demands_are_left_to_typer() -> None:
    assert plain_value(Path, settings(exists=True), "a.cu") is None
