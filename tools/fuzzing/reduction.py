"""Reduces an input that shows an error to a smaller one that shows it, too (delta debugging)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

Part = TypeVar("Part")

TRIALS = 400
"""An input is not tried in more than so many forms."""

WORDS = re.compile(r"[ \t]*[%.\w$]+|[ \t]*[^\s]|\s")


def reduce_content(
    content: str | bytes, fails: Callable[[str | bytes], bool], trials: int = TRIALS
) -> str | bytes:
    """Returns a part of a failing text or of failing bytes that fails as well: of a text some of
    its lines, of these some of their words; of bytes some."""
    left = [trials]

    def counted(part: str | bytes) -> bool:
        left[0] -= 1
        return left[0] >= 0 and fails(part)

    if isinstance(content, bytes):
        return bytes(_reduce([*content], lambda some: counted(bytes(some))))
    lines = _reduce(content.splitlines(keepends=True), lambda some: counted("".join(some)))
    for at, line in enumerate(lines):
        end = "\n" * line.endswith("\n")

        def line_fails(words: Sequence[str], at: int = at, end: str = end) -> bool:
            return counted("".join(chain(lines[:at], words, [end], lines[at + 1 :])))

        lines[at] = "".join(_reduce(WORDS.findall(line.removesuffix(end)), line_fails)) + end
    return "".join(lines)


def _reduce(parts: list[Part], fails: Callable[[list[Part]], bool]) -> list[Part]:
    """Drops stretches of parts for as long as the rest fails: halves first, then shorter ones, down
    to single parts."""
    size = max(1, len(parts) // 2)
    while True:
        before, at = len(parts), 0
        while at < len(parts):
            rest = [*parts[:at], *parts[at + size :]]
            if fails(rest):
                parts = rest
            else:
                at += size
        if size == 1 and len(parts) == before:
            return parts
        size = max(1, size // 2)
