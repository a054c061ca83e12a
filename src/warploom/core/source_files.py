"""Reads the source files that the line tables of PTX name, for reports, traces and debuggers."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

LARGEST = 16 << 20
"""Bytes of the largest file that is read; a larger one is no source."""

_folders: list[Path] | None = None

_provided: dict[str, str] = {}


def provide_sources(texts: Mapping[str, str]) -> None:
    """Has the texts of some files read from now on instead of the files, which may have changed or
    be on another computer."""
    _provided.update(texts)


@contextmanager
def limited_source_files(*folders: str) -> Generator[None]:
    """Limits the source files that this process reads meanwhile to those of some folders, for
    kernels from outside: their line tables may name any file."""
    global _folders
    before, _folders = _folders, [Path(folder).resolve() for folder in folders]
    try:
        yield
    finally:
        _folders = before


def printable_name(file: str | Path) -> str:
    """Returns the name of a file as a text that has an encoding: bytes that are no UTF-8 are
    escaped."""
    return os.fsencode(file).decode("utf-8", "backslashreplace")


def read_source(name: str | Path, most_bytes: int = LARGEST) -> str | None:
    """Returns the text of a source file, None if it cannot be read, may not be, or is longer than
    `most_bytes`."""
    if str(name) in _provided:
        return _provided[str(name)]
    file = Path(name)
    try:
        if _folders is not None:
            real = file.resolve()
            if not any(real.is_relative_to(folder) for folder in _folders):
                return None
        if not file.is_file() or file.stat().st_size > most_bytes:
            return None
        return file.read_text("utf-8", errors="replace")
    except (OSError, RuntimeError, ValueError):
        return None
