"""The program `warploom`: its verbs, and what its exit codes mean.

Exit codes: 0 ok, 1 results differ (`explore`), there are errors (`check`) or a condition does not
hold (`litmus`), 2 bad usage, 3 the source does not compile or is not PTX that is understood, 4 the
launch was refused, 5 the kernel did something wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

import warploom
from warploom.cli.check import check, check_program
from warploom.cli.debug import debug, debug_core, debug_program
from warploom.cli.debug_adapter import debug_adapter
from warploom.cli.devices import devices
from warploom.cli.doctor import doctor
from warploom.cli.explore import explore
from warploom.cli.help import USAGE_ERRORS, GroupedCommand, GroupedCommands, usage_message
from warploom.cli.learn import learn
from warploom.cli.litmus import litmus
from warploom.cli.occupancy import occupancy
from warploom.cli.profile import profile
from warploom.cli.programs import nvcc, program, shell
from warploom.cli.ptx import ptx
from warploom.cli.run import run
from warploom.cli.sass import sass
from warploom.cli.time import time
from warploom.cli.tune import tune
from warploom.cli.validate import validate
from warploom.cli.verbs import (
    CHECK_PROGRAM,
    DEBUG_ADAPTER,
    DEBUG_CORE,
    DEBUG_PROGRAM,
    PROGRAM,
    verbs,
)
from warploom.cli.view import view
from warploom.core.errors import (
    CompileError,
    DeadlockError,
    InstructionLimit,
    KernelFault,
    LaunchError,
    PtxError,
    WarploomError,
)

BAD_USAGE, BAD_SOURCE, BAD_LAUNCH, BAD_KERNEL = 2, 3, 4, 5

EXIT_CODES: tuple[tuple[tuple[type[WarploomError], ...], int], ...] = (
    ((CompileError, PtxError), BAD_SOURCE),
    ((LaunchError,), BAD_LAUNCH),
    ((KernelFault, DeadlockError, InstructionLimit), BAD_KERNEL),
)


def _version(wanted: bool) -> None:
    """Print the version and end, where it is asked for."""
    if wanted:
        print(f"warploom {warploom.__version__}")
        raise typer.Exit


EVERYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Settings of a verb that passes its arguments on."""

app = typer.Typer(
    name="warploom",
    cls=GroupedCommands,
    help="Run CUDA kernels without a GPU, and see what one would hide.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 1 results differ (explore), errors (check) or a condition does not"
    " hold (litmus), 2 bad usage, 3 compile or PTX error, 4 launch refused, 5 kernel fault.",
)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Run CUDA kernels without a GPU, and see what one would hide."""


COMMANDS: dict[str, tuple[tuple[Callable[..., None], str], ...]] = {
    "Run": (
        (run, "Launch a kernel, or run a program that uses CUDA."),
        (shell, "Start a shell that finds the software GPU."),
    ),
    "Find errors": (
        (check, "Find bad accesses, races and missing barriers."),
        (explore, "Compare the results of many legal orders."),
        (litmus, "List the outcomes that the memory model allows."),
        (debug, "Step through a launch, forward and back."),
    ),
    "Measure": (
        (profile, "Report what a launch cost, with advice."),
        (time, "Model a launch's time and what bounds it."),
        (tune, "Try many configurations and rank them."),
        (occupancy, "Count the blocks that fit on an SM."),
    ),
    "Watch and learn": (
        (view, "Watch a launch step by step in the browser."),
        (learn, "Open a lesson, or grade a kernel in its task."),
    ),
    "Look up": (
        (ptx, "Print the PTX or the LLVM IR of a program."),
        (sass, "Show source, PTX and machine code with counts."),
        (devices, "List the devices, or the facts of one."),
        (validate, "Compare modelled times with published ones."),
        (doctor, "Say what works on this computer."),
    ),
}
"""The commands that the help lists, in groups, each with a line that fits 60 columns."""

for group, commands in COMMANDS.items():
    for command, summary in commands:
        app.command(cls=GroupedCommand, short_help=summary, rich_help_panel=group)(command)

app.command(
    context_settings=EVERYTHING,
    add_help_option=False,
    short_help="Compile a CUDA program with NVIDIA's nvcc.",
    rich_help_panel="Run",
)(nvcc)

for name, hidden in (
    (PROGRAM, program),
    (CHECK_PROGRAM, check_program),
    (DEBUG_PROGRAM, debug_program),
):
    app.command(name, hidden=True, context_settings={"allow_interspersed_args": False})(hidden)
app.command(DEBUG_CORE, hidden=True)(debug_core)
app.command(DEBUG_ADAPTER, hidden=True)(debug_adapter)


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        sys.exit(app(verbs(sys.argv[1:]), prog_name="warploom", standalone_mode=False))
    except USAGE_ERRORS as error:
        print(usage_message(error) if sys.argv[1:] else error, file=sys.stderr)
        sys.exit(BAD_USAGE)
    except WarploomError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read the output has gone: nothing is left to say, not even on closing it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def exit_code(error: WarploomError) -> int:
    """Return the exit code that stands for an error."""
    for kinds, code in EXIT_CODES:
        if isinstance(error, kinds):
            return code
    return BAD_USAGE
