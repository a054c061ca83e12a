"""`warploom tour`: the lessons as films, whose captions and steps play in their time."""

from __future__ import annotations

from typing import Annotated

import typer

from warploom.cli.learn import lesson_named, recorded_lesson
from warploom.cli.options import grouped
from warploom.cli.pages import Export, PageOptions, write_page
from warploom.core.errors import WarploomError
from warploom.ui.lessons import ORDER, labels_of
from warploom.ui.schema import COURSE, CUT, WHOLE
from warploom.ui.shows import exported_show, live_show


@grouped
def tour(
    name: Annotated[
        str | None, typer.Argument(help="A lesson from `warploom learn`, or a lesson file (.toml).")
    ] = None,
    *,
    short: Annotated[
        bool, typer.Option("--short", help="Play the cut of the lesson, at most 60 seconds.")
    ] = False,
    page: PageOptions,
    export: Export = None,
) -> None:
    """Watch a lesson as a film: captions stay as long as they take to be read, the steps between
    them play, and the question waits for an answer. Without a LESSON, watch all of them in order.

    Examples: `warploom tour`, `warploom tour branch`, `warploom tour branch --short`.
    """
    if name is None and (short or export is not None):
        raise WarploomError("a film of all lessons plays from a server: add the name of a lesson")
    lesson = lesson_named(name or ORDER[0])
    watch = COURSE if name is None else CUT if short else WHOLE
    traces = recorded_lesson(lesson)
    if export is not None:
        show = exported_show(lesson.title, labels_of(lesson), lesson=lesson, watch=watch)
        write_page(export, show, traces)
        return
    show = live_show(lesson.title, len(traces), request=lesson.request, lesson=lesson, watch=watch)
    page.serve(show, traces)
