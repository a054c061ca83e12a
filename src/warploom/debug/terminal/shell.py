"""Reads commands and does them, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from warploom.core.errors import WarploomError
from warploom.core.input_files import InputFileError, read_text
from warploom.debug.session import DebugError, Session
from warploom.debug.terminal import info, motion, showing, stopping
from warploom.debug.terminal.context import Command, Shell

COMMANDS: dict[str, Command] = {
    **motion.COMMANDS,
    **stopping.COMMANDS,
    **showing.COMMANDS,
    **info.COMMANDS,
}
"""All commands, by name."""

ALIASES = {
    "r": "run",
    "c": "continue",
    "n": "next",
    "s": "step",
    "si": "stepi",
    "ni": "nexti",
    "b": "break",
    "tb": "tbreak",
    "d": "delete",
    "p": "print",
    "bt": "backtrace",
    "i": "info",
    "l": "list",
    "u": "until",
    "fin": "finish",
    "rc": "reverse-continue",
    "rs": "reverse-step",
    "rn": "reverse-next",
    "rsi": "reverse-stepi",
    "q": "quit",
    "f": "frame",
    "where": "backtrace",
    "h": "help",
    "disas": "disassemble",
    "inspect": "print",
    "advance": "until",
    "rni": "reverse-stepi",
    "set var": "set variable",
    "k": "kill",
    "gcore": "generate-core-file",
}

END = {"quit", "exit", "kill", "detach"}

PROMPT = "(warploom) "

STEPPING = (
    "next",
    "step",
    "stepi",
    "nexti",
    "continue",
    "reverse-next",
    "reverse-step",
    "list",
    "x",
)
"""Lists the commands that an empty line repeats."""


class Terminal:
    """Debugs one launch by commands. `quitting` says that the user wants no more of the program,
    `leaving` that the launch has ended and the program goes on, `detaching` that it goes on without
    a debugger."""

    def __init__(self, session: Session, out: TextIO | None = None) -> None:
        self.shell = Shell(session, out or sys.stdout)
        self.quitting = self.leaving = self.detaching = False
        self._last = ""

    def run(self, lines: Iterable[str], *, echo: bool = False) -> bool:
        """Executes commands until they end, or one quits. Returns False where some have failed."""
        done = True
        for line in lines:
            if echo:
                self.shell.say(f"{PROMPT}{line.rstrip()}")
            done &= self.do(line)
            if self.ends:
                break
        return done

    def talk(self, read: Callable[[str], str] = input, *, greets: bool = True) -> None:
        """Executes what the user types, until `quit` or the end of the input; `greets`: print the
        position of the launch first."""
        self.shell.interactive = True
        try:
            if greets:
                self.shell.say(self.shell.place_text())
            while not self.ends:
                self._answer(read)
        finally:
            self.shell.close()

    def _answer(self, read: Callable[[str], str]) -> None:
        """Executes the next line that the user types."""
        try:
            line = read(PROMPT)
        except EOFError:
            self.shell.say("")
            self.quitting = True
        except KeyboardInterrupt:
            self.shell.say("Type `quit` to exit.")
        else:
            self.do(line)

    @property
    def ends(self) -> bool:
        """Returns whether the user wants no more of this launch."""
        return self.quitting or self.leaving

    def do(self, line: str) -> bool:
        """Executes one command; if that fails, prints the error and returns False."""
        text = line.split("#")[0].strip() if line.lstrip().startswith("#") else line.strip()
        if not text:
            text = self._last
        if not text:
            return True
        name, rest = split(text)
        self._last = text if name in STEPPING else ""
        if name in END - {"detach"}:
            self.quitting = True
            return True
        if name == "detach" or (name == "continue" and self.shell.session.has_ended):
            self.leaving, self.detaching = True, name == "detach"
            return True
        if name == "source":
            return self._source(rest)
        try:
            COMMANDS[name].do(self.shell, rest)
        except KeyboardInterrupt:
            self.shell.say("Interrupted.")
        except WarploomError as error:
            self.shell.say(str(error))
            return False
        return True

    def _source(self, file: str) -> bool:
        """Executes the commands of a file."""
        try:
            lines = read_text(Path(file)).split("\n")
        except InputFileError as error:
            self.shell.say(str(error))
            return False
        return self.run(lines)


TWO_WORDS = (
    *("set variable", "set var", "set scheduler-locking", "show scheduler-locking"),
    *("who wrote", "who read", "where diverged"),
)
"""Names of commands that are two words."""


def split(text: str) -> tuple[str, str]:
    """Returns the full name of the command of a line, and what follows. The name may be an alias or
    the start of one name only. Raises DebugError where it is none."""
    for two in TWO_WORDS:
        if text == two or text.startswith(two + " "):
            return ALIASES.get(two, two), text[len(two) :].strip()
    word, _, rest = text.partition(" ")
    plain, slash, format = word.partition("/")
    name = ALIASES.get(plain, plain)
    rest = f"/{format} {rest}".strip() if slash else rest.strip()
    if name in COMMANDS or name in END or name == "source":
        return name, rest
    fitting = [each for each in _names() if each.startswith(plain)]
    if len(fitting) == 1:
        return fitting[0], rest
    return "help", plain if not fitting else f"ambiguous {plain}: {', '.join(sorted(fitting))}"


def _names() -> Iterator[str]:
    yield from COMMANDS
    yield from END


def help_text(name: str) -> str:
    """Returns the text of `help`. Raises DebugError where there is no such command."""
    if not name:
        commands = sorted({(n, c.usage, c.summary) for n, c in COMMANDS.items()})
        return "\n".join(f"{usage or n:34} {summary}" for n, usage, summary in commands)
    if name.startswith("ambiguous "):
        raise DebugError(f"{name.removeprefix('ambiguous ')}")
    full = ALIASES.get(name, name)
    if full not in COMMANDS:
        raise DebugError(f"there is no command {name}; `help` lists the commands")
    command = COMMANDS[full]
    return f"{command.usage or full}\n    {command.summary}"


def _help(shell: Shell, rest: str) -> None:
    shell.say(help_text(rest))


COMMANDS["help"] = Command(_help, "List the commands, or describe one.", "help [COMMAND]")
