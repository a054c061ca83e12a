"""Serves the page of `view`, `check` and `learn`, or writes it to a file."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warploom.core.output_files import write_text
from warploom.ui.schema import CompiledKernel, Show

if TYPE_CHECKING:
    from warploom.ui.page import Traces
    from warploom.ui.runner import Limits

Export = Annotated[
    Path | None,
    typer.Option(metavar="PAGE.html", help="Write a self-contained page that needs no server."),
]

Machine = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="With --export: URL of the script that runs edited kernels in the page, such as "
        "machine.js in the page's folder (written by tools/build_machine.py).",
    ),
]


@dataclass(frozen=True)
class PageOptions:
    """Options for serving the page."""

    seconds: Annotated[
        float,
        typer.Option(
            help="Time limit in seconds for a run started on the page, or for a graded kernel."
        ),
    ] = 30.0
    memory: Annotated[
        int,
        typer.Option(
            help="Memory limit in MiB for a run started on the page, or for a graded kernel."
        ),
    ] = 4096
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True

    def limits(self) -> Limits:
        """Returns the limits of runs."""
        from warploom.ui.runner import Limits

        return Limits(self.seconds, self.memory << 20)

    def serve(self, show: Show, traces: Traces) -> None:
        """Serves the page until Ctrl-C."""
        # The web server, which a page that is written does without.
        from warploom.ui.server import Viewer, serve

        serve(Viewer(show, traces, self.limits()), self._opened)

    def _opened(self, url: str) -> None:
        print(f"The page is at {url}\nPress Ctrl-C to stop.", flush=True)
        if self.browser:
            webbrowser.open(url)


def write_page(
    target: Path, show: Show, traces: Traces, kernels: Sequence[CompiledKernel] = ()
) -> None:
    """Writes a page that needs no server."""
    from warploom.ui.page import export as export_page

    write_text(target, export_page(show, traces, kernels))
