"""Debugs launches that `debug.attaching` hands over in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from json import dumps, loads

from warploom.debug.attaching import AttachedDebugger
from warploom.debug.session import Session, Stop
from warploom.debug.terminal.shell import Terminal
from warploom.debug.terminal.stopping import set_breakpoint
from warploom.host.debugging import Quit, attach


@dataclass(frozen=True)
class TerminalOptions:
    """Says how a terminal is used: `commands` at the first launch, then what the user types, unless
    in a `batch`; `kernel` names the kernel whose launches are debugged, empty for all. `failing`:
    only launches that do something wrong come to the user."""

    commands: list[str] = field(default_factory=list[str])
    batch: bool = False
    kernel: str = ""
    failing: bool = False

    def text(self) -> str:
        """Returns them as a text for the environment of another process."""
        return dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> TerminalOptions:
        """Returns the options that `text` wrote."""
        return cls(**loads(text))

    def debugger(
        self,
        on_quit: Callable[[Quit], None] | None = None,
        terminal_ours: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> AttachedDebugger:
        """Returns a debugger that debugs launches so; `on_quit` is called where the user wants no
        more, `terminal_ours` gives the terminal to it for so long."""
        left = list(self.commands)
        repeated: list[str] | None = [] if on_quit is not None else None

        def face(session: Session) -> bool:
            with terminal_ours():
                return debug(session)

        def debug(session: Session) -> bool:
            terminal = Terminal(session)
            terminal.shell.repeated = repeated
            for text in list(repeated or ()):
                set_breakpoint(terminal.shell, text)
            if self.failing:
                stop = session.start()
                if stop.reason != "error":
                    return True
                left[:] = self.commands
                terminal.shell.stopped(stop, None)
            done = terminal.run(left, echo=True) if left else True
            left.clear()
            if self.batch and not done:
                raise Quit(1)
            if not (self.batch or terminal.quitting or terminal.leaving):
                terminal.talk()
            if terminal.quitting:
                raise Quit(0 if done else 1)
            return self.failing or not (self.batch or terminal.detaching)

        return AttachedDebugger(face, self.kernel, on_quit)

    def post_mortem(self, session: Session, stop: Stop) -> None:
        """Debugs a launch from its current position, where no thread waits for it. Raises Quit at
        the end."""
        terminal = Terminal(session)
        terminal.shell.stopped(stop, None)
        done = terminal.run(self.commands, echo=True)
        if not (self.batch or terminal.ends):
            terminal.talk(greets=False)
        raise Quit(0 if done else 1)


def attach_in_program(text: str) -> None:
    """Attaches the debugger to launches of this process, by the text of some options. Where the
    user quits, the process ends: its launches come from libraries that no exception passes."""

    def end(quit: Quit) -> None:
        sys.stdout.flush()
        os._exit(quit.code)

    attach(TerminalOptions.of(text).debugger(end))
