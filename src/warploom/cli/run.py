"""`warploom run`: one launch of a kernel from a file, its results and its report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import numpy as np
from rich.console import Console

from warploom.cli.launching import launch
from warploom.cli.options import (
    DeviceOptions,
    File,
    Json,
    LaunchOptions,
    RuleOptions,
    Save,
    grouped,
)
from warploom.host.buffer import Buffer
from warploom.host.run import Run
from warploom.report.export import as_json as report_as_json
from warploom.report.render import render

FIRST = 8
"""So many elements of each buffer are shown."""


@grouped
def run(
    file: File,
    launched: LaunchOptions,
    device: DeviceOptions,
    rules: RuleOptions,
    save: Save = None,
    as_json: Json = False,
) -> None:
    """Launch a kernel, print the first elements of its buffers and the report. Before a program
    (`warploom run program.py`), run that with the software GPU: see `warploom run-program --help`.

    Example: `warploom run saxpy.cu --kernel saxpy --grid 4096 --block 256 --arg 1048576 --arg 2.0
    --arg 'x:f32[1048576]=arange' --arg 'y:f32[1048576]=ones' --save y=y.npy`
    """
    gpu = device.make(launched.device, rules)
    made = launch(gpu, launched.request(file, save))
    _print(made.run, made.buffers, as_json)


def _print(made: Run, buffers: Mapping[str, Buffer], as_json: bool) -> None:
    if as_json:
        shown = {name: _described(buffer) for name, buffer in buffers.items()}
        print(json.dumps({**report_as_json(made.summary), "buffers": shown}, indent=2))
        return
    for name, buffer in buffers.items():
        first = np.array2string(buffer.view.reshape(-1)[:FIRST], separator=", ")
        more = ", ..." if buffer.view.size > FIRST else ""
        shape = "x".join(map(str, buffer.shape))
        print(f"{name}: {buffer.dtype}[{shape}] = {first[:-1]}{more}]")
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
