"""`warploom time`: the modelled time of one launch, where it went, and what bounds the kernel."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from warploom.cli.launching import (
    L1,
    Arg,
    BankBytes,
    Block,
    CompilerOption,
    Cooperative,
    DeviceName,
    File,
    Grid,
    KernelName,
    MaxInstructions,
    Save,
    Schedule,
    Seed,
    Shared,
    StrictTarget,
    launch,
)
from warploom.host.device import Device
from warploom.host.requests import Request
from warploom.report.time import render_time, render_time_text, time_as_json
from warploom.timing.schedulers import POLICIES


def time(
    file: File,
    kernel: KernelName = None,
    grid: Grid = "1",
    block: Block = "32",
    shared: Shared = 0,
    arg: Arg = None,
    device: DeviceName = None,
    option: CompilerOption = None,
    save: Save = None,
    max_instructions: MaxInstructions = None,
    cooperative: Cooperative = False,
    schedule: Schedule = "converge",
    seed: Seed = 0,
    strict_target: StrictTarget = False,
    l1: L1 = None,
    bank_bytes: BankBytes = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Launch a kernel and model its time: cycles, stalls, throughputs, what bounds it.

    Example: `warploom time saxpy.cu --kernel saxpy --grid 4096 --block 256 --device v100 --arg
    1048576 --arg 2.0 --arg 'f32[1048576]=arange' --arg 'f32[1048576]=ones' --scheduler gto`
    """
    gpu = Device(
        device,
        strict_target=strict_target,
        l1_global=l1,
        bank_bytes=bank_bytes,
        schedule=schedule,
        seed=seed,
        record=True,
    )
    request = Request(
        *(file, kernel, grid, block, shared, arg or (), option or ()),
        saves=save or (),
        max_instructions=max_instructions,
        cooperative=cooperative,
    )
    made = launch(gpu, request).run.time(scheduler=scheduler, sample=sample, workers=workers)
    if as_json:
        print(time_as_json(made))
    elif sys.stdout.isatty():
        render_time(made, Console())
    else:
        print(render_time_text(made), end="")
