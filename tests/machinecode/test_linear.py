"""Tests linear programs, whose solutions later processes find in the disk cache."""

from __future__ import annotations

import ctypes
from pathlib import Path
from unittest.mock import Mock

import pytest

from warploom.machinecode.linear import LinearProgram


def program(most: float) -> LinearProgram:
    """Returns: minimize x + 2 y, where x + y = 4 and x <= `most`."""
    made = LinearProgram()
    x, y = made.variable(1.0, most), made.variable(2.0)
    made.equal([(x, 1.0), (y, 1.0)], 4.0)
    return made


def test_an_equal_program_is_not_solved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    assert program(3.0).solve().tolist() == [3.0, 1.0]
    solver = Mock(side_effect=AssertionError)
    monkeypatch.setattr(LinearProgram, "_solve", solver)
    assert program(3.0).solve().tolist() == [3.0, 1.0]
    with pytest.raises(AssertionError):
        program(2.0).solve()


def test_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Solvers print by default, where the user's program prints."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    assert program(3.0).solve().tolist() == [3.0, 1.0]
    ctypes.CDLL(None).fflush(None)  # what C has not written yet
    assert capfd.readouterr() == ("", "")
