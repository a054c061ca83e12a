"""`warploom tour`: the lessons as films, whose captions and steps play in their time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.lessons.learn import recorded_lesson
from warploom.cli.options import grouped
from warploom.cli.pages import Export, PageOptions, write_page
from warploom.core.errors import WarploomError
from warploom.ui.chromium import find_chromium
from warploom.ui.explainer import explainer_show, recorded_explainer
from warploom.ui.film import check_video_name, find_ffmpeg, write_gif, write_video
from warploom.ui.lessons import ORDER, labels_of, lesson_named
from warploom.ui.narration import find_voice
from warploom.ui.schema import ALL, CUT, WHOLE, Show
from warploom.ui.shows import exported_show, live_show


@dataclass(frozen=True)
class WrittenFilm:
    """Files that are written instead of serving the page."""

    export: Export = None
    export_video: Annotated[
        Path | None,
        typer.Option(
            metavar="VIDEO.webm", help="Write a video (.webm or .mp4); needs Chromium and ffmpeg."
        ),
    ] = None
    voice: Annotated[
        bool,
        typer.Option("--voice", help="Speak the captions in the video; needs espeak-ng."),
    ] = False
    export_gif: Annotated[
        Path | None,
        typer.Option(metavar="VIDEO.gif", help="Write an animated GIF; needs Chromium and ffmpeg."),
    ] = None

    @property
    def any(self) -> bool:
        """Returns whether there is one."""
        return any((self.export, self.export_video, self.export_gif))

    def check(self) -> None:
        """Raises WarploomError where a film cannot be written, before anything is recorded."""
        if self.voice and self.export_video is None:
            raise WarploomError(
                "--voice requires --export-video; to hear the voice on the page, press V"
            )
        if self.export_video is not None:
            check_video_name(self.export_video)
        if self.voice:
            find_voice()
        if self.export_video is not None or self.export_gif is not None:
            find_chromium()
            find_ffmpeg()

    def write(self, show: Show, traces: list[bytes]) -> None:
        """Writes the files."""
        if self.export is not None:
            write_page(self.export, show, traces)
        if self.export_video is not None:
            write_video(self.export_video, show, traces, spoken=self.voice)
        if self.export_gif is not None:
            write_gif(self.export_gif, show, traces)


@grouped
def tour(
    name: Annotated[
        str | None,
        typer.Argument(help="A lesson that `warploom learn` lists, or a lesson file (.toml)."),
    ] = None,
    *,
    short: Annotated[
        bool,
        typer.Option(
            "--short",
            help="Play a video of at most 60 seconds: the short tour or, with NAME, the lesson.",
        ),
    ] = False,
    page: PageOptions,
    written: WrittenFilm,
) -> None:
    """Watch a lesson as a video. Each caption stays long enough to be read, then the steps up to
    the next caption play. At the question, the video waits for an answer. Without NAME, watch all
    lessons in order or, with --short, an explainer of warps, masks, divergence and memory.

    Examples: `warploom tour --short`, `warploom tour`, `warploom tour branch`, `warploom tour
    branch --short`.
    """
    written.check()
    if name is None and short:
        explained, traces = recorded_explainer()
        shown = served = explainer_show(explained, watch=CUT)
    elif name is None and written.any:
        raise WarploomError(
            "a file contains one lesson or the short tour: name a lesson, or add --short"
        )
    else:
        lesson = lesson_named(name or ORDER[0])
        watch = ALL if name is None else CUT if short else WHOLE
        traces = recorded_lesson(lesson)
        shown = exported_show(lesson.title, labels_of(lesson), lesson=lesson, watch=watch)
        served = live_show(
            lesson.title, len(traces), request=lesson.request, lesson=lesson, watch=watch
        )
    if written.any:
        written.write(shown, traces)
    else:
        page.serve(served, traces)
