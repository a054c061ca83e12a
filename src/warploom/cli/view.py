"""`warploom view`: watch a launch step by step in the browser, or save what there is to see."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.launching import (
    L1,
    Arg,
    BankBytes,
    Block,
    CompilerOption,
    Cooperative,
    DeviceName,
    Grid,
    KernelName,
    MaxInstructions,
    Schedule,
    Seed,
    Shared,
)
from warploom.core.errors import WarploomError
from warploom.host.sources import source_of
from warploom.observe.trace import Trace
from warploom.ui.page import export as export_page
from warploom.ui.record import record
from warploom.ui.runner import Limits
from warploom.ui.schema import AUTOMATIC, LaunchRequest
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import exported_show, live_show

TRACE_SUFFIX = ".wl"

Export = Annotated[
    Path | None, typer.Option(metavar="PAGE.html", help="Write one page that needs no server.")
]
Seconds = Annotated[float, typer.Option(help="How long a run from the page may take.")]
Memory = Annotated[int, typer.Option(help="How many MiB a run from the page may use.")]
Browser = Annotated[bool, typer.Option(help="Open the page in the browser.")]


def view(
    file: Annotated[Path, typer.Argument(help="A .cu or .ptx file, or a trace (.wl).")],
    kernel: KernelName = None,
    grid: Grid = "1",
    block: Block = "32",
    shared: Shared = 0,
    arg: Arg = None,
    device: DeviceName = None,
    engine: Annotated[
        str,
        typer.Option(
            help="What records: reference (everything), compiled (fast, without registers), or"
            " automatic: by the size of the launch."
        ),
    ] = AUTOMATIC,
    option: CompilerOption = None,
    max_instructions: MaxInstructions = None,
    cooperative: Cooperative = False,
    schedule: Schedule = "converge",
    seed: Seed = 0,
    l1: L1 = None,
    bank_bytes: BankBytes = None,
    trace_warps: Annotated[int, typer.Option(min=1, help="Record so many warps at most.")] = 64,
    trace_steps: Annotated[
        int, typer.Option(min=1, help="Record so many steps of each warp at most.")
    ] = 100_000,
    trace_block: Annotated[
        list[int] | None,
        typer.Option(help="Record this block, not the first that run; may be given several times."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="TRACE.wl", help="Write the trace to a file.")
    ] = None,
    export: Export = None,
    seconds: Seconds = 30.0,
    memory: Memory = 4096,
    browser: Browser = True,
) -> None:
    """Watch every step of a launch in the browser, and change it there.

    Example: `warploom view saxpy.cu --grid 4 --block 256 --arg 1000 --arg 2.0 --arg
    'x:f32[1000]=arange' --arg 'y:f32[1000]=ones'`. With --save or --export nothing is served.
    """
    request = None
    if file.suffix == TRACE_SUFFIX:
        trace = _read(file)
    else:
        source, _ = source_of(file)
        request = LaunchRequest(
            name=str(file),
            source=source,
            kernel=kernel or "",
            grid=grid,
            block=block,
            shared=shared,
            args=tuple(arg or ()),
            options=tuple(option or ()),
            device=device or "h100",
            engine=engine,
            schedule=schedule,
            seed=seed,
            l1=l1,
            bank_bytes=bank_bytes,
            max_instructions=max_instructions,
            cooperative=cooperative,
            trace_warps=trace_warps,
            trace_steps=trace_steps,
            trace_blocks=tuple(trace_block or ()),
        )
        trace = record(request)
    if save is not None:
        save.write_bytes(trace.to_bytes())
    if export is not None:
        write_export(export, file.name, trace)
    if save is None and export is None:
        show = live_show(file.name, 1, request=request)
        limits = Limits(seconds, memory << 20)
        serve(Viewer(show, [trace.to_bytes()], limits), opener(browser=browser))


def write_export(target: Path, title: str, trace: Trace) -> None:
    """Write a page with a trace."""
    target.write_text(export_page(exported_show(title, (title,)), [trace.to_bytes()]))


def opener(*, browser: bool) -> Callable[[str], None]:
    """What tells where the page is, and opens it if that is wanted."""

    def opened(url: str) -> None:
        print(f"The page is at {url}\nCtrl-C ends it.", flush=True)
        if browser:
            webbrowser.open(url)

    return opened


def _read(file: Path) -> Trace:
    try:
        return Trace.from_bytes(file.read_bytes())
    except OSError as error:
        raise WarploomError(f"{file} cannot be read: {error.strerror}") from None
