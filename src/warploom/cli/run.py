"""`warploom run`: one launch of a kernel from a file, its results and its report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from warploom.cli.launches.launching import Launched, launch
from warploom.cli.launches.targets import Target
from warploom.cli.options import (
    DeviceOptions,
    Json,
    LaunchOptions,
    RuleOptions,
    Save,
    grouped,
)
from warploom.cli.starting.expectations import differences
from warploom.core.streams import report
from warploom.host.buffer import Buffer
from warploom.host.run import Run
from warploom.report.console import terminal
from warploom.report.export import as_json as report_as_json
from warploom.report.render import WIDTH, Parts, render, render_text

DIFFERENT = 1
"""The exit status where a buffer is not as expected."""

Expect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=CONTENT",
        help="Compare a buffer after the launch with a file (NAME=FILE.npy) or with content in "
        "the format of --arg (NAME=ones). The exit status is 1 if they do not match.",
    ),
]

FIRST = 8
"""The elements of each buffer that are shown."""

MOST_COLUMNS = 1000
"""More than the columns of any line, so that NumPy does not wrap it."""

MOST_BUFFERS = 3
"""The buffers that are shown without --details."""

Details = Annotated[
    bool, typer.Option("--details", help="Print all tables of the report and all advice.")
]
Sections = Annotated[
    list[str] | None,
    typer.Option(
        "--section",
        metavar="NAME",
        help="Print only this section of the report: launch, occupancy, instruction, memory, "
        "source, advice.",
    ),
]


@grouped
def run(
    target: Target,
    launched: LaunchOptions,
    device: DeviceOptions,
    rules: RuleOptions,
    save: Save = None,
    as_json: Json = False,
    details: Details = False,
    section: Sections = None,
    expect: Expect = None,
) -> None:
    """Launch a kernel, and print the first elements of its buffers and the largest costs. If the
    file is a program (`warploom run program.py`), run it on the software GPU: see `warploom
    run-program --help`. If a .cu file has a main function, --kernel or --arg launches a single
    kernel instead of the program.

    Example: `warploom run saxpy.cu --kernel saxpy --grid 4096 --block 256 --arg 1048576 --arg 2.0
    --arg 'x:f32[1048576]=arange' --arg 'y:f32[1048576]=ones' --save y=y.npy`
    """
    made = launch(target.source(launched, **device.given(rules)), save or ())
    differing = list(differences(expect or (), made.buffers))
    if as_json:
        _print_json(made.run, made.buffers)
    else:
        _print_report(target.path, launched, made, Shown(details, section or ()))
    for text in differing:
        report(f"error: {text}")
    if differing:
        raise typer.Exit(DIFFERENT)
    if expect and not as_json:
        print(f"\nAs expected: {', '.join(text.partition('=')[0] for text in expect)}.")


@dataclass(frozen=True, slots=True)
class Shown:
    """Holds the parts of a report that are shown."""

    details: bool
    sections: Sequence[str]


def _print_report(file: Path, launched: LaunchOptions, made: Launched, shown: Shown) -> None:
    """Prints the buffers and the report of a launch."""
    if not shown.sections:
        _print_buffers(made.buffers, len(made.buffers) if shown.details else MOST_BUFFERS)
    command = "" if shown.details else f"warploom time {launched.command_line(file)}"
    parts = Parts(shown.details, shown.sections, command)
    if sys.stdout.isatty():
        render(made.run.summary, terminal(), parts=parts)
    else:
        print(render_text(made.run.summary, parts=parts), end="")


def _print_json(made: Run, buffers: Mapping[str, Buffer]) -> None:
    shown = {name: _described(buffer) for name, buffer in buffers.items()}
    print(json.dumps({**report_as_json(made.summary), "buffers": shown}, indent=2))


def _print_buffers(buffers: Mapping[str, Buffer], most: int) -> None:
    """Prints the first elements of at most `most` buffers, a line for each, and an empty line."""
    for name, buffer in list(buffers.items())[:most]:
        print(_buffer_line(name, buffer))
    if len(buffers) > most:
        print(f"{len(buffers) - most} more buffers: --details shows them.")
    if buffers:
        print()


def _buffer_line(name: str, buffer: Buffer) -> str:
    """Returns a line with the first elements of a buffer: FIRST of them, or as many as fit."""
    values, shape = buffer.view.reshape(-1), "x".join(map(str, buffer.shape))
    line = ""
    for count in range(FIRST, 0, -1):
        first = np.array2string(values[:count], separator=", ", max_line_width=MOST_COLUMNS)
        more = ", ..." if values.size > count else ""
        line = f"{name}: {buffer.dtype}[{shape}] = {first[:-1]}{more}]"
        if len(line) <= WIDTH:
            break
    return line


def _described(buffer: Buffer) -> dict[str, object]:
    first = [_plain(element) for element in buffer.view.reshape(-1)[:FIRST].tolist()]
    return {"dtype": str(buffer.dtype), "shape": list(buffer.shape), "first": first}


def _plain(element: object) -> object:
    """JSON has no word for what is not finite: it becomes a text."""
    return str(element) if isinstance(element, float) and not np.isfinite(element) else element
