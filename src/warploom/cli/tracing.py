"""Makes requests for recording of the options of a launch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.options import LaunchOptions, RuleOptions
from warploom.core.errors import WarploomError
from warploom.core.source_files import printable_name
from warploom.host.programs.sources import source_of
from warploom.ui.schema import AUTOMATIC, LaunchRequest


@dataclass(frozen=True)
class TraceOptions:
    """Options that bound a recording."""

    engine: Annotated[
        str,
        typer.Option(
            help="What records: reference (everything), compiled (fast, without registers), or"
            " automatic: by the size of the launch."
        ),
    ] = AUTOMATIC
    trace_warps: Annotated[int, typer.Option(min=1, help="Most warps to record.")] = 64
    trace_steps: Annotated[int, typer.Option(min=1, help="Most steps to record of each warp.")] = (
        100_000
    )
    trace_block: Annotated[
        list[int] | None,
        typer.Option(help="Record this block instead of the first ones that run; repeatable."),
    ] = None


def request_of(
    file: Path, launched: LaunchOptions, rules: RuleOptions, traced: TraceOptions
) -> LaunchRequest:
    """Returns the launch as the page has it, so that it can change it."""
    if launched.constant:
        raise WarploomError(
            "the page takes no --constant: give the variable its values in the source."
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
