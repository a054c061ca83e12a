"""`warploom debug --dap`: the debugger as a server of the Debug Adapter Protocol."""

from __future__ import annotations

import os
import runpy
import socket
import sys
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer

from warploom.cli.debug import DEBUG_BUILD, DEBUG_BUILDS
from warploom.clients.environment import environment_for, libraries_are_built
from warploom.clients.session import use
from warploom.clients.settings import Settings
from warploom.core.errors import WarploomError
from warploom.debug.dap.server import Server
from warploom.host.device import Device
from warploom.host.requests import Request, prepared

READY = "WARPLOOM_DEBUG_ADAPTER"
"""Set in the environment of a process in which a program finds the software GPU."""

OF_EDITORS = frozenset(
    (
        *("name", "type", "request", "presentation", "preLaunchTask", "noDebug"),
        *("internalConsoleOptions", "postDebugTask", "debugServer", "serverReadyAction"),
    )
)
"""What editors add to a launch configuration; names that begin with `__` are theirs, too."""

Extent = int | str | list[int | str]
"""The size of a grid or a block: 256, "16,16" or [16, 16]."""


class LaunchConfiguration(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Describes what to debug: a kernel of a file and its launch, or a program."""

    program: str
    kernel: str | None = None
    grid: Extent = 1
    block: Extent = 32
    shared: int = 0
    args: list[Any] = []
    device: str | None = None
    engine: str | None = None
    schedule: str = "converge"
    seed: int = 0
    options: list[str] = []
    optimized: bool = False
    max_instructions: int | None = None
    cooperative: bool = False
    stop_on_entry: bool = False
    break_in_kernel: str = ""
    cwd: str | None = None
    console: str | None = None


def debug_adapter(
    dap: Annotated[
        bool, typer.Option("--dap", help="Serve one client on standard input and output.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(help="Serve one client on this localhost port; 0 selects any free port."),
    ] = None,
) -> None:
    """Serve an editor over the Debug Adapter Protocol."""
    if libraries_are_built() and READY not in os.environ:
        environment = {**DEBUG_BUILDS, **environment_for(Settings()), READY: "1"}
        command = [sys.executable, "-m", "warploom.cli", *sys.argv[1:]]
        os.execve(command[0], command, environment)
    if port is None:
        source, sink = _standard_streams()
        raise typer.Exit(_serve(source, sink))
    with socket.create_server(("127.0.0.1", port)) as listener:
        print(f"listening on port {listener.getsockname()[1]}", flush=True)
        connection, _ = listener.accept()
    with connection, connection.makefile("rb") as source, connection.makefile("wb") as sink:
        try:
            code = _serve(source, sink)
        finally:
            with suppress(OSError):  # the client has gone first
                connection.shutdown(
                    socket.SHUT_RDWR
                )  # else closing waits for the thread that reads
        raise typer.Exit(code)


def _standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Returns the standard streams for the protocol alone; the program prints elsewhere."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return source, sink


def _serve(source: BinaryIO, sink: BinaryIO) -> int:
    server = Server(source, sink, start)
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.close(writer)

    def forward() -> None:
        with os.fdopen(reader, "r", encoding="utf-8", errors="replace") as printed:
            for line in printed:
                server.client.connection.event("output", category="stdout", output=line)

    threading.Thread(target=forward, daemon=True, name="output").start()
    try:
        return server.serve()
    finally:
        sys.stdout.flush()


def start(given: dict[str, Any]) -> None:
    """Runs what a launch configuration describes: a kernel of a file, or a program. Raises
    WarploomError."""
    asked = _configuration(given)
    if asked.cwd:
        try:
            os.chdir(asked.cwd)
        except (OSError, ValueError) as error:
            raise WarploomError(f"`cwd` in the launch configuration: {error}") from None
    file = Path(asked.program)
    if file.suffix in (".cu", ".hip", ".ptx", ".cl"):
        _launch(file, asked)
    else:
        _run_program(file, asked, given.keys())


def _configuration(given: dict[str, Any]) -> LaunchConfiguration:
    """Returns a launch configuration without what editors add. Raises WarploomError."""
    known = LaunchConfiguration.__struct_encode_fields__
    own = {
        name: value
        for name, value in given.items()
        if not name.startswith("__") and name not in OF_EDITORS
    }
    if unknown := own.keys() - set(known):
        raise WarploomError(
            f"the launch configuration has unknown settings: {', '.join(sorted(unknown))}; the "
            f"valid ones are {', '.join(sorted(known))}"
        )
    if "program" not in own:
        raise WarploomError(
            "the launch configuration has no `program`: set it to a .cu, .ptx, .cl or .py file"
        )
    try:
        return msgspec.convert(own, LaunchConfiguration)
    except msgspec.ValidationError as error:
        raise WarploomError(f"the launch configuration is invalid: {error}") from None


def _launch(file: Path, asked: LaunchConfiguration) -> None:
    """Launches a kernel of a file."""
    gpu = Device(asked.device, engine=asked.engine, schedule=asked.schedule, seed=asked.seed)
    options = list(asked.options)
    if file.suffix in (".cu", ".hip") and not asked.optimized:
        options.append(DEBUG_BUILD)
    request = Request(
        file=file,
        kernel=asked.kernel,
        grid=_dims(asked.grid),
        block=_dims(asked.block),
        shared=asked.shared,
        args=[str(arg) for arg in asked.args],
        options=options,
    )
    ready = prepared(gpu, request)
    ready.launcher(
        *ready.values, max_instructions=asked.max_instructions, cooperative=asked.cooperative
    )


def _run_program(file: Path, asked: LaunchConfiguration, given: Collection[str]) -> None:
    """Runs a Python program in this process, with the settings that are given."""
    if file.suffix != ".py":
        raise WarploomError(f"{file} is not a .cu, .ptx, .cl or .py file")
    if READY not in os.environ:
        raise WarploomError(
            "debugging a program requires Warploom's versions of NVIDIA's libraries, which have "
            "not been built"
        )
    names = {each.name for each in fields(Settings)} & set(given)
    use(**{"device": "h100", **{name: getattr(asked, name) for name in names}})
    sys.argv = [str(file), *map(str, asked.args)]
    sys.path.insert(0, str(file.parent))
    runpy.run_path(str(file), run_name="__main__")
    sys.stdout.flush()


def _dims(given: Extent) -> str:
    """Returns the size of a grid or a block as the command line has it."""
    return ",".join(map(str, given if isinstance(given, list) else [given]))
