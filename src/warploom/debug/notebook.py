"""The debugger from Python: a launch that waits while a program, or a notebook, looks at it.

with wl.debugger(kernel[4, 256], x, y) as debug:
    print(debug("break 7 if i == 63"))
    debug("run")
    debug.value("tile[t]")
    debug                        # in a notebook, at the end of a cell: shows where it stands
"""

from __future__ import annotations

import threading
from html import escape
from io import StringIO
from queue import Queue
from typing import Any

from warploom.core.errors import WarploomError
from warploom.core.options import convert
from warploom.core.values import Instance
from warploom.debug.attaching import AttachedDebugger
from warploom.debug.session import Session
from warploom.debug.terminal.shell import Terminal
from warploom.debug.values import written
from warploom.host.debugging import attach
from warploom.host.launcher import Launcher

AROUND = 4
"""Lines of source before and after the one that a notebook shows."""

STYLE = "font-family: monospace; white-space: pre; border-collapse: collapse; text-align: left"


class DebuggedLaunch:
    """A launch in the debugger; `session` is its core. Calling it executes a command of the
    terminal and returns its output. `close` runs the launch to its end."""

    def __init__(self, launcher: Launcher, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._text, self._ended = StringIO(), threading.Event()
        self._error: BaseException | None = None
        arrived: Queue[Session | None] = Queue()
        self._thread = threading.Thread(
            target=self._launch, args=(launcher, args, options, arrived), daemon=True
        )
        self._thread.start()
        session = arrived.get()
        if session is None:
            assert self._error is not None
            raise self._error
        self.session: Session = session
        self._terminal = Terminal(session, self._text)

    def _launch(
        self,
        launcher: Launcher,
        args: tuple[Any, ...],
        options: dict[str, Any],
        arrived: Queue[Session | None],
    ) -> None:
        """Starts the launch in a thread of its own, which waits while the launch is debugged."""

        def face(session: Session) -> bool:
            attach(None)
            arrived.put(session)
            self._ended.wait()
            return False

        attach(AttachedDebugger(face))
        try:
            launcher(*args, **options)
        except BaseException as error:  # which the thread of the caller raises
            self._error = error
        finally:
            attach(None)
            arrived.put(None)

    def __call__(self, command: str) -> str:
        """Executes a command of the terminal; returns its output."""
        if self._ended.is_set():
            raise WarploomError("this launch has ended; debug another one")
        start = len(self._text.getvalue())
        self._terminal.do(command)
        if self._terminal.ends:
            self.close()
        return self._text.getvalue()[start:].rstrip("\n")

    def value(self, expression: str) -> str:
        """Returns the value of an expression, as `print` writes it. Raises EvaluationError."""
        evaluator = self.session.evaluator()
        return written(evaluator.value(expression), evaluator.thread)

    def close(self) -> None:
        """Runs the launch to its end; a later call does nothing. Raises what the kernel raises."""
        if not self._ended.is_set():
            self._ended.set()
            self._thread.join()
            if self._error is not None:
                raise self._error

    def __enter__(self) -> DebuggedLaunch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        self._ended.set()
        self._thread.join()

    # ---- notebooks ------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        if self._ended.is_set():
            return "<p>The launch has ended.</p>"
        shell, session = self._terminal.shell, self.session
        parts = [f"<b>{escape(shell.focus_text())}</b>, position {session.position:,}"]
        if session.stop.message:
            parts.append(f"<pre>{escape(session.stop.message)}</pre>")
        try:
            parts += [self._source_table(), self._variable_table()]
        except WarploomError as reason:  # no thread runs
            parts.append(f"<p>{escape(str(reason))}</p>")
        return "\n".join(parts)

    def _source_table(self) -> str:
        """Returns the lines around the one that the thread in focus is at."""
        frame = self.session.frame()
        lines = (self.session.source_lines(frame.file) or []) if frame.line else []
        rows: list[str] = []
        for number in range(max(1, frame.line - AROUND), min(len(lines), frame.line + AROUND) + 1):
            mark, weight = ("→", "bold") if number == frame.line else ("", "normal")
            text = escape(lines[number - 1])
            rows.append(
                f'<tr style="font-weight: {weight}"><td>{mark}</td><td>{number}</td>'
                f'<td style="text-align: left">{text}</td></tr>'
            )
        return f'<table style="{STYLE}">{"".join(rows)}</table>'

    def _variable_table(self) -> str:
        """Returns the variables of the frame in focus, and their values."""
        thread, rows = self.session.thread(), list[str]()
        for name, value in self.session.variables():
            text = f"<{value}>" if isinstance(value, str) else written(value, thread)
            rows.append(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>")
        return f'<table style="{STYLE}">{"".join(rows)}</table>'


def debugger(launcher: Launcher, *args: Any, **options: Any) -> DebuggedLaunch:
    """Launches a kernel with these arguments in the debugger: `launcher` is `kernel[grid, block]`,
    `options` are those of `LaunchOptions`. The launch waits at its begin until the user continues
    it. Raises LaunchError for what does not fit."""
    convert("debugger(...)", "launcher", launcher, Instance(Launcher))
    return DebuggedLaunch(launcher, args, options)
