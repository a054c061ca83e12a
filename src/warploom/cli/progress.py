"""A line on the terminal for runs that take their time."""

from __future__ import annotations

import sys
import time
from threading import Event, Thread
from types import TracebackType
from typing import Self

PATIENCE = 2.0
"""Seconds before anything is shown."""

REFRESH = 0.5


class ProgressLine:
    """While it is entered, a line on stderr says how long `what` has run, and how far it is.

    It appears after two seconds, and only where stderr is a terminal. Call it to set how many
    blocks have begun: the launch reports the number of the next one.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._blocks = (0, 0)
        self._ended = Event()
        self._thread = Thread(target=self._show, daemon=True)
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __call__(self, begun: int, total: int) -> None:
        self._blocks = (begun, total)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _status_text(self) -> str:
        """Returns what happens now: before the first report of blocks, the program is compiled."""
        begun, total = self._blocks
        return f"{begun:,} of {total:,} blocks started" if total else "compiling"

    def _show(self) -> None:
        if self._ended.wait(PATIENCE):
            return
        while not self._ended.wait(REFRESH):
            seconds = time.monotonic() - self._started
            print(
                f"\r\033[K{self._what}: {seconds:.0f} s, {self._status_text()}",
                end="",
                file=sys.stderr,
                flush=True,
            )
        print("\r\033[K", end="", file=sys.stderr, flush=True)
