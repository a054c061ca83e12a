"""Finds the programs of others that films are made with."""

from __future__ import annotations

import shutil

from warploom.core.errors import WarploomError


def find_installed(purpose: str, title: str, *names: str) -> str:
    """Returns the path of the first of `names` (also a package's name) that is in PATH. Raises
    WarploomError with the way to install it where none is: "`purpose` needs `title` ..."."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise WarploomError(
            f"{purpose} needs {title}, which is not on the PATH. Install it (Debian and Ubuntu: "
            f"`apt-get install {names[0]}`; macOS: `brew install {names[0]}`)."
        )
    return found
