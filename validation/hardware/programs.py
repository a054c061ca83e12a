"""Holds Warploom against a record of whole programs on an H100: counters and modelled cycles.

    python validation/hardware/programs.py FOLDER [--only REGEX] [--rows]

FOLDER/NAME is the folder in which the program NAME of the record runs, with its executable, `main`.
`h100_programs.json` has the arguments of each program, what it was built with beside nvcc's options
for all of them, and the costliest launch of each kernel in one shape among the first three of the
kernel. That launch is compared with the one that Warploom captures. Programs that take too long,
and launches of too many instructions, are named and left out. The tables are those of
`compare.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare import Compared, compare_run, counter_table, row_table, time_table
from records import HERE

import warploom as wl
from warploom.clients.environment import environment_for
from warploom.clients.settings import Settings
from warploom.core.errors import WarploomError
from warploom.host.core_files.capturing import read_captures
from warploom.host.core_files.replaying import SavedLaunch

DEVICE = "h100"
RECORDED = 3
"""The first launches of each kernel that are recorded."""
Shape = tuple[str, str, str]
"""A kernel's name with its template arguments, its grid and its block, as Nsight Compute has
them."""


@dataclass(frozen=True)
class Program:
    """Describes a recorded program: its name, its arguments, and the metrics of the costliest
    launch of each shape."""

    name: str
    arguments: tuple[str, ...]
    launches: Mapping[Shape, Mapping[str, float]]


@dataclass(frozen=True)
class Limits:
    """Bounds the work: seconds that a program may run, launches of it that are replayed, and warp
    instructions of a launch that is."""

    seconds: float
    launches: int
    instructions: float


def programs(pattern: str) -> Iterator[Program]:
    """Yields the programs of the record whose names match a regular expression."""
    record: dict[str, Any] = json.loads((HERE / "h100_programs.json").read_text("utf-8"))
    for name, content in record["programs"].items():
        if re.search(pattern, name):
            launches = {
                (kernel, grid, block): dict(zip(record["metrics"], values, strict=True))
                for kernel, grid, block, values in content["launches"]
            }
            yield Program(name, tuple(content["args"]), launches)


def compare_program(program: Program, place: Path, limits: Limits) -> Iterator[Compared | str]:
    """Runs a program in its folder, and yields its launches beside the recorded ones, and why
    others are left out."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(DEVICE).capturing(folder, "", 0, limits.launches)
        try:
            subprocess.run(
                [str(place / "main"), *program.arguments],
                cwd=place,
                env=environment_for(settings),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=limits.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            yield f"{program.name}: still runs after {limits.seconds:.0f} s"
            return
        missing, seen = dict(program.launches), Counter[str]()
        for captured in read_captures(Path(folder)):
            for entry in captured.launches:
                shape = entry.kernel, str(entry.grid), str(entry.block)
                seen[entry.kernel] += 1
                if entry.number not in captured.files or shape not in missing:
                    continue
                if seen[entry.kernel] > RECORDED:
                    continue
                title, metrics = f"{program.name} {entry.kernel}", missing.pop(shape)
                if (entry.instructions or 0) > limits.instructions:
                    yield f"{title}: {entry.instructions:,} warp instructions"
                    continue
                try:
                    yield compare_run(
                        title, _replay(Path(folder, captured.files[entry.number])), metrics, True
                    )
                except WarploomError as error:
                    yield f"{title}: {error}"
        for name, grid, block in missing:
            yield f"{program.name} {name}: no launch of {grid} blocks of {block} threads was saved"


def _replay(file: Path) -> wl.Run:
    saved = SavedLaunch(file)
    prepared = saved.ready(device=DEVICE, record=True)
    return prepared.launcher(*prepared.values, **saved.options)


def main(arguments: Sequence[str]) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description="Compare programs with a record of an H100.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="REGEX", help="programs, by name")
    parser.add_argument("--rows", action="store_true", help="print every launch")
    parser.add_argument("--most", type=int, default=4, help="launches of a program")
    parser.add_argument("--seconds", type=float, default=80, help="limit for a program")
    parser.add_argument(
        "--instructions",
        type=float,
        default=1e7,
        help="limit for the warp instructions of a launch",
    )
    given = parser.parse_args(arguments)
    limits = Limits(given.seconds, given.most, given.instructions)
    rows: list[Compared] = []
    for program in programs(given.only):
        place = given.folder / program.name
        if not (place / "main").exists():
            print(f"{program.name}: {place / 'main'} does not exist", flush=True)
            continue
        for one in compare_program(program, place, limits):
            if isinstance(one, str):
                print(one, flush=True)
            else:
                rows.append(one)
                if given.rows:
                    print([*row_table([one])][-1], flush=True)
    if rows:
        print("\n".join(("", *counter_table(rows), "", *time_table(rows))))


if __name__ == "__main__":
    main(sys.argv[1:])
