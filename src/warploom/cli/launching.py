"""One launch from the command line: the options that `run` and `profile` share, and the launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from warploom.cli.progress import ProgressLine
from warploom.core.errors import WarploomError
from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.engines import ENGINES
from warploom.host.requests import Request, prepared
from warploom.host.run import Run
from warploom.host.values import Argument, BufferArgument, parse_arguments
from warploom.machine.launch import POLICIES

ARGUMENT_HELP = (
    "An argument, in the kernel's order: a number (42, 2.5), or a buffer"
    " TYPE[SHAPE]=zeros|ones|arange|random:SEED|FILE.npy with TYPE f16 f32 f64 i8..i64 u8..u64, or"
    " FILE.npy. A buffer may have a name before it (y:f32[64]=ones), else its position is one."
)

File = Annotated[Path, typer.Argument(help="A CUDA C++ (.cu) or PTX (.ptx) file.")]
KernelName = Annotated[
    str | None, typer.Option(help="The kernel to launch; needed where there are several.")
]
Grid = Annotated[str, typer.Option(metavar="X[,Y[,Z]]", help="Blocks of the grid.")]
Block = Annotated[str, typer.Option(metavar="X[,Y[,Z]]", help="Threads of a block.")]
Shared = Annotated[int, typer.Option(help="Bytes of dynamic shared memory a block.")]
Arg = Annotated[list[str] | None, typer.Option(metavar="VALUE", help=ARGUMENT_HELP)]
DeviceName = Annotated[
    str | None, typer.Option(help="A device of `warploom devices`; h100 if left out.")
]
Engine = Annotated[
    str | None,
    typer.Option(help=f"The engine: {' or '.join(ENGINES)}; the first that can, if left out."),
]
WarpSize = Annotated[
    int, typer.Option(metavar="32|64", help="Lanes of a warp; 64 for AMD's wavefronts.")
]
CompilerOption = Annotated[
    list[str] | None, typer.Option(help="An option for the compiler, such as -DN=4.")
]
Save = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE.npy", help="Write a buffer to a file after the launch."),
]
MaxInstructions = Annotated[int | None, typer.Option(help="Stop after so many warp instructions.")]
StrictTarget = Annotated[
    bool, typer.Option(help="Refuse PTX whose .target is newer than the device, as a driver does.")
]
Caches = Annotated[bool, typer.Option(help="Count hits and misses of the device's caches.")]
L1 = Annotated[
    bool | None,
    typer.Option("--l1/--no-l1", help="Cache global loads in L1, where the device leaves it open."),
]
BankBytes = Annotated[
    int | None, typer.Option(help="Width of the banks of shared memory on 3.x: 4 or 8.")
]
Cooperative = Annotated[
    bool, typer.Option(help="A cooperative launch: all blocks run at once, or none does.")
]
Schedule = Annotated[
    str,
    typer.Option(help=f"Who goes first where nothing says so: {', '.join(POLICIES)}."),
]
Seed = Annotated[int, typer.Option(help="The seed of the schedule.")]
Workers = Annotated[
    int, typer.Option(min=1, help="Threads that share the blocks, where results stay the same.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that ended well, and the buffers that it got, by name."""

    run: Run
    buffers: dict[str, Buffer]


def launch(gpu: Device, request: Request) -> Launched:
    """Load the program, launch its kernel with the arguments, and save what is to be saved."""
    files = _saves(request.saves, parse_arguments(request.args))
    ready = prepared(gpu, request)
    with ProgressLine(ready.launcher.kernel.name) as progress:
        made = ready.launcher(
            *ready.values,
            max_instructions=request.max_instructions,
            cooperative=request.cooperative,
            progress=progress,
        )
    for name, target in files.items():
        np.save(target, ready.buffers[name].copy_to_host())
    return Launched(made, ready.buffers)


def _saves(texts: Sequence[str], arguments: list[Argument]) -> dict[str, Path]:
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
