"""Reads the lines of the text of the Warp IR (`ir.text`): words, attributes, and the
lines that are indented behind one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from warploom.core.errors import WarploomError
from warploom.ir.text import INDENT

Read = TypeVar("Read")


@dataclass
class Line:
    """A line of the text: its words, its attributes, and the lines that are indented behind it."""

    number: int
    text: str
    inner: list[Line] = field(default_factory=list["Line"])
    words: list[str] = field(default_factory=list[str])
    values: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for word in self.text.split():
            name, equals, value = word.partition("=")
            if equals:
                self.values[name] = value
            else:
                self.words.append(word)

    def read(self, reader: Callable[[Line], Read]) -> Read:
        """Returns what a reader makes of the line. Raises WarploomError, with the number of the
        line, where that is nothing."""
        try:
            return reader(self)
        except (KeyError, ValueError, IndexError, msgspec.MsgspecError) as error:
            raise WarploomError(f"line {self.number} of the Warp IR: {error!r}") from error

    def list(self, name: str) -> list[str]:
        """Returns the parts of an attribute; none of one that is not there."""
        value = self.values.get(name, "")
        return value.split(",") if value else []

    def numbers(self, name: str) -> tuple[int, ...]:
        """Returns the numbers of an attribute."""
        return tuple(map(int, self.list(name)))


def tree_of(text: str) -> list[Line]:
    """Returns the lines of a text that are not indented, with those behind them."""
    roots: list[Line] = []
    open_lines: list[Line] = []
    for number, written in enumerate(text.splitlines(), 1):
        if not written.strip() or written.startswith("#"):
            continue
        depth = (len(written) - len(written.lstrip())) // len(INDENT)
        if depth > len(open_lines):
            raise WarploomError(f"line {number} of the Warp IR is indented too far")
        line = Line(number, written.strip())
        (open_lines[depth - 1].inner if depth else roots).append(line)
        del open_lines[depth:]
        open_lines.append(line)
    return roots
