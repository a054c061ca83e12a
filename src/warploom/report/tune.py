"""The report of a tuning: the configurations by rank, the Pareto set, and why the best one wins."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warploom.report.render import WIDTH, styled_table
from warploom.tuning.plan import Plan
from warploom.tuning.result import Tuned
from warploom.tuning.space import described
from warploom.tuning.trial import Costs, Trial

REFUSED = 5
"""So many of the configurations that did not run are shown."""

STALLS = 3
"""So many of the states in which warps waited longest are compared."""

_COSTS: dict[str, Callable[[Costs], str]] = {
    "Time us": lambda costs: f"{costs.seconds * 1e6:,.3f}",
    "Occupancy %": lambda costs: f"{100 * costs.achieved_occupancy:.1f}",
    "DRAM KB": lambda costs: f"{costs.dram_bytes / 1000:,.1f}",
    "Sectors": lambda costs: f"{costs.global_sectors:,}",
    "Conflicts": lambda costs: f"{costs.shared_bank_conflicts:,}",
    "Registers": lambda costs: f"{costs.registers:,}",
}
"""The columns of a configuration's costs."""

_CORRECTED: dict[str, Callable[[Trial], str]] = {
    "Measured us": lambda trial: _microseconds(trial.measured),
    "Corrected us": lambda trial: _microseconds(trial.seconds),
}
"""The columns before those where modelled times are corrected by measured ones."""

_WHY: tuple[tuple[str, str, Callable[[Costs], str]], ...] = (
    ("Elapsed Cycles", "modelled", lambda costs: f"{costs.cycles:,}"),
    ("Duration us", "modelled", lambda costs: f"{costs.seconds * 1e6:,.3f}"),
    ("Theoretical Occupancy %", "modelled", lambda costs: f"{100 * costs.occupancy:.1f}"),
    ("Block Limit", "modelled", lambda costs: ", ".join(costs.limiters)),
    ("Achieved Occupancy %", "modelled", lambda costs: f"{100 * costs.achieved_occupancy:.1f}"),
    ("DRAM Bytes", "modelled", lambda costs: f"{costs.dram_bytes:,}"),
    ("Global Sectors", "counted", lambda costs: f"{costs.global_sectors:,}"),
    ("Shared Bank Conflicts", "counted", lambda costs: f"{costs.shared_bank_conflicts:,}"),
    ("Warp Instructions", "counted", lambda costs: f"{costs.warp_instructions:,}"),
)
"""What the best, the second and the last are compared by."""


def render_tuned_text(tuned: Tuned, top: int, measure: int = 0) -> str:
    """Returns the report as plain text, 100 columns wide; see render_tuned."""
    out = StringIO()
    render_tuned(tuned, Console(file=out, width=WIDTH, color_system=None), top, measure)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def render_tuned(tuned: Tuned, console: Console, top: int, measure: int = 0) -> None:
    """Prints the report, with the first `top` of the configurations, all of the Pareto set, and as
    many configurations to measure. Raises WarploomError where none ran."""
    best = tuned.best
    again = f" ({tuned.reused} of them from the cache)" if tuned.reused else ""
    console.print(f"{len(tuned.trials)} configurations{again}, {len(tuned.refused)} did not run")
    console.print(_ranking(tuned, top))
    _print_refused(tuned.refused, console)
    console.print(_comparison(tuned.ranked))
    console.print(
        Text(f"The best by {tuned.objectives[0]}: ", "bold") + described(best.configuration)
    )
    if best.costs:
        bound = best.costs.bound
        console.print(f"{bound[:1].upper()}{bound[1:]}.")
    if measure:
        _print_plan(tuned.measure(measure), console)
    console.print(
        "Sectors, conflicts and instructions are counted; everything else is modelled "
        "(docs/timing.md). Spills caused by a register limit are not modelled.",
        style="dim",
    )


def tuned_as_json(tuned: Tuned, measure: int = 0) -> str:
    """Returns all trials, the best of them, the Pareto set, and as many configurations to measure
    as JSON."""
    content = {
        "objectives": tuned.objectives,
        "best": tuned.best.configuration,
        "pareto": [trial.configuration for trial in tuned.pareto],
        "reused": tuned.reused,
        "measure": tuned.measure(measure) if measure else None,
        "trials": tuned.trials,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def _ranking(tuned: Tuned, top: int) -> Table:
    """Returns the configurations by rank; a star marks those of the Pareto set."""
    ranked, front = tuned.ranked, tuned.pareto
    shown = [t for place, t in enumerate(ranked) if place < top or t in front]
    more = f", {len(ranked) - len(shown)} more not shown" if len(ranked) > len(shown) else ""
    names = " and ".join(tuned.objectives)
    table = styled_table(f"Configurations (*: Pareto set of {names}){more}")
    table.add_column("")
    for name in ranked[0].configuration:
        table.add_column(name, justify="right")
    corrected = any(trial.seconds is not None for trial in ranked)
    for heading in (*_CORRECTED, *_COSTS) if corrected else _COSTS:
        table.add_column(heading, justify="right", no_wrap=True)
    for trial in shown:
        values = [str(value) for value in trial.configuration.values()]
        costs = [show(trial) for show in _CORRECTED.values()] if corrected else []
        costs += [show(trial.costs) for show in _COSTS.values() if trial.costs]
        table.add_row("*" if trial in front else "", *values, *costs)
    return table


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:,.3f}"


def _print_plan(plan: Plan, console: Console) -> None:
    """Prints what to measure, and the expected loss of the best after each."""
    console.print(
        Text("Measure these configurations on the device", "bold")
        + f" (expected slowdown without measurements: {100 * plan.losses[0]:.1f} %):"
    )
    for configuration, loss in zip(plan.configurations, plan.losses[1:], strict=True):
        console.print(
            f"  {described(configuration)} (expected slowdown if you stop after this "
            f"measurement: {100 * loss:.1f} %)"
        )


def _print_refused(refused: list[Trial], console: Console) -> None:
    for trial in refused[:REFUSED]:
        reason = trial.refused.partition("\n")[0]
        console.print(Text(f"{described(trial.configuration)} did not run: ") + reason)
    if len(refused) > REFUSED:
        console.print(f"{len(refused) - REFUSED} more did not run (--json prints the reasons)")
    if refused:
        console.print()


def _comparison(ranked: list[Trial]) -> Table:
    """Returns the best beside the second and the last: what each has more of, and where warps
    waited."""
    picked = {"Best": ranked[0]}
    if len(ranked) > 2:
        picked["Second"] = ranked[1]
    if len(ranked) > 1:
        picked["Last"] = ranked[-1]
    costs = [trial.costs for trial in picked.values() if trial.costs]
    table = styled_table("Why")
    table.add_column("Metric Name", no_wrap=True)
    for heading, trial in picked.items():
        table.add_column(f"{heading}: {described(trial.configuration)}", justify="right")
    table.add_column("Kind", no_wrap=True)
    for name, kind, show in _WHY:
        table.add_row(name, *(show(one) for one in costs), kind)
    for state in _waits(costs):
        title = f"Stall {state.replace('_', ' ').title()} %"
        shares = (f"{100 * one.stalls.get(state, 0):.1f}" for one in costs)
        table.add_row(title, *shares, "modelled")
    return table


def _waits(costs: list[Costs]) -> list[str]:
    """Returns the states in which warps of any of these waited longest."""
    most: dict[str, float] = {}
    for one in costs:
        for state, share in one.stalls.items():
            if state not in ("selected", "not_selected"):
                most[state] = max(share, most.get(state, 0))
    return sorted(most, key=lambda state: -most[state])[:STALLS]
