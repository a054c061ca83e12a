"""One launch from the command line: with its progress, and the buffers that are to be saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warploom.cli.launches.targets import LaunchSource
from warploom.cli.progress import ProgressLine
from warploom.core.errors import WarploomError
from warploom.core.mangled import read_symbol
from warploom.core.output_files import writing
from warploom.host.buffer import Buffer
from warploom.host.run import Run

SUFFIX = ".npy"


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that ended without an error, and the buffers that it got, by name."""

    run: Run
    buffers: dict[str, Buffer]


def launch(source: LaunchSource, saves: Sequence[str] = ()) -> Launched:
    """Makes a launch ready, launches, and saves the buffers that are to be saved (NAME=FILE)."""
    ready = source.ready()
    files = _saves(saves, tuple(ready.buffers))
    with ProgressLine(read_symbol(ready.launcher.kernel.name).template) as progress:
        made = ready.launcher(*ready.values, **source.options, progress=progress)
    for name, target in files.items():
        with writing(target), target.open("wb") as file:
            np.save(file, ready.buffers[name].copy_to_host())
    return Launched(made, ready.buffers)


def _saves(texts: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Returns the file for each buffer that is to be saved, by its name, one of `names`."""
    files: dict[str, Path] = {}
    for text in texts:
        name, _, target = text.partition("=")
        if not target or name not in names:
            raise WarploomError(
                f"--save {text!r} must have the form NAME=FILE.npy, where NAME is one of this "
                f"launch's buffers ({', '.join(names) or 'none'})"
            )
        folder = Path(target).absolute().parent
        if not folder.is_dir():
            raise WarploomError(
                f"--save {text!r}: the folder {folder} does not exist. Create it first."
            )
        if Path(target).is_dir():
            raise WarploomError(
                f"--save {text!r}: {target} is a folder. Name a file in this folder."
            )
        files[name] = Path(target if target.endswith(SUFFIX) else target + SUFFIX)
    return files
