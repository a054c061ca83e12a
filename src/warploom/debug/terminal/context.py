"""Holds what commands of the terminal share: the session, and how places are written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TextIO

from warploom.core.errors import WarploomError
from warploom.core.printable import printable
from warploom.debug.session import DebugError, Session, Stop
from warploom.debug.stops import Breakpoint
from warploom.debug.values import written


@dataclass(frozen=True)
class Command:
    """A command: what does it, one line of help, and how it is written."""

    do: Callable[[Shell, str], None]
    summary: str
    usage: str = ""


@dataclass
class Shell:
    """Holds the state of a terminal on a session: `displays` are the expressions that are shown at
    each stop, `next_listing` the file and line at which `list` goes on, `history` the number of the
    value that `print` has shown last. `interactive`: a user types the commands. `servers`
    are the processes that serve pages which this terminal has opened. `repeated` are the
    breakpoints of a program, which each of its launches gets; None for one launch."""

    session: Session
    out: TextIO
    displays: dict[int, str] = field(default_factory=dict[int, str])
    next_listing: tuple[str, int] | None = None
    history: int = 0
    interactive: bool = False
    repeated: list[str] | None = None
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def say(self, text: str) -> None:
        """Writes a line; names and texts from files cannot control the terminal."""
        self.out.write(printable(text.rstrip("\n")) + "\n")
        self.out.flush()

    def close(self) -> None:
        """Ends the servers of pages."""
        for server in self.servers:
            server.terminate()
            server.wait()
        self.servers.clear()

    # ---- places ---------------------------------------------------------------------------------

    def focus_text(self) -> str:
        """Returns the thread in focus as cuda-gdb writes it."""
        session = self.session
        focus, launch = session.focus, session.launch
        block = launch.block_index(focus.block)
        thread = launch.thread_index(focus.warp, focus.lane)
        return (
            f"kernel {session.program.title.partition('(')[0]}, block {_tuple(block)}, thread"
            f" {_tuple(thread)}, warp {focus.warp}, lane {focus.lane}"
        )

    def place_text(self) -> str:
        """Returns where the thread in focus is, with its line of source."""
        session = self.session
        try:
            frames = session.frames()
        except WarploomError as error:
            return str(error)
        frame = frames[min(session.focus.frame, len(frames) - 1)]
        index = session.instruction_of(session.thread()) or 0
        where = f"{PurePath(frame.file).name}:{frame.line}" if frame.line else f"*{index}"
        lines = [f"{frame.function} () at {where}"]
        source = session.source_lines(frame.file) if frame.line else None
        if source is not None and 0 < frame.line <= len(source):
            lines.append(f"{frame.line}\t{source[frame.line - 1]}")
            self.next_listing = (frame.file, max(1, frame.line - 5))
        elif not frame.line:
            lines.append(f"{index}\t{self.instruction_text(index)}")
        return "\n".join(lines)

    def instruction_text(self, index: int) -> str:
        """Returns an instruction as PTX."""
        from warploom.ptx.printer import print_instruction

        return print_instruction(self.session.program.instructions[index])

    # ---- stops ----------------------------------------------------------------------------------

    def stopped(self, stop: Stop, before: object) -> None:
        """Prints the position of the launch, and why it stopped. `before` is the focus of the
        previous stop."""
        session = self.session
        for each in stop.breakpoints:
            self.say(f"{_title(each)}")
        if stop.message:
            self.say(stop.message)
        if stop.reason in ("end", "none"):
            return
        if stop.reason == "exited":
            self.say("The thread in focus has exited the kernel.")
        focus = session.focus
        if before is None or (focus.block, focus.warp, focus.lane) != before:
            self.say(f"[Switching focus to {self.focus_text()}]")
        self.say(self.place_text())
        for number, text in self.displays.items():
            self._display(number, text)

    def _display(self, number: int, text: str) -> None:
        try:
            evaluator = self.session.evaluator()
            self.say(f"{number}: {text} = {written(evaluator.value(text), evaluator.thread)}")
        except WarploomError as error:
            self.say(f"{number}: {text} = <{error}>")

    def key(self) -> tuple[int, int, int]:
        """Returns the thread in focus, to compare with that of later."""
        focus = self.session.focus
        return focus.block, focus.warp, focus.lane


def _tuple(index: tuple[int, int, int]) -> str:
    return f"({','.join(map(str, index))})"


def _title(each: Breakpoint) -> str:
    if each.watched is not None and not each.event:
        return f"Watchpoint {each.number}: {each.text}" if each.number else f"{each.text}:"
    kind = "Catchpoint" if each.event else "Breakpoint"
    return f"{kind} {each.number}, {each.text}" if each.number else f"{each.text}:"


def number_of(text: str, what: str, standard: int | None = None) -> int:
    """Returns the number that a command was given. Raises DebugError where it is none."""
    if not text.strip() and standard is not None:
        return standard
    try:
        return int(text.strip(), 0)
    except ValueError:
        raise DebugError(f"expected {what}, not `{text}`") from None
