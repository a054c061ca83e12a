"""`warploom view`: watch a launch step by step in the browser, or save what there is to see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.options import LaunchOptions, RuleOptions, grouped
from warploom.cli.pages import Export, PageOptions, write_page
from warploom.core.errors import WarploomError
from warploom.host.sources import source_of
from warploom.observe.trace import Trace
from warploom.ui.record import record
from warploom.ui.schema import AUTOMATIC, LaunchRequest
from warploom.ui.shows import exported_show, live_show

TRACE_SUFFIX = ".wl"


@dataclass(frozen=True)
class TraceOptions:
    """What of a launch is recorded."""

    engine: Annotated[
        str,
        typer.Option(
            help="What records: reference (everything), compiled (fast, without registers), or"
            " automatic: by the size of the launch."
        ),
    ] = AUTOMATIC
    trace_warps: Annotated[int, typer.Option(min=1, help="Record so many warps at most.")] = 64
    trace_steps: Annotated[
        int, typer.Option(min=1, help="Record so many steps of each warp at most.")
    ] = 100_000
    trace_block: Annotated[
        list[int] | None,
        typer.Option(help="Record this block, not the first that run; may be given several times."),
    ] = None


@grouped
def view(
    file: Annotated[Path, typer.Argument(help="A .cu or .ptx file, or a trace (.wl).")],
    launched: LaunchOptions,
    rules: RuleOptions,
    traced: TraceOptions,
    page: PageOptions,
    save: Annotated[
        Path | None, typer.Option(metavar="TRACE.wl", help="Write the trace to a file.")
    ] = None,
    export: Export = None,
) -> None:
    """Watch every step of a launch in the browser, and change it there.

    Example: `warploom view saxpy.cu --grid 4 --block 256 --arg 1000 --arg 2.0 --arg
    'x:f32[1000]=arange' --arg 'y:f32[1000]=ones'`. With --save or --export nothing is served.
    """
    request = None
    if file.suffix == TRACE_SUFFIX:
        trace = _read(file)
    else:
        request = _request(file, launched, rules, traced)
        trace = record(request)
    data = trace.to_bytes()
    if save is not None:
        save.write_bytes(data)
    if export is not None:
        write_page(export, exported_show(file.name, (file.name,)), [data])
    if save is None and export is None:
        page.serve(live_show(file.name, 1, request=request), [data])


def _request(
    file: Path, launched: LaunchOptions, rules: RuleOptions, traced: TraceOptions
) -> LaunchRequest:
    """The launch as the page has it, so that it can change it."""
    source, _ = source_of(file)
    return LaunchRequest(
        name=str(file),
        source=source,
        kernel=launched.kernel or "",
        grid=launched.grid,
        block=launched.block,
        shared=launched.shared,
        args=tuple(launched.arg or ()),
        options=tuple(launched.option or ()),
        device=launched.device or "h100",
        engine=traced.engine,
        schedule=rules.schedule,
        seed=rules.seed,
        l1=rules.l1,
        bank_bytes=rules.bank_bytes,
        max_instructions=launched.max_instructions,
        cooperative=launched.cooperative,
        trace_warps=traced.trace_warps,
        trace_steps=traced.trace_steps,
        trace_blocks=tuple(traced.trace_block or ()),
    )


def _read(file: Path) -> Trace:
    try:
        return Trace.from_bytes(file.read_bytes())
    except OSError as error:
        raise WarploomError(f"{file} cannot be read: {error.strerror}") from None
