"""How many examples a random test draws."""

from __future__ import annotations

import os

VARIABLE = "WARPLOOM_ALL_TESTS"
"""The environment variable that `conftest` sets where the nightly tests run, too (`--all`)."""


def examples(number: int, nightly: int) -> int:
    """Returns the number of examples of a random test: `nightly` where all tests run, which
    `pytest_configure` knows before it imports the tests."""
    return nightly if VARIABLE in os.environ else number
