"""Sessions in the terminal for tests: what commands say."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.debug.attaching import AttachedDebugger
from warploom.debug.session import Session
from warploom.debug.terminal.shell import Terminal
from warploom.host.debugging import attach
from warploom.host.kernel import Kernel


class Talk:
    """A terminal on one launch; `say` does a command and gives what it says."""

    def __init__(self, session: Session) -> None:
        self.session, self._out = session, StringIO()
        self._terminal = Terminal(session, self._out)

    def say(self, command: str) -> str:
        """What a command says."""
        start = len(self._out.getvalue())
        self._terminal.do(command)
        return self._out.getvalue()[start:]

    def value(self, expression: str) -> str:
        """The value of an expression, as `print` writes it."""
        return self.say(f"print {expression}").partition(" = ")[2].strip()

    def line(self) -> int:
        """The line of the thread in focus."""
        return self.session.frame().line


def talk(
    source: str | Path,
    grid: int,
    block: int,
    args: Sequence[Any],
    script: Any,
    options: Sequence[str] = ("-G",),
    **device: Any,
) -> None:
    """Debugs a launch of the only kernel of a source by a function of a `Talk`."""
    gpu = wl.Device(**device)
    text = source.read_text("utf-8") if isinstance(source, Path) else source
    module = gpu.compile(text, options=list(options), name="kernel.cu")
    kernel: Kernel = module[module.kernels[0]]
    given = [gpu.to_device(arg, name) if name else arg for name, arg in args]
    failed: list[BaseException] = []

    def face(session: Session) -> bool:
        try:
            script(Talk(session))
        except BaseException as error:
            failed.append(error)
        return False

    attach(AttachedDebugger(face))
    try:
        kernel[grid, block](*given)
    except WarploomError:
        if not failed:
            return
    finally:
        attach(None)
    if failed:
        raise failed[0]
