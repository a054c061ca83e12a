"""One launch from the command line: with its progress, and the buffers that are to be saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warploom.cli.progress import ProgressLine
from warploom.core.errors import WarploomError
from warploom.core.mangled import read_symbol
from warploom.core.output_files import writing
from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.requests import Request, prepared
from warploom.host.run import Run
from warploom.host.values import Argument, BufferArgument, parse_arguments

SUFFIX = ".npy"


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that ended without an error, and the buffers that it got, by name."""

    run: Run
    buffers: dict[str, Buffer]


def launch(gpu: Device, request: Request) -> Launched:
    """Loads the program, launches its kernel with the arguments, and saves what is to be saved."""
    files = _saves(request.saves, parse_arguments(request.args))
    ready = prepared(gpu, request)
    with ProgressLine(read_symbol(ready.launcher.kernel.name).template) as progress:
        made = ready.launcher(
            *ready.values,
            **request.launch_options,
            progress=progress,
        )
    for name, target in files.items():
        with writing(target), target.open("wb") as file:
            np.save(file, ready.buffers[name].copy_to_host())
    return Launched(made, ready.buffers)


def _saves(texts: Sequence[str], arguments: list[Argument]) -> dict[str, Path]:
    """Returns the file for each buffer that is to be saved, by the buffer's name."""
    names = [a.name for a in arguments if isinstance(a, BufferArgument)]
    files: dict[str, Path] = {}
    for text in texts:
        name, _, target = text.partition("=")
        if not target or name not in names:
            raise WarploomError(
                f"--save {text!r} is not NAME=FILE.npy with the name of a buffer (here:"
                f" {', '.join(names) or 'there is none'})"
            )
        folder = Path(target).absolute().parent
        if not folder.is_dir():
            raise WarploomError(f"--save {text!r}: there is no folder {folder}. Make it first.")
        if Path(target).is_dir():
            raise WarploomError(f"--save {text!r}: {target} is a folder. Name a file in it.")
        files[name] = Path(target if target.endswith(SUFFIX) else target + SUFFIX)
    return files
