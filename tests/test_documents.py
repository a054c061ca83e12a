"""Benchmarks write their tables where the documentation has a place for them."""

from __future__ import annotations

from pathlib import Path

import documents
import pytest


def test_only_what_is_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n", "utf-8")
    documents.write("a", "new\n", page)
    assert (
        page.read_text("utf-8")
        == "before\n<!-- a -->\n```text\nnew\n```\n<!-- end of a -->\nafter\n"
    )


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- a -->\n", "utf-8")
    with pytest.raises(ValueError, match="end of a"):
        documents.write("a", "new", page)


@pytest.mark.parametrize("section", ["peers", "limits", "overheads", "memory", "scaling"])
def test_the_page_has_every_place(section: str) -> None:
    text = documents.PERFORMANCE.read_text("utf-8")
    assert text.count(f"<!-- {section} -->") == text.count(f"<!-- end of {section} -->") == 1
