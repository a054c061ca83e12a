"""`warploom tour`: what a film of a lesson opens with, and what is said of one that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.ui.page import BUNDLE

pytestmark = pytest.mark.skipif(not BUNDLE.exists(), reason="the page was not built")


def test_a_lesson_is_exported_with_what_plays(tmp_path: Path) -> None:
    file = tmp_path / "film.html"
    for options, watch in (((), "whole"), (("--short",), "cut")):
        run = CliRunner().invoke(app, ["tour", "branch", *options, "--export", str(file)])
        assert run.exit_code == 0, run.output
        assert f'"watch":"{watch}"' in file.read_text("utf-8")


def test_all_lessons_are_no_file(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["tour", "--export", str(tmp_path / "film.html")])
    assert run.exit_code != 0
    assert "name a lesson, or add --short" in str(run.exception)
