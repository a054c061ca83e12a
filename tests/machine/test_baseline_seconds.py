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
        assert kept.due <= kept.before + 2 * LEAST
        kept.write(kept.before + 2 * LEAST)


def test_seconds_are_due_again_when_those_of_the_process_have_grown_by_a_quarter() -> None:
    BaselineSeconds("00").write(8.0)
    kept = BaselineSeconds("00")
    kept.write(kept.before + 0.4)
    assert kept.due == pytest.approx(8.5)
