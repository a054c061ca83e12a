"""Holds Warploom against a record of whole programs on an H100: counters and modelled cycles.

    python validation/hardware/programs.py RECORD FOLDER [--only REGEX] [--rows] [--most N]

RECORD has a line of JSON for each program: its `name`, its `args`, and `launches`, each with the
mangled `kernel`, `grid`, `block` and the `metrics` of Nsight Compute. FOLDER/NAME is the folder in
which a program runs; its executable there is `main`, built for the recorded device:

    make CC="warploom nvcc" ARCH=sm_90

Of each kernel in one shape, the launch that executes the most instructions is compared with the
recorded one that does. Programs that take too long, and launches of too many instructions, are
listed and left out. The tables are those of `compare.py`.
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

import warploom as wl
from warploom.clients.environment import environment_for
from warploom.clients.settings import Settings
from warploom.core.errors import WarploomError
from warploom.core.mangled import read_symbol
from warploom.host.core_files.capturing import read_captures
from warploom.host.core_files.replaying import SavedLaunch

DEVICE = "h100"
RECORDED = 3
"""The first launches of each kernel that are recorded."""
INSTRUCTIONS = "smsp__inst_executed.sum"
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


def programs(record: Path, pattern: str) -> Iterator[Program]:
    """Yields the programs of a record whose names match a regular expression."""
    for line in record.read_text("utf-8").splitlines():
        content: dict[str, Any] = json.loads(line)
        if not re.search(pattern, content["name"]):
            continue
        costliest: dict[Shape, Mapping[str, float]] = {}
        for launch in content["launches"]:
            name = read_symbol(launch["kernel"]).template
            shape, metrics = (name, launch["grid"], launch["block"]), launch["metrics"]
            if (
                metrics[INSTRUCTIONS]
                > costliest.get(shape, metrics | {INSTRUCTIONS: 0})[INSTRUCTIONS]
            ):
                costliest[shape] = metrics
        yield Program(content["name"], tuple(content["args"]), costliest)


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
    parser.add_argument("record", type=Path)
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
    for program in programs(given.record, given.only):
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
