"""Finds the example kernels that an installation has."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from warploom.core.errors import WarploomError


def examples_folder() -> Path:
    """Returns the folder with the examples: in the package, else in the clone that it is in."""
    package = Path(str(files("warploom")))
    for folder in (package / "examples", package.parent.parent / "examples"):
        if (folder / "saxpy.cu").exists():
            return folder
    raise WarploomError("this installation has no examples. Reinstall the warploom wheel.")
