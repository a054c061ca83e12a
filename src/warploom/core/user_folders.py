"""Returns the folders of the user: where caches and data are, also without a home folder."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def user_folder(variable: str, *below: str) -> Path:
    """Returns the folder that an environment variable names, else one below the user's home
    folder. A user without one (no HOME, no entry in the list of users, as in some containers) has
    a folder of temporary files."""
    named = os.environ.get(variable)
    if named:
        return Path(named)
    try:
        return Path.home().joinpath(*below)
    except RuntimeError:
        return _temporary().joinpath(*below)


def temporary_folder() -> Path:
    """Returns the user's own folder of temporary files, made where it does not exist. Raises
    OSError where it cannot be made, or others can write to it."""
    folder = _temporary()
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if hasattr(os, "getuid") and (
        found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o22
    ):
        raise PermissionError(f"other users can write to {folder}: remove it")
    return folder


def _temporary() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir(), f"warploom-{user}")
