"""`warploom run`: one launch of a kernel from a file, its results and its report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from warploom.cli.progress import ProgressLine
from warploom.cli.values import Argument, BufferArgument, parse_arguments
from warploom.core.errors import WarploomError
from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.engines import ENGINES
from warploom.host.module import Module
from warploom.host.run import Run
from warploom.report.export import as_json as report_as_json
from warploom.report.render import render

FIRST = 8
"""So many elements of each buffer are shown."""

ARGUMENT_HELP = (
    "An argument, in the kernel's order: a number (42, 2.5), or a buffer"
    " TYPE[SHAPE]=zeros|ones|arange|random:SEED|FILE.npy with TYPE f16 f32 f64 i8..i64 u8..u64, or"
    " FILE.npy. A buffer may have a name before it (y:f32[64]=ones), else its position is one."
)


def run(
    file: Annotated[Path, typer.Argument(help="A CUDA C++ (.cu) or PTX (.ptx) file.")],
    kernel: Annotated[
        str | None, typer.Option(help="The kernel to launch; needed where there are several.")
    ] = None,
    grid: Annotated[str, typer.Option(metavar="X[,Y[,Z]]", help="Blocks of the grid.")] = "1",
    block: Annotated[str, typer.Option(metavar="X[,Y[,Z]]", help="Threads of a block.")] = "32",
    shared: Annotated[int, typer.Option(help="Bytes of dynamic shared memory a block.")] = 0,
    arg: Annotated[list[str] | None, typer.Option(metavar="VALUE", help=ARGUMENT_HELP)] = None,
    device: Annotated[
        str | None, typer.Option(help="A device of `warploom devices`; h100 if left out.")
    ] = None,
    engine: Annotated[str, typer.Option(help=f"The engine: {' or '.join(ENGINES)}.")] = "compiled",
    option: Annotated[
        list[str] | None, typer.Option(help="An option for the compiler, such as -DN=4.")
    ] = None,
    save: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE.npy", help="Write a buffer to a file after the launch."),
    ] = None,
    max_instructions: Annotated[
        int | None, typer.Option(help="Stop after so many warp instructions.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Launch a kernel, print the first elements of its buffers and the report.

    Example: `warploom run saxpy.cu --kernel saxpy --grid 4096 --block 256 --arg 1048576 --arg 2.0
    --arg 'x:f32[1048576]=arange' --arg 'y:f32[1048576]=ones' --save y=y.npy`
    """
    arguments = parse_arguments(arg or ())
    files = _saves(save or [], arguments)
    launch_grid, launch_block = _dims("--grid", grid), _dims("--block", block)
    gpu = Device(device, engine=engine)
    module = gpu.load(file, option or ())
    launcher = module[kernel or _only_kernel(module)][launch_grid, launch_block, 0, shared]
    values, buffers = _upload(gpu, arguments)
    with ProgressLine(launcher.kernel.name) as progress:
        made = launcher(*values, max_instructions=max_instructions, progress=progress)
    for name, target in files.items():
        np.save(target, buffers[name].copy_to_host())
    _print(made, buffers, as_json)


def _dims(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise WarploomError(f"{option} {text!r} is not X, X,Y or X,Y,Z in numbers") from None


def _saves(texts: list[str], arguments: list[Argument]) -> dict[str, Path]:
    """The file for each buffer that is to be saved, by the buffer's name."""
    names = [a.name for a in arguments if isinstance(a, BufferArgument)]
    files: dict[str, Path] = {}
    for text in texts:
        name, _, target = text.partition("=")
        if not target or name not in names:
            raise WarploomError(
                f"--save {text!r} is not NAME=FILE.npy with the name of a buffer (here:"
                f" {', '.join(names) or 'there is none'})"
            )
        files[name] = Path(target)
    return files


def _only_kernel(module: Module) -> str:
    if len(module.kernels) != 1:
        listed = ", ".join(module.kernels) or "none"
        raise WarploomError(f"{module.name}: say which kernel to launch (--kernel); has {listed}")
    return module.kernels[0]


def _upload(gpu: Device, arguments: list[Argument]) -> tuple[list[Any], dict[str, Buffer]]:
    """The values to launch with, and the buffers among them by name."""
    values: list[Any] = []
    buffers: dict[str, Buffer] = {}
    for argument in arguments:
        if isinstance(argument, BufferArgument):
            name = argument.name
            called = f"argument {name}" if name.isdigit() else name
            buffer = buffers[name] = gpu.to_device(argument.content, called)
            values.append(buffer)
        else:
            values.append(argument)
    return values, buffers


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
    first: list[object] = buffer.view.reshape(-1)[:FIRST].tolist()
    return {"dtype": str(buffer.dtype), "shape": list(buffer.shape), "first": first}
