"""`warploom sass`: source, PTX and machine code of a kernel side by side, with counts."""

from __future__ import annotations

import sys

from warploom.cli.launches.launching import launch
from warploom.cli.launches.targets import CaptureOptions, Target
from warploom.cli.options import Json, LaunchOptions, RuleOptions, Sample, Scheduler, grouped
from warploom.report.console import terminal
from warploom.report.sass import render_sass, render_sass_text, sass_as_json, sass_rows


@grouped
def sass(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    rules: RuleOptions,
    scheduler: Scheduler = None,
    sample: Sample = None,
    as_json: Json = False,
) -> None:
    """Print the source, PTX and machine code of a launched kernel side by side, with counts and
    stalls.

    Example: `warploom sass saxpy.cu --kernel saxpy --grid 4096 --block 256 --device t4 --arg
    1048576 --arg 2.0 --arg 'f32[1048576]=arange' --arg 'f32[1048576]=ones'`
    """
    run = launch(target.source(launched, captured, **rules.given(), record=True)).run
    machine = run.machine
    rows = sass_rows(
        machine, run.counters, run.time(scheduler=scheduler, sample=sample, code="machine")
    )
    resources = str(run.kernel.resources)
    if as_json:
        print(sass_as_json(machine, rows, resources))
    elif sys.stdout.isatty():
        render_sass(machine, rows, resources, terminal())
    else:
        print(render_sass_text(machine, rows, resources), end="")
