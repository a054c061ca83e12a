"""The program `warploom`: its verbs, and what its exit codes mean.

Exit codes: 0 ok, 1 results differ (`explore`), there are errors (`check`) or a condition does not
hold (`litmus`), 2 bad usage, 3 the source does not compile or is not PTX that is understood, 4 the
launch was refused, 5 the kernel did something wrong.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import warploom
from warploom.cli.commands import Interrupted, LazyCommands, flags_of
from warploom.cli.typer_commands import USAGE_ERRORS, usage_message
from warploom.cli.verbs import verbs
from warploom.core.errors import (
    CompileError,
    DeadlockError,
    InstructionLimit,
    KernelFault,
    LaunchError,
    PtxError,
    WarploomError,
)
from warploom.core.interrupts import INTERRUPTED
from warploom.core.output_files import write_error
from warploom.core.streams import discard_output, report

BAD_USAGE, BAD_SOURCE, BAD_LAUNCH, BAD_KERNEL = 2, 3, 4, 5

EXIT_CODES: tuple[tuple[tuple[type[WarploomError], ...], int], ...] = (
    ((CompileError, PtxError), BAD_SOURCE),
    ((LaunchError,), BAD_LAUNCH),
    ((KernelFault, DeadlockError, InstructionLimit), BAD_KERNEL),
)


def _version(wanted: bool) -> None:
    """Prints the version and ends, where it is asked for."""
    if wanted:
        print(f"warploom {warploom.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="warploom",
    cls=LazyCommands,
    help="Run CUDA kernels without a GPU, and find bugs that a GPU would hide.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 success; 1 results differ (explore), errors found (check), condition "
    "does not hold (litmus); 2 invalid usage; 3 compile or PTX error; 4 launch refused; 5 "
    "kernel fault.",
)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Run CUDA kernels without a GPU, and find bugs that a GPU would hide."""


def main() -> None:
    """Runs the command line and exits with its code."""
    sys.exit(_code_of_command())


def _code_of_command() -> int:
    """Runs the command line; returns its exit code, after an error is reported."""
    try:
        try:
            code = app(verbs(sys.argv[1:], flags_of), prog_name="warploom", standalone_mode=False)
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        if code == INTERRUPTED:  # which typer makes of KeyboardInterrupt
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except USAGE_ERRORS as error:
        report(usage_message(error) if sys.argv[1:] else error)
        return BAD_USAGE
    except WarploomError as error:
        report(f"error: {error}")
        return exit_code(error)
    except (KeyboardInterrupt, Interrupted, typer.Abort) as interrupt:
        # Where Ctrl-C came in an exec of text, Python would end by SIGINT, whatever the status is:
        # it remembers that until the next one.
        exec("pass")
        where = "" if isinstance(interrupt, typer.Abort) else str(interrupt)
        report(f"interrupted {where}".rstrip())
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone: nothing is left to say, not even on closing it.
        discard_output()
        return 1
    except OSError as error:
        discard_output()
        report(f"error: {write_error(error.filename or 'standard output', error)}")
        return BAD_USAGE


def exit_code(error: WarploomError) -> int:
    """Returns the exit code that stands for an error."""
    for kinds, code in EXIT_CODES:
        if isinstance(error, kinds):
            return code
    return BAD_USAGE
