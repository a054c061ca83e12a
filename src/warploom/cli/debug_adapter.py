"""`warploom debug --dap`: the debugger as a server of the Debug Adapter Protocol."""

from __future__ import annotations

import os
import runpy
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

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

KNOWN = frozenset(
    [
        "program",
        "kernel",
        "grid",
        "block",
        "shared",
        "args",
        "device",
        "engine",
        "schedule",
        "seed",
        "options",
        "optimized",
        "maxInstructions",
        "cooperative",
        "stopOnEntry",
        "breakInKernel",
        "cwd",
        "console",
    ]
)
"""What a launch configuration may say, beside what editors add themselves."""


def debug_adapter(
    dap: Annotated[
        bool, typer.Option("--dap", help="Serve one client on the standard streams.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(help="Serve one client on this port of the local host; 0: any.")
    ] = None,
) -> None:
    """Serve an editor by the Debug Adapter Protocol."""
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
    """Return the standard streams for the protocol alone; the program prints elsewhere."""
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
    """Run what a launch configuration describes: a kernel of a file, or a program."""
    own = {name for name in given if not name.startswith("__")}
    unknown = own - KNOWN - {"name", "type", "request", "presentation", "preLaunchTask", "noDebug"}
    unknown -= {"internalConsoleOptions", "postDebugTask", "debugServer", "serverReadyAction"}
    if unknown:
        raise WarploomError(
            f"the launch configuration has {', '.join(sorted(unknown))}, which is unknown; it may"
            f" have {', '.join(sorted(KNOWN))}"
        )
    if "program" not in given:
        raise WarploomError("the launch configuration has no `program`: a .cu, .ptx or .py file")
    if given.get("cwd"):
        os.chdir(given["cwd"])
    file = Path(given["program"])
    if file.suffix in (".cu", ".ptx", ".cl"):
        _launch(file, given)
    else:
        _run_program(file, given)


def _launch(file: Path, given: dict[str, Any]) -> None:
    """Launch a kernel of a file."""
    gpu = Device(
        given.get("device"),
        engine=given.get("engine"),
        schedule=given.get("schedule", "converge"),
        seed=given.get("seed", 0),
    )
    options = [str(option) for option in given.get("options", ())]
    if file.suffix == ".cu" and not given.get("optimized"):
        options.append(DEBUG_BUILD)
    request = Request(
        file=file,
        kernel=given.get("kernel"),
        grid=_dims(given.get("grid", 1)),
        block=_dims(given.get("block", 32)),
        shared=given.get("shared", 0),
        args=[str(arg) for arg in given.get("args", ())],
        options=options,
    )
    ready = prepared(gpu, request)
    ready.launcher(
        *ready.values,
        max_instructions=given.get("maxInstructions"),
        cooperative=bool(given.get("cooperative")),
    )


def _run_program(file: Path, given: dict[str, Any]) -> None:
    """Run a Python program in this process."""
    if file.suffix != ".py":
        raise WarploomError(f"{file} is no .cu, .ptx, .cl or .py file")
    if READY not in os.environ:
        raise WarploomError(
            "programs need the stand-ins for NVIDIA's libraries, which are not built"
        )
    names = {each.name for each in fields(Settings)} & given.keys()
    use(**{"device": "h100", **{name: given[name] for name in names}})
    sys.argv = [str(file), *map(str, given.get("args", ()))]
    sys.path.insert(0, str(file.parent))
    runpy.run_path(str(file), run_name="__main__")
    sys.stdout.flush()


def _dims(given: Any) -> str:
    """Return the size of a grid or a block as the command line has it."""
    parts = cast("list[Any]", given) if isinstance(given, list) else [given]
    return ",".join(map(str, parts))
