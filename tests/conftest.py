"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--random-examples",
        type=int,
        default=40,
        help="how many kernels the two machines are compared on",
    )


@pytest.fixture(scope="session")
def random_examples(request: pytest.FixtureRequest) -> int:
    """How many kernels a random test draws."""
    return int(request.config.getoption("--random-examples") or 0)
