"""Lists the commands, and imports the module of the one that is run: importing those of all would
take most of the time of a short command.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from warploom.cli.typer_commands import GroupedCommand, convert_without_pydantic
from warploom.cli.verbs import (
    CHECK_PROGRAM,
    DEBUG_ADAPTER,
    DEBUG_CORE,
    DEBUG_PROGRAM,
    PROGRAM,
)
from warploom.core.interrupts import raise_interrupts

EVERYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Settings of a command that passes its arguments on."""

BEFORE_A_PROGRAM = {"allow_interspersed_args": False}
"""Settings of a command that takes a program and the program's arguments."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the function `name` of the module `warploom.cli.<module>`, its group in the help
    (None: hidden), a line about it that fits 60 columns, and settings for typer."""

    module: str
    name: str
    group: str | None = None
    summary: str = ""
    settings: dict[str, bool] | None = None
    helps: bool = True


RUN, FIND, MEASURE = "Run", "Find errors", "Measure"
WATCH, LOOK = "Watch and learn", "Look up"

COMMANDS = {
    "run": Command("run", "run", RUN, "Launch a kernel, or run a program that uses CUDA."),
    "shell": Command("programs", "shell", RUN, "Start a shell that uses the software GPU."),
    "check": Command("check", "check", FIND, "Find bad accesses, races and missing barriers."),
    "explore": Command("explore", "explore", FIND, "Compare results under many execution orders."),
    "litmus": Command("litmus", "litmus", FIND, "List the outcomes that the memory model allows."),
    "debug": Command("debug", "debug", FIND, "Step through a launch, forward and back."),
    "profile": Command("profile", "profile", MEASURE, "Report a launch's costs, with advice."),
    "time": Command("time", "time", MEASURE, "Model a launch's time and bottleneck."),
    "compare": Command(
        "compare", "compare", MEASURE, "Compare two runs and explain the difference."
    ),
    "tune": Command("tune", "tune", MEASURE, "Try many configurations and rank them."),
    "occupancy": Command("occupancy", "occupancy", MEASURE, "Count the blocks that fit on an SM."),
    "view": Command("view", "view", WATCH, "Watch a launch step by step in the browser."),
    "learn": Command(
        "lessons.learn", "learn", WATCH, "Open a lesson, or grade a solution to its task."
    ),
    "tour": Command("lessons.tour", "tour", WATCH, "Watch lessons as narrated, captioned videos."),
    "ptx": Command("ptx", "ptx", LOOK, "Print the PTX or the LLVM IR of a program."),
    "sass": Command("sass", "sass", LOOK, "Show source, PTX and machine code by line."),
    "examples": Command("starting.examples", "examples", LOOK, "Copy the example kernels."),
    "kernels": Command(
        "starting.kernels", "kernels", LOOK, "List a file's kernels and how to run them."
    ),
    "devices": Command("devices", "devices", LOOK, "List the devices, or the properties of one."),
    "opencl": Command("devices", "opencl", LOOK, "List the OpenCL platform and its devices."),
    "validate": Command(
        "validate", "validate", LOOK, "Compare modelled times with published ones."
    ),
    "cache": Command("cache", "cache", LOOK, "Show or clear the compiled-code cache."),
    "doctor": Command("doctor", "doctor", LOOK, "Report what works on this computer."),
    "nvcc": Command(
        "programs", "nvcc", RUN, "Compile a CUDA program with NVIDIA's nvcc.", EVERYTHING, False
    ),
    PROGRAM: Command("programs", "program", settings=BEFORE_A_PROGRAM),
    CHECK_PROGRAM: Command("check", "check_program", settings=BEFORE_A_PROGRAM),
    DEBUG_PROGRAM: Command("debug", "debug_program", settings=BEFORE_A_PROGRAM),
    DEBUG_CORE: Command("debug", "debug_core"),
    DEBUG_ADAPTER: Command("debug_adapter", "debug_adapter"),
}
"""The commands by name, in the order of the help."""


class Interrupted(Exception):
    """Ctrl-C in a command, with what was interrupted; typer would make an exit code of it."""


class LazyCommands(TyperGroup):
    """The commands of COMMANDS, each imported when it is looked up."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Typer suggests a name of these for one that is misspelled.
        self.commands = dict.fromkeys(COMMANDS)

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters and the help option."""
        return convert_without_pydantic(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(*interrupt.args) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command by its name; None if there is none."""
        return imported(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes a section for each group, from COMMANDS alone."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in COMMANDS.items():
            if command.group is not None:
                sections.setdefault(command.group, []).append((name, command.summary))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


@contextmanager
def without_collections() -> Generator[None]:
    """Suspends garbage collection while modules are imported, which leave almost none; a
    collection traverses all objects of those before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def flags_of(name: str) -> tuple[str, ...]:
    """Returns the options of a command that have no value."""
    flags = (option for option in imported(name).params if getattr(option, "is_flag", False))
    return tuple(option for flag in flags for option in (*flag.opts, *flag.secondary_opts))


@cache
def imported(name: str) -> Any:
    """Imports the module of a command, and returns the command as typer makes it."""
    command = COMMANDS[name]
    with without_collections():
        module = import_module(f"warploom.cli.{command.module}")
    raise_interrupts()
    function = getattr(module, command.name)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(
        name,
        cls=GroupedCommand,
        short_help=command.summary,
        hidden=command.group is None,
        rich_help_panel=command.group,
        context_settings=command.settings,
        add_help_option=command.helps,
    )(function)
    return typer.main.get_command(alone)
