"""`warploom view`: watch a launch step by step in the browser, or save what there is to see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from warploom.cli.options import LaunchOptions, RuleOptions, Scheduler, grouped
from warploom.cli.pages import Export, PageOptions, write_page
from warploom.cli.tracing import TraceOptions, request_of
from warploom.core.errors import WarploomError
from warploom.observe.trace import Trace
from warploom.ui.record import record
from warploom.ui.shows import exported_show, live_show

TRACE_SUFFIX = ".wl"


@grouped
def view(
    file: Annotated[Path, typer.Argument(help="A .cu or .ptx file, or a trace (.wl).")],
    launched: LaunchOptions,
    rules: RuleOptions,
    traced: TraceOptions,
    page: PageOptions,
    time: Annotated[
        bool, typer.Option("--time", help="Model the time, too: a track for each warp of an SM.")
    ] = False,
    scheduler: Scheduler = None,
    sm: Annotated[int, typer.Option(min=0, help="The SM whose warps --time shows.")] = 0,
    save: Annotated[
        Path | None, typer.Option(metavar="TRACE.wl", help="Write the trace to a file.")
    ] = None,
    export: Export = None,
    step: Annotated[
        int, typer.Option(min=0, help="Open at this step: its number in the recording.")
    ] = 0,
    warp: Annotated[int, typer.Option(min=0, help="And at this warp of the recording.")] = 0,
) -> None:
    """Watch every step of a launch in the browser, and change it there.

    Example: `warploom view saxpy.cu --grid 4 --block 256 --arg 1000 --arg 2.0 --arg
    'x:f32[1000]=arange' --arg 'y:f32[1000]=ones'`. With --save or --export nothing is served.
    """
    request = None
    if file.suffix == TRACE_SUFFIX:
        trace = _read(file)
    else:
        request = request_of(file, launched, rules, traced)
        request = replace(request, timed=time, scheduler=scheduler, sm=sm)
        trace = record(request)
    data = trace.to_bytes()
    if save is not None:
        save.write_bytes(data)
    if export is not None:
        write_page(export, exported_show(file.name, (file.name,)), [data])
    if save is None and export is None:
        place = f"#step={step}&warp={warp}" if step or warp else ""
        page.serve(live_show(file.name, 1, request=request), [data], place)


def _read(file: Path) -> Trace:
    try:
        return Trace.from_bytes(file.read_bytes())
    except OSError as error:
        raise WarploomError(f"{file} cannot be read: {error.strerror}") from None
