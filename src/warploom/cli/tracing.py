"""Makes requests for recording of the options of a launch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warploom.cli.launches.targets import LaunchSource, ReplayedLaunch
from warploom.cli.options import LaunchOptions, RuleOptions
from warploom.core.errors import WarploomError
from warploom.core.source_files import printable_name
from warploom.host.core_files.replaying import ReplayDevice
from warploom.host.programs.sources import source_of
from warploom.host.requests import Prepared
from warploom.ui.schema import AUTOMATIC, LaunchRequest

if TYPE_CHECKING:
    from warploom.ui.record import Prepare


@dataclass(frozen=True)
class TraceOptions:
    """Options that bound a recording."""

    engine: Annotated[
        str,
        typer.Option(
            help="Engine for recording: reference (records everything), compiled (fast, without "
            "registers), or automatic (chosen by launch size)."
        ),
    ] = AUTOMATIC
    trace_warps: Annotated[int, typer.Option(min=1, help="Maximum number of warps to record.")] = 64
    trace_steps: Annotated[
        int, typer.Option(min=1, help="Maximum number of steps to record per warp.")
    ] = 100_000
    trace_block: Annotated[
        list[int] | None,
        typer.Option(help="Record this block instead of the first blocks that run; repeatable."),
    ] = None


def request_of(
    file: Path, launched: LaunchOptions, rules: RuleOptions, traced: TraceOptions
) -> LaunchRequest:
    """Returns the launch as the page has it, so that it can change it."""
    if launched.constant:
        raise WarploomError(
            "the page does not support --constant: initialize the variable in the source."
        )
    source, _ = source_of(file)
    return LaunchRequest(
        name=printable_name(file),
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
        cluster_dims=launched.cluster_dims,
        trace_warps=traced.trace_warps,
        trace_steps=traced.trace_steps,
        trace_blocks=tuple(traced.trace_block or ()),
    )


def recorded_launch(
    file: Path,
    source: LaunchSource,
    launched: LaunchOptions,
    rules: RuleOptions,
    traced: TraceOptions,
) -> tuple[LaunchRequest, Prepare]:
    """Returns a launch as the page has it, and what makes it ready to be recorded: of a file with
    kernels, from the request alone, so that the page can run it again; else by replaying."""
    # The recorder, which commands that may show a page do without otherwise.
    from warploom.ui.record import prepare_launch

    if not isinstance(source, ReplayedLaunch):
        return request_of(file, launched, rules, traced), prepare_launch
    return _replayed(source, traced)


def _replayed(source: ReplayedLaunch, traced: TraceOptions) -> tuple[LaunchRequest, Prepare]:
    """Returns what `recorded_launch` does, for a saved launch."""
    saved, device = source.saved, source.device
    cluster = saved.launch.cluster if saved.launch.explicit_cluster else ()
    grid, block = ("x".join(map(str, dims)) for dims in (saved.launch.grid, saved.launch.block))
    request = LaunchRequest(
        name=saved.core.kernel,
        source="",
        grid=grid,
        block=block,
        engine=traced.engine,
        max_instructions=source.options.get("max_instructions"),
        cooperative=saved.launch.cooperative,
        cluster_dims="x".join(map(str, cluster)),
        trace_warps=traced.trace_warps,
        trace_steps=traced.trace_steps,
        trace_blocks=tuple(traced.trace_block or ()),
    )

    def prepare(
        request: LaunchRequest,
        memory_bytes: int | None = None,
        *,
        record: bool = False,
        engine: str | None = None,
    ) -> Prepared:
        given: ReplayDevice = {**device, "record": record, "engine": engine, "quiet": True}
        return saved.ready(**given)

    return request, prepare
