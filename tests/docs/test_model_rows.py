"""Each row of docs/model.md names a test that there is, and a lesson or command that there is."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

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


def test_the_glossary_has_the_words_of_the_architecture() -> None:
    text = GLOSSARY.read_text("utf-8").lower()
    missing = [term for term in TERMS if term.lower() not in text]
    assert not missing
