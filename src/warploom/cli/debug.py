"""`warploom debug`: a launch of a kernel from a file, or a program, in the debugger."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.options import DeviceOptions, File, LaunchOptions, RuleOptions, grouped
from warploom.cli.programs import Arguments, Program, ProgramOptions, start_program
from warploom.core.input_files import read_text
from warploom.debug.post_mortem import opened_session
from warploom.debug.terminal.face import TerminalOptions
from warploom.host.debugging import Quit, attach
from warploom.host.requests import prepared

Ex = Annotated[
    list[str] | None,
    typer.Option(
        "-c", "-ex", "--command", metavar="COMMAND", help="Run a debugger command; repeatable."
    ),
]
Script = Annotated[
    Path | None,
    typer.Option("-x", "--script", help="Run the commands in this file before any other commands."),
]
Batch = Annotated[bool, typer.Option("--batch", help="Exit after the commands have run.")]
Optimized = Annotated[
    bool,
    typer.Option(
        "--optimized", help="Compile with optimization; most local variables are then unavailable."
    ),
]
OneKernel = Annotated[str, typer.Option("--kernel", help="Debug only launches of this kernel.")]

DEBUG_BUILD = "-G"
"""The compiler's option for code in which every variable can be seen."""


DEBUG_BUILDS = {
    "NUMBA_CUDA_DEBUGINFO": "1",
    "NUMBA_OPT": "0",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES": "1",  # Triton
}
"""The same for kernels of Numba and Triton, as variables of the environment."""


def commands_of(commands: list[str] | None, script: Path | None) -> list[str]:
    """Returns the commands that the command line gives. Raises WarploomError."""
    found: list[str] = []
    if script is not None:
        found += read_text(script).splitlines()
    return found + (commands or [])


@grouped
def debug(
    file: File,
    launched: LaunchOptions,
    device: DeviceOptions,
    rules: RuleOptions,
    command: Ex = None,
    script: Script = None,
    optimized: Optimized = False,
    batch: Batch = False,
) -> None:
    """Debug a kernel launch, forward and backward, with the commands of cuda-gdb. If the file is a
    program (`warploom debug program.py`), debug the kernels that it launches. With --dap or --port
    PORT instead of a file, run a debug adapter for an editor.

    Example: `warploom debug saxpy.cu --grid 4 --block 256 --arg 1000 --arg 2.0 --arg
    'x:f32[1000]=arange' --arg 'y:f32[1000]=ones' -c 'break saxpy.cu:6 if i == 999' -c run`
    """
    gpu = device.make(launched.device, rules)
    if file.suffix in (".cu", ".hip") and not optimized:
        launched = replace(launched, option=[*(launched.option or ()), DEBUG_BUILD])
    request = launched.request(file)
    ready = prepared(gpu, request)
    commands = commands_of(command, script)
    alone = batch or (bool(commands) and not sys.stdin.isatty())
    attach(TerminalOptions(commands, alone).debugger())
    try:
        ready.launcher(*ready.values, **request.launch_options)
    except Quit as quit:
        raise typer.Exit(quit.code) from None
    finally:
        attach(None)


def debug_core(
    file: Annotated[Path, typer.Argument(help="A core file written by --core.")],
    command: Ex = None,
    script: Script = None,
    batch: Batch = False,
) -> None:
    """Open a core file in the debugger, at the point where the launch failed; you can step back
    from there.

    Example: `warploom debug kernel.wlcore -c 'backtrace' -c 'reverse-next'`
    """
    commands = commands_of(command, script)
    alone = batch or (bool(commands) and not sys.stdin.isatty())
    try:
        TerminalOptions(commands, alone).post_mortem(*opened_session(file))
    except Quit as quit:
        raise typer.Exit(quit.code) from None


@grouped
def debug_program(
    file: Program,
    arguments: Arguments = None,
    *,
    options: ProgramOptions,
    command: Ex = None,
    script: Script = None,
    kernel: OneKernel = "",
    optimized: Optimized = False,
    batch: Batch = False,
) -> None:
    """Run a program as `warploom run` does, and debug the kernels that the program launches. At the
    end of a kernel, `continue` runs to the next launch, and `detach` lets the program finish
    without the debugger.

    Example: `warploom debug -c 'break scale' train.py --epochs 1`
    """
    commands = commands_of(command, script)
    alone = batch or (bool(commands) and not sys.stdin.isatty())
    if not optimized:
        for name, value in DEBUG_BUILDS.items():
            os.environ.setdefault(name, value)
    wanted = TerminalOptions(commands, alone, kernel)
    settings = replace(options.settings("none"), debug=wanted.text())
    start_program(file, arguments or [], settings, () if optimized else (DEBUG_BUILD,))
