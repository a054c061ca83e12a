"""Makes the content that a page opens with, for a server or for an export."""

from __future__ import annotations

from warploom.machine.launch import POLICIES
from warploom.ui.lessons import lesson_heads
from warploom.ui.page_machine import device_choices
from warploom.ui.progress import read_progress
from warploom.ui.schema import LaunchRequest, Lesson, Show


def live_show(
    title: str,
    traces: int,
    *,
    request: LaunchRequest | None = None,
    lesson: Lesson | None = None,
    launches: tuple[str, ...] = (),
    watch: str = "",
) -> Show:
    """Returns what a page shows that a server serves: it can run kernels and open lessons.
    `launches` are the names of a program's launches, each of which has a trace to choose. `watch`
    is what plays when the page opens."""
    return Show(
        title=title,
        live=True,
        traces=traces,
        request=request,
        lesson=lesson,
        launches=launches,
        lessons=lesson_heads(),
        progress=read_progress(),
        devices=device_choices(),
        schedules=POLICIES,
        watch=watch,
    )


def exported_show(
    title: str,
    labels: tuple[str, ...],
    *,
    lesson: Lesson | None = None,
    launches: tuple[str, ...] = (),
    gallery: bool = False,
    watch: str = "",
) -> Show:
    """Returns what a page shows that has nothing but its traces, called by these labels. In a
    `gallery` the pages of the other lessons are beside it; `watch` is what plays when the page
    opens."""
    return Show(
        title=title,
        live=False,
        traces=len(labels),
        labels=labels,
        lesson=lesson,
        launches=launches,
        lessons=lesson_heads() if gallery else (),
        watch=watch,
    )
