"""`warploom profile`: what a launch cost, and what to do about it."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from warploom.cli.launches.launching import launch
from warploom.cli.launches.targets import CaptureOptions, Target
from warploom.cli.options import (
    DeviceOptions,
    Json,
    LaunchOptions,
    RuleOptions,
    grouped,
)
from warploom.report.console import terminal
from warploom.report.export import as_csv as report_as_csv
from warploom.report.export import as_json as report_as_json
from warploom.report.render import render, render_text
from warploom.report.terms import VOCABULARIES, translator


@grouped
def profile(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    device: DeviceOptions,
    rules: RuleOptions,
    terms: Annotated[
        str | None,
        typer.Option(
            help=f"Language whose terms the report uses: {', '.join(VOCABULARIES)}. Default: the "
            "language of the program."
        ),
    ] = None,
    time: Annotated[
        bool,
        typer.Option(
            "--time",
            help="Also model the launch's time, and report scheduler statistics and stalls.",
        ),
    ] = False,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the metrics as CSV.")] = False,
) -> None:
    """Launch a kernel and print its report: counters, occupancy, costly lines, advice. If the file
    is a program, report one of the program's launches. Put options before the program's name, and
    the program's arguments after the name.

    Example: `warploom profile --kernel scale --launch 2 ./app --steps 3`

    Example: `warploom profile transpose.cu --kernel transpose_naive --grid 4x4 --block 32x8 --arg
    'f32[128x128]=arange' --arg 'f32[128x128]=zeros' --arg 128 --terms opencl`
    """
    if terms is not None:
        translator(terms)  # a wrong word is refused before the work
    run = launch(target.source(launched, captured, **device.given(rules), record=time)).run
    report = run.summarised(run.time() if time else None)
    if as_json:
        print(json.dumps(report_as_json(report), indent=2, allow_nan=False))
    elif as_csv:
        print(report_as_csv(report), end="")
    elif sys.stdout.isatty():
        render(report, terminal(), terms)
    else:
        print(render_text(report, terms), end="")
