"""Every example runs and finds its own results right."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ELSEWHERE = {"policies"}
"""Examples whose output other tests check: tests/timing/test_own_policies.py."""

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in ELSEWHERE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
