"""`warploom time`: the modelled time of one launch, where it went, and what bounds the kernel."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from warploom.cli.launching import launch
from warploom.cli.options import (
    File,
    Json,
    LaunchOptions,
    RuleOptions,
    Save,
    StrictTarget,
    grouped,
)
from warploom.host.device import Device
from warploom.report.time import render_time, render_time_text, time_as_json
from warploom.timing.schedulers import POLICIES


@grouped
def time(
    file: File,
    launched: LaunchOptions,
    rules: RuleOptions,
    strict_target: StrictTarget = False,
    save: Save = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help=f"Which ready warp goes first: {', '.join(POLICIES)}."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Replay only so many waves of blocks.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads that share the SMs; the result is the same.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Launch a kernel and model its time: cycles, stalls, throughputs, what bounds it.

    Example: `warploom time saxpy.cu --kernel saxpy --grid 4096 --block 256 --device v100 --arg
    1048576 --arg 2.0 --arg 'f32[1048576]=arange' --arg 'f32[1048576]=ones' --scheduler gto`
    """
    gpu = Device(
        launched.device,
        strict_target=strict_target,
        l1_global=rules.l1,
        bank_bytes=rules.bank_bytes,
        schedule=rules.schedule,
        seed=rules.seed,
        record=True,
    )
    run = launch(gpu, launched.request(file, save)).run
    made = run.time(scheduler=scheduler, sample=sample, workers=workers)
    if as_json:
        print(time_as_json(made))
    elif sys.stdout.isatty():
        render_time(made, Console())
    else:
        print(render_time_text(made), end="")
