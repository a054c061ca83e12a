"""Each row of docs/model.md names a test that there is, and a lesson or command that there is."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from warploom.clients.nvcc import real_nvcc
from warploom.ui.lessons import ORDER

ROOT = Path(__file__).parent.parent.parent
MODEL = ROOT / "docs" / "model.md"
GLOSSARY = ROOT / "docs" / "glossary.md"

EXPECTED = {
    *(f"W{n}" for n in range(1, 8)),
    *(f"D{n}" for n in range(1, 6)),
    *(f"M{n}" for n in range(1, 7)),
    *(f"B{n}" for n in range(1, 8)),
    *(f"P{n}" for n in range(1, 9)),
    *(f"G{n}" for n in range(1, 4)),
    *(f"V{n}" for n in range(1, 4)),
}

TERMS = (
    *("half-warp", "quarter-warp", "active block", "active warp", "selected", "eligible"),
    *("stalled", "CUDA core", "SYCL", "NDRange", "work-item", "wavefront", "weaving"),
)


@cache
def rows() -> dict[str, tuple[str, ...]]:
    """The cells of each row, by its letter and number."""
    found: dict[str, tuple[str, ...]] = {}
    for line in MODEL.read_text("utf-8").splitlines():
        if re.match(r"\| [A-Z]\d \|", line):
            cells = tuple(cell.strip() for cell in line.strip("|").split(" | "))
            found[cells[0].strip()] = cells[1:]
    return found


def test_every_row_is_there() -> None:
    assert set(rows()) == EXPECTED


@pytest.mark.parametrize("row", sorted(EXPECTED))
def test_a_row_names_a_test_a_way_to_see_it_and_a_source(row: str) -> None:
    statement, see, shown_by, source = rows()[row]
    assert len(statement) > 20
    assert len(source) > 5
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", shown_by)
    assert named, shown_by
    for file, name in named:
        defined = ast.parse((ROOT / file).read_text("utf-8")).body
        assert name in {one.name for one in defined if isinstance(one, ast.FunctionDef)}, name
    for lesson in re.findall(r"`warploom learn ([\w-]+)`", see):
        assert lesson in ORDER
    assert re.search(r"`warploom|view|`%|glossary", see), see


EXPECTED_STATUS = {
    "B3 run": 4,
    "D5 check": 0,
    "D5 explore": 1,
    "G2 explore": 1,
    "M4 explore": 1,
    "M5 explore": 1,
    "check": 1,
}
"""The exit status of a command that is to find something wrong, in one row or in all."""


def commands() -> list[tuple[str, str]]:
    """The commands of each row that name a file."""
    return [
        (row, command)
        for row, cells in sorted(rows().items())
        for command in re.findall(r"`warploom ((?:\w+) [^`]*examples/[^`]*)`", cells[1])
    ]


@pytest.mark.parametrize(("row", "command"), commands(), ids=lambda value: value.partition(" ")[0])
def test_the_commands_of_a_row_run(row: str, command: str, tmp_path: Path) -> None:
    if "numba" in command and find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    is_program = "streams.cu" in command or "texture.cu" in command
    if is_program and real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("there is no nvcc, on the PATH or from wheels")
    verb = command.partition(" ")[0]
    arguments = [*shlex.split(command), *(["--export", "page.html"] * (verb == "view"))]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        [sys.executable, "-m", "warploom.cli", *arguments],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    expected = EXPECTED_STATUS.get(f"{row} {verb}", EXPECTED_STATUS.get(verb, 0))
    assert done.returncode == expected, (command, done.stdout[-500:], done.stderr)


def test_the_files_of_the_rows_are_among_the_examples_that_users_get(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "warploom.cli", "examples"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    named = {file for _, command in commands() for file in re.findall(r"examples/[\w/.]+", command)}
    assert "examples/statements/reverse.cl" in named
    assert not [file for file in named if not (tmp_path / file).exists()]


def test_the_glossary_has_the_words_of_the_architecture() -> None:
    text = GLOSSARY.read_text("utf-8").lower()
    missing = [term for term in TERMS if term.lower() not in text]
    assert not missing
