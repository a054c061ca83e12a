"""Selects parts of long tests; the rest runs in the nightly job only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_now(cases: Iterable[Any], every: int) -> list[Any]:
    """Returns the cases of a parametrised test: one in `every` of them, the first included, runs
    each time, the others only in the nightly job."""
    return [
        pytest.param(case, marks=[pytest.mark.nightly] if number % every else [])
        for number, case in enumerate(cases)
    ]
