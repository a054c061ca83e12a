"""`warploom learn`: the lessons, small kernels that show in a minute each what a warp does."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from warploom.cli.view import Browser, Export, Memory, Seconds, opener
from warploom.core.errors import WarploomError
from warploom.ui.lessons import find_lesson, labels_of, lessons, requests_of
from warploom.ui.page import export as export_page
from warploom.ui.record import record
from warploom.ui.runner import Limits
from warploom.ui.schema import Lesson, Show
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import exported_show, live_show


def learn(
    name: Annotated[str | None, typer.Argument(help="A lesson of the list, to open it.")] = None,
    export: Export = None,
    seconds: Seconds = 30.0,
    memory: Memory = 4096,
    browser: Browser = True,
) -> None:
    """List the lessons, or open one in the browser.

    Examples: `warploom learn`, `warploom learn lock`.
    """
    if name is None:
        width = max(len(one.id) for one in lessons())
        for one in lessons():
            print(f"{one.id:<{width}}  {one.title}. {one.summary}")
        print("\nOpen one with `warploom learn NAME`.", file=sys.stderr)
        return
    lesson = find_lesson(name)
    if lesson is None:
        known = ", ".join(one.id for one in lessons())
        raise WarploomError(f"there is no lesson {name!r}; there are {known}")
    traces = [record(request).to_bytes() for request in requests_of(lesson)]
    if export is not None:
        export.write_text(export_page(_exported(lesson), traces))
        return
    show = live_show(lesson.title, len(traces), request=lesson.request, lesson=lesson)
    serve(Viewer(show, traces, Limits(seconds, memory << 20)), opener(browser=browser))


def _exported(lesson: Lesson) -> Show:
    return exported_show(lesson.title, labels_of(lesson), lesson=lesson)
