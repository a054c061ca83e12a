"""`warploom examples`: the example kernels and programs, copied into a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from warploom.core.output_files import write_bytes, writing
from warploom.host.examples import examples_folder

SUFFIXES = frozenset([".cu", ".cl", ".hip", ".py", ".ipynb"])


def examples(
    folder: Annotated[Path, typer.Argument(help="The folder to create.")] = Path("examples"),
) -> None:
    """Copy the example kernels, programs and notebooks into a folder. Existing files are kept.

    Example: `warploom examples`, then `warploom run examples/saxpy.cu --kernel saxpy --grid 4
    --block 256 --arg 1000 --arg 2.0 --arg 'x:f32[1000]=arange' --arg 'y:f32[1000]=ones'`
    """
    source = examples_folder()
    copied = 0
    for file in _files_of(source):
        target = folder / file.relative_to(source)
        if target.exists():
            continue
        with writing(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, file.read_bytes())
        copied += 1
    print(f"{copied} files copied to {folder}" if copied else f"{folder} already has all examples")


def _files_of(folder: Path) -> Iterator[Path]:
    """Yields the files of the examples, in order."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in SUFFIXES and "__pycache__" not in file.parts:
            yield file
