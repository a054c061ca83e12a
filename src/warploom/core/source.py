"""Positions in source text: where a token stands, and which line of the user's program made it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Text:
    """A PTX text: what messages call it, and what it holds."""

    name: str = "PTX"
    content: str = field(default="", repr=False)


NO_TEXT = Text()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a PTX text: 1-based line and column of its first character, and its length."""

    line: int
    column: int
    length: int = 1
    text: Text = field(default=NO_TEXT, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """Return the line that it begins in."""
        lines = self.text.content.split("\n")
        return lines[self.line - 1] if 0 < self.line <= len(lines) else ""

    def __str__(self) -> str:
        return f"{self.text.name}:{self.line}"


BUILT_IN_HEADER = "__nv_nvrtc_builtin_header.h"
"""NVRTC's name of the header that is part of itself."""

_TOOLKIT = re.compile(r"(^|/)(nvidia/cu\d+|cuda(-[\d.]+)?|targets/[\w-]+)/include/")
"""Folders of CUDA's headers, in wheels and in installations of the toolkit."""


def in_toolkit(file: str) -> bool:
    """Returns whether a file is part of CUDA, by its name."""
    file = file.replace("\\", "/")
    return file.endswith(BUILT_IN_HEADER) or _TOOLKIT.search(file) is not None


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the program that was compiled to PTX, as its `.loc` directive states it.

    `function` and `inlined_at` are set where the line was inlined into another function.
    """

    file: str
    line: int
    column: int = 0
    function: str | None = None
    inlined_at: Location | None = None

    @property
    def written(self) -> Location:
        """Return the place in the user's own text: for a line of the compiler's or of CUDA's
        headers, the one that it was inlined into."""
        place = self
        while place.inlined_at is not None and place.in_toolkit:
            place = place.inlined_at
        return place

    @property
    def in_toolkit(self) -> bool:
        """Returns whether the file is part of CUDA."""
        return in_toolkit(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
