"""Splits the text of the Warp IR (`ir.text`) into a tree of lines with words and attributes, and
prints attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from warploom.core.errors import WarploomError

Read = TypeVar("Read")

INDENT = "  "
"""What a line is indented by, for each line that it belongs to."""

Attribute = str | int | bool | Iterable[str] | None


def attributes(**values: Attribute) -> str:
    """Returns attributes as text ` name=value ...`; those that are None, False or an empty
    collection are omitted, True is `yes`, and several values are joined by commas."""
    words: list[str] = []
    for name, value in values.items():
        if isinstance(value, bool):
            words += [f"{name}=yes"] if value else []
        elif isinstance(value, str | int):
            words.append(f"{name}={value}")
        elif value is not None and (joined := ",".join(value)):
            words.append(f"{name}={joined}")
    return "".join(f" {word}" for word in words)


@dataclass
class Line:
    """Holds a line of the text: its `words`, the `values` of its attributes by name, and the
    `inner` lines, which follow it with deeper indentation."""

    number: int
    text: str
    inner: list[Line] = field(default_factory=list["Line"])
    words: list[str] = field(default_factory=list[str])
    values: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        """Splits the text into words and attributes."""
        for word in self.text.split():
            name, equals, value = word.partition("=")
            if equals:
                self.values[name] = value
            else:
                self.words.append(word)

    def read(self, reader: Callable[[Line], Read]) -> Read:
        """Returns the result of a reader for the line. Raises WarploomError with the line's number
        if the reader raises KeyError, ValueError, IndexError or MsgspecError."""
        try:
            return reader(self)
        except (KeyError, ValueError, IndexError, msgspec.MsgspecError) as error:
            raise WarploomError(f"line {self.number} of the Warp IR: {error!r}") from error

    def list(self, name: str) -> list[str]:
        """Returns the elements of an attribute's list, which commas separate; empty if it is
        absent."""
        value = self.values.get(name, "")
        return value.split(",") if value else []

    def numbers(self, name: str) -> tuple[int, ...]:
        """Returns the elements of an attribute's list as integers."""
        return tuple(map(int, self.list(name)))


def tree_of(text: str) -> list[Line]:
    """Returns the lines of a text that are not indented, each with its inner lines; empty lines and
    those that begin with `#` are skipped. Raises WarploomError for a line that is indented by more
    than one level beyond the line before."""
    roots: list[Line] = []
    open_lines: list[Line] = []
    for number, written in enumerate(text.splitlines(), 1):
        if not written.strip() or written.startswith("#"):
            continue
        depth = (len(written) - len(written.lstrip())) // len(INDENT)
        if depth > len(open_lines):
            raise WarploomError(f"line {number} of the Warp IR has too much indentation")
        line = Line(number, written.strip())
        (open_lines[depth - 1].inner if depth else roots).append(line)
        # Lines as deep as this one, or deeper, are complete; the next may be an inner line of this
        # one.
        del open_lines[depth:]
        open_lines.append(line)
    return roots
