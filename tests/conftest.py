"""Options of the whole suite: how random tests draw, and how much LLVM optimises."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
"""Compiling a kernel for an example takes as long as it takes."""

settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=SLOW
)
settings.register_profile("new seeds", database=None, deadline=None, suppress_health_check=SLOW)
settings.load_profile("new seeds" if os.environ.get("WARPLOOM_NEW_SEEDS") else "fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--random-examples",
        type=int,
        default=40,
        help="how many kernels the two machines are compared on",
    )


@pytest.fixture(scope="session")
def random_examples(request: pytest.FixtureRequest) -> int:
    """The number of kernels that a random test draws."""
    return int(request.config.getoption("--random-examples") or 0)
