"""Exports every lesson as a static page, with an index: a gallery for a web site.

python tools/gallery.py FOLDER
"""

from __future__ import annotations

import html
import sys
from pathlib import Path

from warploom.ui.lessons import SYLLABUS, find_lesson, labels_of, requests_of
from warploom.ui.page import export
from warploom.ui.record import record
from warploom.ui.shows import exported_show

STYLE = """
body { max-width: 46rem; margin: 3rem auto; padding: 0 1rem; line-height: 1.5;
  font-family: ui-sans-serif, system-ui, sans-serif; color-scheme: light dark; }
li { margin: 0.5rem 0; }
"""


def write_gallery(folder: Path) -> list[Path]:
    """Write a page for each lesson and the index; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    sections: list[str] = []
    for part, names in SYLLABUS.items():
        items: list[str] = []
        for name in names:
            written.append(folder / f"{name}.html")
            items.append(_item(name, _write_lesson(name, written[-1])))
        sections.append(f"<h2>{html.escape(part)}</h2><ol>{''.join(items)}</ol>")
    index = folder / "index.html"
    index.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Warploom lessons</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>Warploom lessons</h1>{''.join(sections)}</html>",
        "utf-8",
    )
    return [*written, index]


def _write_lesson(name: str, file: Path) -> tuple[str, str]:
    """Write the page of a lesson; returns its title and its summary."""
    lesson = find_lesson(name)
    assert lesson is not None
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    show = exported_show(lesson.title, labels_of(lesson), lesson=lesson, gallery=True)
    file.write_text(export(show, traces), "utf-8")
    return lesson.title, lesson.summary


def _item(name: str, output: tuple[str, str]) -> str:
    title, summary = (html.escape(text) for text in output)
    return f'<li><a href="{name}.html"><b>{title}</b></a><br>{summary}</li>'


def main() -> None:
    files = write_gallery(Path(sys.argv[1]))
    total = sum(file.stat().st_size for file in files)
    print(f"{len(files)} pages, {total / 1e6:.1f} MB, in {files[0].parent}")


if __name__ == "__main__":
    main()
