"""`warploom explore`: does the result of a launch depend on an order that CUDA does not
guarantee?"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from warploom.cli.launches.stream_orders import ORDERS, described, run_under_orders
from warploom.cli.launches.targets import CaptureOptions, Target
from warploom.cli.options import LaunchOptions, SpreadOptions, WarpSize, grouped
from warploom.clients.settings import Settings
from warploom.devices.catalog import DEFAULT
from warploom.host.exploration.explore import Exploration
from warploom.host.exploration.explore import explore as explore_orders
from warploom.host.exploration.orders import Order
from warploom.observe.origins import Cause

COMPLETE = "The conflicting accesses were executed in every order that can change the result."

RUNS = 100
"""How many orders of a launch are run where the user does not say."""

DIFFERS = 1
"""The exit code where results differ."""


@grouped
def explore(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    spread: SpreadOptions,
    warp_size: WarpSize = 32,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Number of legal execution orders to try. Default: {RUNS}, or {ORDERS} with "
            "--streams.",
        ),
    ] = None,
    streams: Annotated[
        bool,
        typer.Option(
            "--streams",
            help="Run the whole program several times, each time with a different order of the "
            "work in its streams, and compare the outputs.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Run a launch of a kernel or a program under many legal execution orders, and report
    whether the results of these runs differ.

    If the results differ, the exit status is 1. Example: `warploom explore sum.cu --kernel sum
    --block 64 --arg 'f32[64]=random:1' --arg 'total:f32[1]=zeros' --runs 200`
    """
    if streams:
        _explore_streams(target, launched, runs or ORDERS)
        return
    source = target.source(launched, captured, warp_size=warp_size)
    ready = source.ready()
    found = explore_orders(
        ready.launcher,
        *ready.values,
        runs=runs or RUNS,
        workers=spread.workers,
        cluster=spread.cluster,
        **source.options,
    )
    print(json.dumps(_as_json(found), indent=2, default=str) if as_json else _as_text(found))
    if found.differs:
        sys.exit(DIFFERS)


def _explore_streams(target: Target, launched: LaunchOptions, runs: int) -> None:
    """Runs a program under orders of its streams, and says whether its output differs."""
    settings = Settings(launched.device or DEFAULT).checked()
    given = target.arguments or (), launched.option or ()
    outcomes = run_under_orders(target.file, *given, settings, runs)
    text, differs = described(target.file, outcomes)
    print(text)
    if differs:
        sys.exit(DIFFERS)


def _as_text(found: Exploration) -> str:
    orders = len(found.outcomes)
    if found.first is None or found.second is None:
        alike = f"{orders} orders, one result"
        error = found.outcomes[0].error
        text = f"{alike}: all orders fail.\n{error}" if error else f"{alike}."
        text += f"\n  {COMPLETE}" if found.complete else ""
        return f"{text}\n{_uninterrupted(found)}" if found.uninterrupted else text
    lines = [f"{orders} orders, {found.results} different results."]
    if found.difference is not None and found.difference.buffer:
        where = found.difference
        index = ", ".join(map(str, where.index))
        lines.append(f"  {where.buffer}[{index}] is")
        shown = [str(value) for value in where.values]
    else:
        shown = [
            o.error.partition("\n")[0] or "ends without an error"
            for o in (found.first, found.second)
        ]
    pairs = zip(shown, (found.first, found.second), strict=True)
    lines += [f"    {text} under {outcome.order}" for text, outcome in pairs]
    if found.causes:
        lines.append("  The result depends on the order of these accesses:")
        lines += [f"    {_cause(cause)}" for cause in found.causes]
    else:
        lines.append(f"  {found.note}")
    lines.append(f"  To reproduce the second result: {_again(found.second.order)}")
    return "\n".join(lines)


def _uninterrupted(found: Exploration) -> str:
    """Returns what was left out, and why."""
    return f"  Warps could not be interrupted before conflicting accesses: {found.uninterrupted}."


def _again(order: Order) -> str:
    """Returns how a launch has that order again; interrupts are given in Python."""
    if order.interrupts:
        options = f"schedule={order.schedule!r}, seed={order.seed}, interrupts={order.interrupts}"
        options += f", turns={order.turns}" if order.turns else ""
        return f"kernel[grid, block](..., {options})"
    return f"warploom run ... --schedule {order.schedule} --seed {order.seed}"


def _cause(cause: Cause) -> str:
    first, second = (
        f"the value that {source} wrote" if source else "the initial value"
        for source in (cause.first, cause.second)
    )
    if cause.reader:
        return f"{cause.reader} reads\n      {first},\n      or {second}"
    return f"the final value comes from\n      {cause.first},\n      or {cause.second}"


def _as_json(found: Exploration) -> dict[str, Any]:
    pair = [o for o in (found.first, found.second) if o is not None]
    shown: dict[str, Any] = {
        "orders": len(found.outcomes),
        "results": found.results,
        "differs": found.differs,
        "shown_by": [{**asdict(o.order), "error": o.error} for o in pair],
        "causes": [asdict(cause) for cause in found.causes],
        "uninterrupted": found.uninterrupted,
        "complete": found.complete,
    }
    if found.difference is not None and found.difference.buffer:
        where = found.difference
        shown["difference"] = {
            "buffer": where.buffer,
            "index": list(where.index),
            "values": list(where.values),
        }
    return shown
