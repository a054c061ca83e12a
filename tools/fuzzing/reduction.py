"""Reduces an input that shows an error to a smaller one that shows it, too (delta debugging)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Parts = Sequence[str | bytes]

TRIALS = 400
"""An input is not tried in more than so many forms."""


def reduce_content(
    content: str | bytes, fails: Callable[[str | bytes], bool], trials: int = TRIALS
) -> str | bytes:
    """Returns a part of a failing text or of failing bytes that fails as well: of a text some of
    its lines, then of its words, of bytes some of them."""
    left = [trials]

    def counted(parts: Parts) -> bool:
        left[0] -= 1
        return left[0] >= 0 and fails(joined(parts, content))

    splits = [r"[^\n]*\n|[^\n]+", r"\s+|[%.\w$]+|\S"] if isinstance(content, str) else [""]
    for pattern in splits:
        parts: Parts = (
            re.findall(pattern, content)
            if isinstance(content, str)
            else [content[n : n + 1] for n in range(len(content))]
        )
        content = joined(reduce_parts(parts, counted), content)
    return content


def joined(parts: Parts, like: str | bytes) -> str | bytes:
    """Returns the parts as one text or as bytes, as `like` is."""
    if isinstance(like, str):
        return "".join(part for part in parts if isinstance(part, str))
    return b"".join(part for part in parts if isinstance(part, bytes))


def reduce_parts(parts: Parts, fails: Callable[[Parts], bool]) -> Parts:
    """Drops stretches of parts for as long as the rest fails: halves first, then shorter ones, down
    to single parts."""
    size = max(1, len(parts) // 2)
    while True:
        before, at = len(parts), 0
        while at < len(parts):
            rest = [*parts[:at], *parts[at + size :]]
            if len(rest) < len(parts) and fails(rest):
                parts = rest
            else:
                at += size
        if size == 1 and len(parts) == before:
            return parts
        size = max(1, size // 2)
