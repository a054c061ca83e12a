"""`warploom time`: the modelled time of one launch, where it went, and what bounds the kernel."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from warploom.cli.launches.launching import launch
from warploom.cli.launches.targets import CaptureOptions, Target
from warploom.cli.options import (
    CacheState,
    Code,
    Json,
    LaunchOptions,
    RuleOptions,
    Sample,
    Save,
    Scheduler,
    StrictTarget,
    grouped,
)
from warploom.cli.tracing import TraceOptions, recorded_launch
from warploom.core.errors import WarploomError
from warploom.core.output_files import write_bytes, write_text
from warploom.observe.trace import Trace
from warploom.report.console import terminal
from warploom.report.roofline import as_svg, as_text, roofline_of
from warploom.report.time import render_time, render_time_text, time_as_json
from warploom.timing.result import Timing
from warploom.timing.traced import MOST_STATES, check_sm
from warploom.ui.record import record_with


@dataclass(frozen=True)
class Outputs:
    """The files that are written beside the report."""

    roofline: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Write the roofline plot to a file.")
    ] = None
    perfetto: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.pftrace",
            help="Write a cycle-by-cycle trace of each warp's activity on one SM. Open the trace "
            "at ui.perfetto.dev.",
        ),
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE.wl",
            help="Write a trace of the launch, including the modelled times, for `warploom view`.",
        ),
    ] = None
    sm: Annotated[
        int, typer.Option(min=0, help="The SM whose warps are shown by --perfetto and --trace.")
    ] = 0


@dataclass(frozen=True)
class ModelOptions:
    """Options of the model of time."""

    scheduler: Scheduler = None
    sample: Sample = None
    code: Code = None
    cache_state: CacheState = "cold"
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of threads that simulate SMs in parallel. The number does not "
            "affect the result.",
        ),
    ] = None


DIVERGED = (
    "The model runs the sides of divergent branches one after the other. Hardware of compute "
    "capability\n7.0 and later may overlap the sides of a branch, but no published source measures "
    "this overlap."
)


@grouped
def time(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    rules: RuleOptions,
    model: ModelOptions,
    outputs: Outputs,
    strict_target: StrictTarget = False,
    save: Save = None,
    as_json: Json = False,
) -> None:
    """Model the time of a launch of a kernel or a program. Print cycles, stalls, throughputs, and
    the bottleneck.

    Example: `warploom time saxpy.cu --kernel saxpy --grid 4096 --block 256 --device v100 --arg
    1048576 --arg 2.0 --arg 'f32[1048576]=arange' --arg 'f32[1048576]=ones' --scheduler gto`
    """
    device = {**rules.given(), "strict_target": strict_target, "record": True}
    source = target.source(launched, captured, **device)
    run = launch(source, save or ()).run
    made = run.time(
        scheduler=model.scheduler,
        sample=model.sample,
        code=model.code,
        caches=model.cache_state,
        workers=model.workers,
        timeline=MOST_STATES if outputs.perfetto or outputs.trace else 0,
    )
    if outputs.roofline:
        _draw(made, outputs.roofline)
    if outputs.perfetto:
        _write_perfetto(made, outputs.perfetto, outputs.sm)
    if outputs.trace:
        request, prepare = recorded_launch(target.path, source, launched, rules, TraceOptions())
        request = replace(request, timed=True, scheduler=model.scheduler, sm=outputs.sm)
        _write_trace(record_with(request, made, prepare=prepare), outputs.trace)
    if as_json:
        print(time_as_json(made))
    elif sys.stdout.isatty():
        render_time(made, terminal())
    else:
        print(render_time_text(made), end="")
    if not as_json and made.launch.schedule.independent and run.counters.divergent_branches:
        print(DIVERGED)


def _draw(made: Timing, file: Path) -> None:
    line = roofline_of(made)
    if line is None:
        raise WarploomError("the kernel has no floating-point operations, so there is no roofline")
    write_text(file, as_svg(line))
    print(as_text(line), file=sys.stderr)


def _write_perfetto(made: Timing, file: Path, sm: int) -> None:
    check_sm(made, sm)
    try:
        from warploom.report.perfetto import write_trace
    except ImportError:
        raise WarploomError(
            'a trace for Perfetto requires the perfetto package: pip install "warploom[perfetto]"'
        ) from None
    count = write_trace(made, file, sm)
    left_out = " (the maximum; all further states are omitted)" if count >= MOST_STATES else ""
    print(f"{file}: {count:,} warp states on SM {sm}{left_out}", file=sys.stderr)


def _write_trace(trace: Trace, file: Path) -> None:
    write_bytes(file, trace.to_bytes())
    modelled = trace.modelled
    assert modelled is not None
    left_out = f"; {modelled.left_out:,} warp cycles omitted" if modelled.left_out else ""
    print(
        f"{file}: {trace.steps.count:,} steps, and {modelled.count:,} warp states on SM "
        f"{modelled.sm}{left_out}. View it with `warploom view {file}`.",
        file=sys.stderr,
    )
