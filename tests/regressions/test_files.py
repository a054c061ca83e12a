"""Reads files and launches kernels with which something went wrong once: every file in `files` is
one, and its name begins with that of its target in tools/fuzzing/targets."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing.regressions import SUFFIX, replay_file

FILES = sorted((Path(__file__).parent / "files").glob(f"*{SUFFIX}"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_read(path: Path) -> None:
    replay_file(path)


def test_there_are_files() -> None:
    assert FILES
