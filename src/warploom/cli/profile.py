"""`warploom profile`: what a launch cost, and what to do about it."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from warploom.cli.launching import (
    L1,
    Arg,
    BankBytes,
    Block,
    Caches,
    CompilerOption,
    Cooperative,
    DeviceName,
    Engine,
    File,
    Grid,
    Json,
    KernelName,
    MaxInstructions,
    Schedule,
    Seed,
    Shared,
    StrictTarget,
    WarpSize,
    Workers,
    launch,
)
from warploom.host.device import Device
from warploom.host.requests import Request
from warploom.report.export import as_csv as report_as_csv
from warploom.report.export import as_json as report_as_json
from warploom.report.render import render, render_text
from warploom.report.terms import VOCABULARIES, translator


def profile(
    file: File,
    kernel: KernelName = None,
    grid: Grid = "1",
    block: Block = "32",
    shared: Shared = 0,
    arg: Arg = None,
    device: DeviceName = None,
    engine: Engine = None,
    warp_size: WarpSize = 32,
    option: CompilerOption = None,
    max_instructions: MaxInstructions = None,
    cooperative: Cooperative = False,
    schedule: Schedule = "converge",
    seed: Seed = 0,
    workers: Workers = 1,
    strict_target: StrictTarget = False,
    caches: Caches = False,
    l1: L1 = None,
    bank_bytes: BankBytes = None,
    terms: Annotated[
        str, typer.Option(help=f"The words of the report: {', '.join(VOCABULARIES)}.")
    ] = "cuda",
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the numbers as CSV.")] = False,
) -> None:
    """Launch a kernel and print its report: counters, occupancy, costly lines, advice.

    Example: `warploom profile transpose.cu --kernel transpose_naive --grid 4,4 --block 32,8 --arg
    'f32[128,128]=arange' --arg 'f32[128,128]=zeros' --arg 128 --terms opencl`
    """
    translator(terms)  # a wrong word is refused before the work
    gpu = Device(
        device,
        engine=engine,
        warp_size=warp_size,
        strict_target=strict_target,
        caches=caches,
        l1_global=l1,
        bank_bytes=bank_bytes,
        schedule=schedule,
        seed=seed,
        workers=workers,
    )
    request = Request(
        *(file, kernel, grid, block, shared, arg or (), option or ()),
        max_instructions=max_instructions,
        cooperative=cooperative,
    )
    report = launch(gpu, request).run.summary
    if as_json:
        print(json.dumps(report_as_json(report), indent=2, allow_nan=False))
    elif as_csv:
        print(report_as_csv(report), end="")
    elif sys.stdout.isatty():
        render(report, Console(), terms)
    else:
        print(render_text(report, terms), end="")
