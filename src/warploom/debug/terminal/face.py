"""The terminal as a face of the debugger: what `debug.attaching` gives launches to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from json import dumps, loads

from warploom.debug.attaching import AttachedDebugger, Quit
from warploom.debug.session import Session
from warploom.debug.terminal.shell import Terminal
from warploom.host.debugging import attach


@dataclass(frozen=True)
class TerminalOptions:
    """What is done in a terminal: `commands` at the first launch, then what the user types, unless
    in a `batch`; `kernel` names the kernel whose launches are debugged, empty for all. `failing`:
    only launches that do something wrong come to the user."""

    commands: list[str] = field(default_factory=list[str])
    batch: bool = False
    kernel: str = ""
    failing: bool = False

    def text(self) -> str:
        """Return them as a text for the environment of another process."""
        return dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> TerminalOptions:
        """Return the options that `text` wrote."""
        return cls(**loads(text))

    def debugger(self, on_quit: Callable[[Quit], None] | None = None) -> AttachedDebugger:
        """Return a debugger that debugs launches so."""
        left = list(self.commands)

        def face(session: Session) -> bool:
            terminal = Terminal(session)
            if self.failing:
                stop = session.start()
                if stop.reason != "error":
                    return True
                terminal.shell.stopped(stop, None)
            done = terminal.run(left, echo=True) if left else True
            left.clear()
            if self.batch and not done:
                raise Quit(1)
            if not (self.batch or terminal.quitting or terminal.leaving):
                terminal.talk()
            if terminal.quitting:
                raise Quit(0 if done else 1)
            return not (self.batch or terminal.detaching)

        return AttachedDebugger(face, self.kernel, on_quit)


def attach_in_program(text: str) -> None:
    """Have launches of this process debugged, by the text of some options. Where the user quits,
    the process ends: its launches come from libraries that no exception passes."""

    def end(quit: Quit) -> None:
        sys.stdout.flush()
        os._exit(quit.code)

    attach(TerminalOptions.of(text).debugger(end))
