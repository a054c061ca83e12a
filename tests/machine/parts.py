"""Parts of long tests, most of which only the nightly job runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_now(cases: Iterable[Any], every: int) -> list[Any]:
    """Returns the cases of a parametrized test: one in `every` of them, the first included, runs
    each time, the others in the nightly job."""
    return [
        pytest.param(case, marks=[pytest.mark.nightly] if number % every else [])
        for number, case in enumerate(cases)
    ]
