"""Hooks of the documentation site: the lessons become pages of it, and links to files outside of
`docs/` the names of these."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from gallery import EXPLORE, lesson_sections, write_gallery
from mkdocs.structure.files import File  # pyright: ignore[reportMissingImports]

from warploom.ui.explorables import EXPLORABLES, read_explorable

_OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)#]+)(?:#[^)]*)?\)")

LIST = "<!-- lessons -->"
"""The place of the list in lessons.md."""

FOLDER = "lessons"
"""The folder of the site with a page for each lesson."""

_kept: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _gallery() -> Path:
    """Returns a folder with the page of each lesson, made once."""
    _kept.append(tempfile.TemporaryDirectory())
    folder = Path(_kept[0].name)
    write_gallery(folder, index=False)
    return folder


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages of the lessons to the site."""
    for page in sorted(_gallery().glob("*.html")):
        files.append(File.generated(config, f"{FOLDER}/{page.name}", abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Returns a page's text. Pages in folders of `docs/` link only to pages."""
    if LIST in markdown:
        return markdown.replace(LIST, _lessons())
    if "/" in page.file.src_uri:
        return markdown
    return _OUTSIDE.sub(lambda found: f"{found['text']} (`{found['path']}`)", markdown)


def _lessons() -> str:
    """Returns the list of the lessons, with links to their pages."""
    lines: list[str] = []
    for part, lessons in lesson_sections():
        lines += [f"## {part}", ""]
        lines += [f"1. [{one.title}]({FOLDER}/{one.id}.html): {one.summary}" for one in lessons]
        lines.append("")
    lines += ["## To explore", ""]
    lines += [
        f"1. [{read_explorable(name).title}]({FOLDER}/{EXPLORE}{name}.html)" for name in EXPLORABLES
    ]
    return "\n".join(lines)
