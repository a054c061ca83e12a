"""`warploom learn`: the lessons, small kernels that show in a minute each what a warp does."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from warploom.cli.options import grouped
from warploom.cli.pages import Export, PageOptions, write_page
from warploom.core.errors import WarploomError
from warploom.ui.lessons import find_lesson, labels_of, lessons, requests_of
from warploom.ui.record import record
from warploom.ui.schema import Lesson, Show
from warploom.ui.shows import exported_show, live_show


@grouped
def learn(
    name: Annotated[str | None, typer.Argument(help="A lesson of the list, to open it.")] = None,
    *,
    page: PageOptions,
    export: Export = None,
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
        write_page(export, _exported(lesson), traces)
        return
    show = live_show(lesson.title, len(traces), request=lesson.request, lesson=lesson)
    page.serve(show, traces)


def _exported(lesson: Lesson) -> Show:
    return exported_show(lesson.title, labels_of(lesson), lesson=lesson)
