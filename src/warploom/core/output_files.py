"""Writes the files that users ask for; each error says which file, why, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from warploom.core.errors import WarploomError

_REMEDIES = {
    errno.ENOSPC: "Free some space, or choose a file on another disk.",
    errno.EDQUOT: "Free some space, or choose a file on another disk.",
    errno.EFBIG: "Choose a file on a disk that supports files of this size.",
    errno.EACCES: "Choose a file in a folder that you can write to.",
    errno.EPERM: "Choose a file in a folder that you can write to.",
    errno.EROFS: "Choose a file in a folder that you can write to.",
    errno.EISDIR: "Choose a file, not a folder.",
    errno.ENOENT: "Create its folder first.",
    errno.ENOTDIR: "Part of the path is a file, not a folder: choose another path.",
    errno.EEXIST: "Choose another name, or remove the existing file or folder.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}


def write_error(target: str | Path, error: OSError) -> str:
    """Returns why a file or a stream cannot be written, and what to do."""
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0, "")
    return f"cannot write {target}: {reason}.{f' {remedy}' if remedy else ''}"


@contextmanager
def writing(target: str | Path) -> Generator[None]:
    """Raises WarploomError for an OSError within, where a file or a folder is written."""
    try:
        yield
    except OSError as error:
        raise WarploomError(write_error(target, error)) from None


def write_text(file: str | Path, text: str) -> None:
    """Writes a text to a file, as UTF-8. Raises WarploomError."""
    write_bytes(file, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(file: str | Path, data: bytes) -> None:
    """Writes bytes to a file. Raises WarploomError."""
    with writing(file):
        Path(file).write_bytes(data)
