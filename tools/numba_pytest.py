"""What numba-cuda's own tests expect of their project's conftest.py, which its wheel leaves out.

`tools/numba_tests.py` hands it to pytest with `-p`.
"""

from __future__ import annotations

import pytest


@pytest.fixture
def initialize_from_pytest_config(request: pytest.FixtureRequest) -> None:
    """Failed checks of generated code are reported in the failure alone."""
    request.node.instance._dump_failed_filechecks = False
