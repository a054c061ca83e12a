"""`warploom view`: watch a launch step by step in the browser, or save its trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from warploom.cli.launches.targets import CaptureOptions, FileLaunch, Target, replayed
from warploom.cli.launches.traces import LaunchTraces
from warploom.cli.options import LaunchOptions, RuleOptions, Scheduler, grouped
from warploom.cli.pages import Export, PageOptions, write_page
from warploom.cli.tracing import TraceOptions, recorded_launch
from warploom.core.errors import WarploomError
from warploom.core.input_files import InputFileError, read_limited, reading
from warploom.core.output_files import write_bytes
from warploom.core.source_files import printable_name
from warploom.observe.trace import MOST_BYTES, Trace
from warploom.sanitize.findings import TOOLS
from warploom.ui.page import Traces
from warploom.ui.record import record
from warploom.ui.schema import LaunchRequest
from warploom.ui.shows import exported_show, live_show

TRACE_SUFFIX = ".wl"

MOST_LAUNCHES = 8
"""The launches of a program among which a page can choose."""


@dataclass(frozen=True)
class AddedOptions:
    """Options for what the trace has beside the steps."""

    time: Annotated[
        bool,
        typer.Option(
            "--time", help="Also model the time, and add a track for each warp on one SM."
        ),
    ] = False
    scheduler: Scheduler = None
    sm: Annotated[int, typer.Option(min=0, help="Index of the SM that --time shows.")] = 0
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Check the launch for races and other errors, and mark the findings."
        ),
    ] = False

    def to(self, request: LaunchRequest) -> LaunchRequest:
        """Returns a request with these options."""
        tools = TOOLS if self.check else ()
        return replace(
            request, timed=self.time, scheduler=self.scheduler, sm=self.sm, sanitize=tools
        )


@dataclass(frozen=True)
class OutputOptions:
    """Files that are written instead of serving the page."""

    save: Annotated[
        Path | None, typer.Option(metavar="TRACE.wl", help="Write the trace to a file.")
    ] = None
    export: Export = None


@dataclass(frozen=True)
class ShownTraces:
    """Holds what a page shows: traces, the names of a program's launches if it can choose among
    several, and the launch that it can change, if any."""

    traces: Traces
    launches: tuple[str, ...] = ()
    request: LaunchRequest | None = None


@grouped
def view(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    rules: RuleOptions,
    traced: TraceOptions,
    page: PageOptions,
    added: AddedOptions,
    outputs: OutputOptions,
    step: Annotated[int, typer.Option(min=0, help="Recorded step at which the page opens.")] = 0,
    warp: Annotated[int, typer.Option(min=0, help="Recorded warp that the page shows first.")] = 0,
) -> None:
    """Watch a launch step by step in the browser, change it there, and run it again. FILE can also
    be a trace (.wl). If FILE is a program, choose one of its launches on the page; launches of a
    program cannot be changed.

    Example: `warploom view saxpy.cu --grid 4 --block 256 --arg 1000 --arg 2.0 --arg
    'x:f32[1000]=arange' --arg 'y:f32[1000]=ones'`. With --save or --export, no page is served.
    """
    file = target.path
    shown = _shown(target, launched, captured, rules, (traced, added))
    traces, launches = shown.traces, shown.launches
    first = traces[0]  # recorded before a page opens, so that errors are seen here
    title = printable_name(file.name)
    if outputs.save is not None:
        write_bytes(outputs.save, first)
    place = f"step={step}&warp={warp}" if step or warp else ""
    if outputs.export is not None:
        exported = exported_show(title, (title,), launches=launches)
        write_page(outputs.export, replace(exported, place=place), traces)
    if outputs.save is None and outputs.export is None:
        served = live_show(title, 1, request=shown.request, launches=launches)
        page.serve(replace(served, place=place), traces)


def _shown(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    rules: RuleOptions,
    recording: tuple[TraceOptions, AddedOptions],
) -> ShownTraces:
    """Returns the trace of a file, of a launch, or of the costliest launches of a program."""
    file, (traced, added) = target.path, recording
    if file.suffix == TRACE_SUFFIX and not captured.program:
        return ShownTraces([_read(file).to_bytes()])
    if captured.program and captured.launch is None and captured.capture is None:
        found = target.launches_of_program(launched, captured, MOST_LAUNCHES, **rules.given())

        def recorded(core: Path) -> bytes:
            source = replayed(core, launched, rules.given())
            request, prepare = recorded_launch(core, source, launched, rules, traced)
            try:
                return record(added.to(request), prepare=prepare).to_bytes()
            finally:
                # Another launch of the program has its memory at the same addresses.
                source.memory.close()

        names = tuple(one.title for one in found) if len(found) > 1 else ()
        return ShownTraces(LaunchTraces(found, recorded), names)
    source = target.source(launched, captured, **rules.given())
    request, prepare = recorded_launch(file, source, launched, rules, traced)
    trace = record(added.to(request), prepare=prepare).to_bytes()
    changed = added.to(request) if isinstance(source, FileLaunch) else None
    return ShownTraces([trace], request=changed)


def _read(file: Path) -> Trace:
    with reading(file, "is not a trace"):
        data = read_limited(file, MOST_BYTES)
    try:
        return Trace.from_bytes(data)
    except WarploomError as error:
        raise InputFileError(f"{file} cannot be read: {error}") from None
