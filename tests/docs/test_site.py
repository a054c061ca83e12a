"""The documentation site shows: the explainer on its home, pictures where pages speak of the view,
and the list of lessons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warploom.ui.lessons import SYLLABUS

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {name for names in SYLLABUS.values() for name in names}

_PICTURE = re.compile(r"!\[[^\]]+\]\(((?:\.\./)?images/[\w-]+\.\w+)\)")

SHOWS_THE_VIEW = re.compile(r"warploom view |`--view`|the page opens|opens (?:a|the) page")

WITHOUT = ("commands.md", "model.md", "testing.md", "research.md", "architecture.md")
"""Pages that name the command and are about something else, or that a program writes."""


def pages() -> list[Path]:
    return [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "howto").glob("*.md"))]


def test_the_home_has_the_explainer_a_lesson_and_three_pictures() -> None:
    from gallery import EXPLAINER

    home = (DOCS / "index.md").read_text("utf-8")
    [shown] = re.findall(r'<iframe[^>]+src="lessons/([\w-]+)\.html"', home)
    assert shown == EXPLAINER
    assert set(re.findall(r"\(lessons/([\w-]+)\.html\)", home)) & NAMES
    assert len(_PICTURE.findall(home)) == 3
    assert home.count("```sh") == 1


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_that_speaks_of_the_view_shows_it(page: Path) -> None:
    text = page.read_text("utf-8")
    pictures = _PICTURE.findall(text)
    assert all((page.parent / picture).is_file() for picture in pictures)
    if SHOWS_THE_VIEW.search(text) and page.name not in WITHOUT:
        assert pictures


def test_the_site_has_all_lessons() -> None:
    from gallery import lesson_sections

    found = [lesson.id for _, lessons in lesson_sections() for lesson in lessons]
    assert sorted(found) == sorted(NAMES)
    assert "<!-- lessons -->" in (DOCS / "lessons.md").read_text("utf-8")
