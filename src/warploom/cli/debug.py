"""`warploom debug`: one launch of a kernel from a file in the debugger."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.options import DeviceOptions, File, LaunchOptions, RuleOptions, grouped
from warploom.core.errors import WarploomError
from warploom.debug.attaching import AttachedDebugger, Quit
from warploom.debug.session import Session
from warploom.debug.terminal.shell import Terminal
from warploom.host.debugging import attach
from warploom.host.requests import prepared

Ex = Annotated[
    list[str] | None,
    typer.Option("-ex", "-c", "--command", metavar="COMMAND", help="Do a command; repeatable."),
]
Script = Annotated[
    Path | None, typer.Option("-x", "--script", help="Do the commands of a file first.")
]
Optimized = Annotated[
    bool,
    typer.Option(
        "--optimized", help="Compile as without a debugger; most local variables are gone then."
    ),
]
Batch = Annotated[bool, typer.Option(help="Leave when the commands are done.")]


DEBUG_BUILD = "-G"
"""The compiler's option for code in which every variable can be seen."""


def commands_of(commands: list[str] | None, script: Path | None) -> list[str]:
    """Return the commands that the command line gives. Raises WarploomError."""
    found: list[str] = []
    if script is not None:
        try:
            found += script.read_text().splitlines()
        except OSError as error:
            raise WarploomError(f"--script {script}: {error.strerror}") from None
    return found + (commands or [])


def terminal_face(commands: list[str], *, batch: bool) -> AttachedDebugger:
    """Return a debugger that does commands at the first launch, then lets the user type."""
    left = list(commands)

    def face(session: Session) -> bool:
        terminal = Terminal(session)
        done = terminal.run(left, echo=True) if left else True
        left.clear()
        if batch and not done:
            raise Quit(1)
        if not (batch or terminal.quitting or terminal.leaving):
            terminal.talk()
        if terminal.quitting:
            raise Quit(0 if done else 1)
        return not (batch or terminal.detaching)

    return AttachedDebugger(face)


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
    """Debug a launch of a kernel: forward and back, with the commands of cuda-gdb. Before a program
    (`warploom debug program.py`), debug the kernels that it launches.

    Example: `warploom debug saxpy.cu --grid 4 --block 256 --arg 1000 --arg 2.0 --arg
    'x:f32[1000]=arange' --arg 'y:f32[1000]=ones' -c 'break saxpy.cu:6 if i == 999' -c run`
    """
    gpu = device.make(launched.device, rules)
    if file.suffix == ".cu" and not optimized:
        launched = replace(launched, option=[*(launched.option or ()), DEBUG_BUILD])
    ready = prepared(gpu, launched.request(file))
    interactive = sys.stdin.isatty()
    attach(terminal_face(commands_of(command, script), batch=batch or not interactive))
    try:
        ready.launcher(
            *ready.values,
            max_instructions=launched.max_instructions,
            cooperative=launched.cooperative,
        )
    except Quit as quit:
        raise typer.Exit(quit.code) from None
    finally:
        attach(None)
