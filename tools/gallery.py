"""Exports every lesson, the explainer and the explorables as static pages, with an index: a gallery
for a web site.

    python tools/gallery.py FOLDER              the pages run edited kernels, by FOLDER/machine.js
    python tools/gallery.py FOLDER --traces     they show what was recorded; quicker to make
"""

from __future__ import annotations

import html
import sys
from pathlib import Path

from build_machine import MACHINE, build_machine

from warploom.ui.explainer import explainer_show, recorded_explainer
from warploom.ui.explorables import (
    EXPLORABLES,
    explorable_of,
    explorable_show,
    read_explorable,
)
from warploom.ui.explorables.recorded import recorded_explorable
from warploom.ui.lessons import SYLLABUS, find_lesson, labels_of, requests_of
from warploom.ui.page import export
from warploom.ui.page_machine import kernels_of, with_machine
from warploom.ui.record import record
from warploom.ui.schema import Lesson
from warploom.ui.shows import exported_show

STYLE = """
body { max-width: 46rem; margin: 3rem auto; padding: 0 1rem; line-height: 1.5;
  font-family: ui-sans-serif, system-ui, sans-serif; color-scheme: light dark; }
li { margin: 0.5rem 0; }
"""


EXPLAINER = "simt"
"""The name of the explainer's page, beside those of the lessons."""


EXPLORE = "explore-"
"""What the names of the explorables' pages begin with."""


def lesson_sections() -> list[tuple[str, list[Lesson]]]:
    """Returns the lessons by the parts of the syllabus."""
    sections: list[tuple[str, list[Lesson]]] = []
    for part, names in SYLLABUS.items():
        found = [lesson for name in names if (lesson := find_lesson(name)) is not None]
        sections.append((part, found))
    return sections


def write_gallery(folder: Path, *, index: bool = True, machine: bool = False) -> list[Path]:
    """Write a page for each lesson and each explorable, one for the explainer, and the index where
    it is wanted; returns the files. With a `machine`, lessons run edited kernels, and its script is
    written, too."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [
        _write_explainer(folder / f"{EXPLAINER}.html"),
        *(_write_explorable(name, folder / f"{EXPLORE}{name}.html") for name in EXPLORABLES),
        *(
            _write_lesson(lesson, folder / f"{lesson.id}.html", machine=machine)
            for _, lessons in lesson_sections()
            for lesson in lessons
        ),
    ]
    if machine:
        build_machine(folder)
    return [*written, _write_index(folder / "index.html")] if index else written


def _write_index(index: Path) -> Path:
    """Write a page with links to all lessons; returns its file."""
    sections = [
        f"<h2>{html.escape(part)}</h2><ol>{''.join(map(_item, lessons))}</ol>"
        for part, lessons in lesson_sections()
    ]
    explored = [
        f'<li><a href="{EXPLORE}{name}.html"><b>{read_explorable(name).title}</b></a></li>'
        for name in EXPLORABLES
    ]
    index.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Warploom lessons</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f'<h1>Warploom lessons</h1><p><a href="{EXPLAINER}.html">SIMT in 60 seconds</a></p>'
        f"{''.join(sections)}<h2>To explore</h2><ol>{''.join(explored)}</ol></html>",
        "utf-8",
    )
    return index


def _write_explainer(file: Path) -> Path:
    """Write the page of the explainer, which waits for its button; returns its file."""
    explained, traces = recorded_explainer()
    file.write_text(export(explainer_show(explained, watch="", gallery=True), traces), "utf-8")
    return file


def _write_explorable(name: str, file: Path) -> Path:
    """Write the page of an explorable; returns its file."""
    launches = recorded_explorable(name)
    show = explorable_show(explorable_of(name, launches))
    file.write_text(export(show, [launch.trace for launch in launches]), "utf-8")
    return file


def _write_lesson(lesson: Lesson, file: Path, *, machine: bool) -> Path:
    """Write the page of a lesson; returns its file."""
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    show = exported_show(lesson.title, labels_of(lesson), lesson=lesson, gallery=True)
    if machine:
        show = with_machine(show, MACHINE)
    file.write_text(export(show, traces, kernels_of(lesson) if machine else ()), "utf-8")
    return file


def _item(lesson: Lesson) -> str:
    title, summary = (html.escape(text) for text in (lesson.title, lesson.summary))
    return f'<li><a href="{lesson.id}.html"><b>{title}</b></a><br>{summary}</li>'


def main() -> None:
    files = write_gallery(Path(sys.argv[1]), machine="--traces" not in sys.argv)
    total = sum(file.stat().st_size for file in files)
    print(f"{len(files)} pages, {total / 1e6:.1f} MB, in {files[0].parent}")


if __name__ == "__main__":
    main()
