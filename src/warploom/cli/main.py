"""The program `warploom`: its verbs, and what its exit codes mean.

Exit codes: 0 ok, 1 results differ (`explore`), there are errors (`check`) or a condition does not
hold (`litmus`), 2 bad usage, 3 the source does not compile or is not PTX that is understood, 4 the
launch was refused, 5 the kernel did something wrong.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import warploom
from warploom.cli.check import check, check_program
from warploom.cli.debug import debug, debug_core, debug_program
from warploom.cli.debug_adapter import debug_adapter
from warploom.cli.devices import devices
from warploom.cli.doctor import doctor
from warploom.cli.explore import explore
from warploom.cli.help import USAGE_ERRORS, GroupedCommand, usage_message
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


app.command(cls=GroupedCommand)(run)
app.command(PROGRAM, hidden=True, context_settings={"allow_interspersed_args": False})(program)
app.command(cls=GroupedCommand)(shell)
app.command(context_settings=EVERYTHING, add_help_option=False)(nvcc)
app.command(cls=GroupedCommand)(check)
app.command(CHECK_PROGRAM, hidden=True, context_settings={"allow_interspersed_args": False})(
    check_program
)
app.command(cls=GroupedCommand)(debug)
app.command(DEBUG_PROGRAM, hidden=True, context_settings={"allow_interspersed_args": False})(
    debug_program
)
app.command(DEBUG_CORE, hidden=True)(debug_core)
app.command(DEBUG_ADAPTER, hidden=True)(debug_adapter)
app.command(cls=GroupedCommand)(profile)
app.command(cls=GroupedCommand)(time)
app.command(cls=GroupedCommand)(sass)
app.command(cls=GroupedCommand)(tune)
app.command(cls=GroupedCommand)(explore)
app.command(cls=GroupedCommand)(litmus)
app.command(cls=GroupedCommand)(view)
app.command(cls=GroupedCommand)(learn)
app.command(cls=GroupedCommand)(occupancy)
app.command(cls=GroupedCommand)(ptx)
app.command(cls=GroupedCommand)(devices)
app.command(cls=GroupedCommand)(validate)
app.command(cls=GroupedCommand)(doctor)


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
