"""Makes temporary folders that are removed also where a signal ends the process."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_folders: set[tuple[int, Path]] = set()
"""Folders that are in use, each with the process that made it: a fork has the same set."""


@contextmanager
def temporary_folder() -> Generator[Path]:
    """Makes a temporary folder, and removes it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="warploom-"))
    entry = os.getpid(), folder
    _folders.add(entry)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _folders.discard(entry)


def remove_temporary_folders() -> None:
    """Removes the folders that this process uses, before a signal ends it."""
    for process, folder in list(_folders):
        if process == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)
