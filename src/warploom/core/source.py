"""Positions in source text: where a token stands, and which line of the user's program made it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one PTX text: 1-based line and column of its first character, and its length."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the program that was compiled to PTX, as its `.loc` directive tells it.

    `function` and `inlined_at` are set where the line was inlined into another function.
    """

    file: str
    line: int
    column: int = 0
    function: str | None = None
    inlined_at: Location | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
