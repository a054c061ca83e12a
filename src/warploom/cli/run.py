"""`warploom run`: one launch of a kernel from a file, its results and its report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import numpy as np
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
    Save,
    Schedule,
    Seed,
    Shared,
    StrictTarget,
    WarpSize,
    Workers,
    launch,
)
from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.requests import Request
from warploom.host.run import Run
from warploom.report.export import as_json as report_as_json
from warploom.report.render import render

FIRST = 8
"""So many elements of each buffer are shown."""


def run(
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
    save: Save = None,
    max_instructions: MaxInstructions = None,
    cooperative: Cooperative = False,
    schedule: Schedule = "converge",
    seed: Seed = 0,
    workers: Workers = 1,
    strict_target: StrictTarget = False,
    caches: Caches = False,
    l1: L1 = None,
    bank_bytes: BankBytes = None,
    as_json: Json = False,
) -> None:
    """Launch a kernel, print the first elements of its buffers and the report. Before a program
    (`warploom run program.py`), run that with the software GPU: see `warploom run-program --help`.

    Example: `warploom run saxpy.cu --kernel saxpy --grid 4096 --block 256 --arg 1048576 --arg 2.0
    --arg 'x:f32[1048576]=arange' --arg 'y:f32[1048576]=ones' --save y=y.npy`
    """
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
        saves=save or (),
        max_instructions=max_instructions,
        cooperative=cooperative,
    )
    made = launch(gpu, request)
    _print(made.run, made.buffers, as_json)


def _print(made: Run, buffers: Mapping[str, Buffer], as_json: bool) -> None:
    if as_json:
        shown = {name: _described(buffer) for name, buffer in buffers.items()}
        print(json.dumps({**report_as_json(made.summary), "buffers": shown}, indent=2))
        return
    for name, buffer in buffers.items():
        first = np.array2string(buffer.view.reshape(-1)[:FIRST], separator=", ")
        more = ", ..." if buffer.view.size > FIRST else ""
        print(f"{name}: {buffer.dtype}{list(buffer.shape)} = {first[:-1]}{more}]")
    if buffers:
        print()
    if sys.stdout.isatty():
        render(made.summary, Console())
    else:
        print(made.report(), end="")


def _described(buffer: Buffer) -> dict[str, object]:
    first = [_plain(element) for element in buffer.view.reshape(-1)[:FIRST].tolist()]
    return {"dtype": str(buffer.dtype), "shape": list(buffer.shape), "first": first}


def _plain(element: object) -> object:
    """JSON has no word for what is not finite: it becomes a text."""
    return str(element) if isinstance(element, float) and not np.isfinite(element) else element
