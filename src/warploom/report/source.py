"""The text of source lines, for reports that show counts or instructions beside them."""

from __future__ import annotations

from functools import cache

from warploom.core.printable import printable
from warploom.core.source_files import read_source


def source_line(file: str, number: int) -> str:
    """Returns a line of a file (the first is 1), stripped, without control characters; empty where
    it cannot be read."""
    lines = _lines(file)
    return lines[number - 1].strip() if 1 <= number <= len(lines) else ""


def split_line(line: str) -> tuple[str, int]:
    """Returns the parts of "file:line"."""
    file, _, number = line.rpartition(":")
    return file, int(number)


@cache
def _lines(file: str) -> tuple[str, ...]:
    return tuple(printable(read_source(file) or "").splitlines())
