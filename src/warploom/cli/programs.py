"""`warploom run PROGRAM` and `warploom shell`: whole programs, with the software GPU in place."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.options import AnyOrder, Core, Engine, Schedule, Seed, Workers, grouped
from warploom.cli.verbs import is_command
from warploom.clients.binaries import check_binary
from warploom.clients.environment import environment_for
from warploom.clients.nvcc import build_program, completed, found_nvcc
from warploom.clients.settings import REPORTS, STREAM_ORDERS, Settings
from warploom.core.errors import WarploomError

Program = Annotated[
    str,
    typer.Argument(
        help="A Python program, an executable, or a CUDA C++ file with a main function (needs "
        "nvcc)."
    ),
]
Arguments = Annotated[list[str] | None, typer.Argument(help="Arguments of the program.")]
DeviceName = Annotated[str, typer.Option(help="A device listed by `warploom devices`.")]
Memory = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Size of the device's memory, such as 512M. Default: the real device's memory size.",
    ),
]
CachingAllocator = Annotated[
    bool,
    typer.Option(
        "--caching-allocator",
        help="Let PyTorch's allocator cache freed memory, as on a GPU. An access past the end of "
        "a tensor is then not detected if it stays within a cached allocation.",
    ),
]
Timeline = Annotated[
    bool,
    typer.Option(
        "--timeline",
        help="Model the time of each launch and copy. At the end, report when each "
        "launch or copy ran in its stream, and which ones overlapped.",
    ),
]
TimelinePage = Annotated[
    str,
    typer.Option(
        metavar="FILE.html",
        help="Write the timeline to a page that also shows which kernels are resident at each "
        "moment; %p in the name stands for the process ID. Implies --timeline.",
    ),
]
StreamOrder = Annotated[
    str,
    typer.Option(
        help=f"Order of the work in streams: {', '.join(STREAM_ORDERS)}. With 'issued', work runs "
        "in call order. With 'late', work runs only when the host waits for it. With 'random', "
        "all pending work runs in a seeded order when the host waits for any part of it."
    ),
]
ReportKind = Annotated[
    str, typer.Option(help=f"Report to print on standard error at the end: {', '.join(REPORTS)}.")
]
JsonFile = Annotated[
    str,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the report of all kernels as JSON; %p in the name stands for the process ID, "
        "for programs with several processes.",
    ),
]


@dataclass(frozen=True)
class ProgramOptions:
    """`Settings` of a program as options."""

    device: DeviceName = Settings.device
    engine: Engine = Settings.engine
    schedule: Schedule = Settings.schedule
    seed: Seed = Settings.seed
    any_order: AnyOrder = Settings.any_order
    workers: Workers = Settings.workers
    memory: Memory = Settings.memory
    caching_allocator: CachingAllocator = Settings.caching_allocator
    core: Core = Settings.core
    timeline: Timeline = Settings.timeline
    timeline_page: TimelinePage = Settings.timeline_page
    stream_order: StreamOrder = Settings.stream_order

    def settings(self, report: str, json: str = "") -> Settings:
        """Returns the settings, checked now and not in the program."""
        path = str(Path(json).absolute()) if json else ""
        core = str(Path(self.core).absolute()) if self.core else ""
        page = str(Path(self.timeline_page).absolute()) if self.timeline_page else ""
        made = Settings(**asdict(self), report=report, json=path)
        timeline = self.timeline or bool(page)
        return replace(made, core=core, timeline_page=page, timeline=timeline).checked()


@grouped
def program(
    file: Program,
    arguments: Arguments = None,
    *,
    options: ProgramOptions,
    report: ReportKind = "short",
    as_json: JsonFile = "",
) -> None:
    """Run an unchanged program that uses a GPU through PyTorch, numba-cuda, cuda.core, tinygrad,
    Triton, PyCUDA or the CUDA runtime. Everything after the program's name is passed to the
    program.

    Example: `warploom run --device rtx-4090 --report full train.py --epochs 3`
    """
    settings = options.settings(report, as_json)
    start_program(file, arguments or [], settings)


def start_program(
    file: str, arguments: list[str], settings: Settings, options: Sequence[str] = ()
) -> None:
    """Replaces this process by a program, with the software GPU installed; `options` are nvcc's,
    where it is built here."""
    _become([*program_command(file, options), *arguments], settings)


@grouped
def shell(options: ProgramOptions, report: ReportKind = "none") -> None:
    """Start a shell in which every program uses the software GPU."""
    _become([os.environ.get("SHELL", "/bin/sh")], options.settings(report))


def nvcc(context: typer.Context) -> None:
    """Compile a program with NVIDIA's nvcc (from the PATH, otherwise from its wheels) so that
    `warploom run` can run it: by default with the shared runtime, PTX and line information. All
    arguments are passed to nvcc.

    Example: `warploom nvcc -O3 saxpy.cu -o saxpy && warploom run ./saxpy`
    """
    command = [found_nvcc(), *completed(context.args)]
    os.execv(command[0], command)


def program_command(file: str, options: Sequence[str]) -> list[str]:
    """Returns how a program is started: Python programs by this Python, others by themselves."""
    path = Path(file)
    if path.suffix == ".py":
        if not path.exists():
            raise WarploomError(f"{file} cannot be read: there is no such file")
        return [sys.executable, file]
    if path.suffix in (".cu", ".hip"):
        return [str(build_program(path, options))]
    if is_command(file) or not path.is_file():
        return [file]
    check_binary(path)
    return [str(path.absolute())]


def _become(command: list[str], settings: Settings) -> None:
    """Replaces this process by the program: signals and its exit code are its own."""
    environment = environment_for(settings)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise WarploomError(f"{command[0]} cannot be started: {error.strerror}") from None
