"""Tests that seconds in baseline code add up over processes."""

from pathlib import Path

import pytest

from warploom.machine.compiled.baseline_seconds import LEAST, BaselineSeconds


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each test an empty cache."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))


def test_processes_much_shorter_than_all_before_them_count() -> None:
    for done in range(50):
        kept = BaselineSeconds("00")
        assert kept.before == pytest.approx(2 * LEAST * done)
        kept.update(kept.before + 2 * LEAST)


def test_shorter_processes_do_not_count() -> None:
    BaselineSeconds("00").update(LEAST / 2)
    assert BaselineSeconds("00").before == 0
