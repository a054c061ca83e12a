"""`warploom compare`: two runs, before and after a change, with a verdict."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.launches.launching import launch
from warploom.cli.launches.targets import Target
from warploom.cli.options import Json, LaunchOptions, RuleOptions, grouped
from warploom.core.errors import WarploomError
from warploom.core.input_files import decode_json, read_text
from warploom.report.compared import (
    comparison_as_json,
    render_comparison,
    render_comparison_text,
)
from warploom.report.comparison import RunTotals
from warploom.report.comparison import compare as compare_runs
from warploom.report.console import terminal
from warploom.report.export import as_json as report_as_json

Run = Annotated[
    Path,
    typer.Argument(
        help="A report (.json, from `warploom profile --json` or `warploom run --json FILE "
        "program`), a saved launch (.wlcore), or a kernel file. For a kernel file, the launch "
        "options specify the launch."
    ),
]


@grouped
def compare(
    before: Run,
    after: Run,
    launched: LaunchOptions,
    rules: RuleOptions,
    after_kernel: Annotated[
        str | None,
        typer.Option(help="Name of the kernel in the second file, if it differs from --kernel."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two runs. Print whether the second run is better than the first, by what factor, and
    all counts that changed, with the costliest change first.

    Example: `warploom compare transpose.cu transpose.cu --kernel transpose_naive --after-kernel
    transpose_tiled --grid 4x4 --block 32x8 --arg 'f32[128x128]=arange' --arg 'f32[128x128]=zeros'
    --arg 128`
    """
    later = launched if after_kernel is None else replace(launched, kernel=after_kernel)
    names = [_name(path, given) for path, given in ((before, launched), (after, later))]
    if names[0] == names[1]:
        names = [str(before), str(after)]
    first = RunTotals.of(names[0], _report(before, launched, rules))
    found = compare_runs(first, RunTotals.of(names[1], _report(after, later, rules)))
    if as_json:
        print(comparison_as_json(found))
    elif sys.stdout.isatty():
        render_comparison(found, terminal())
    else:
        print(render_comparison_text(found), end="")


def _name(path: Path, launched: LaunchOptions) -> str:
    """Returns what a run is called: its kernel, where a file has several, or its file."""
    return launched.kernel or path.name


def _report(path: Path, launched: LaunchOptions, rules: RuleOptions) -> object:
    """Returns the report of a run as data; that of a kernel or a saved launch with modelled
    time."""
    if path.suffix == ".json":
        try:
            return decode_json(read_text(path))
        except ValueError as error:
            raise WarploomError(f"{path} is not valid JSON: {error}") from None
    target = Target(str(path))
    given = LaunchOptions(device=launched.device) if target.is_saved else launched
    run = launch(target.source(given, **rules.given(), record=True)).run
    return report_as_json(run.summarised(run.time()))
