"""Returns the folders of the user: where caches and data are, also without a home folder."""

from __future__ import annotations

import os
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
        user = os.getuid() if hasattr(os, "getuid") else "user"
        return Path(tempfile.gettempdir(), f"warploom-{user}", *below)
