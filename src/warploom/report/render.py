"""How a report looks as text: tables in the manner of Nsight Compute."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warploom.observe.counters import Counts
from warploom.report.sections import Report, Section, Value
from warploom.report.source import source_line, split_line

WIDTH = 100
COSTLIEST = 10
"""So many source lines are shown."""

_COLUMNS: dict[str, Callable[[Counts], int]] = {
    "Warp Inst": lambda counts: counts.warp_instructions,
    "Divergent": lambda counts: counts.divergent_branches,
    "Ld Sectors": lambda counts: counts.global_load_sectors,
    "St Sectors": lambda counts: counts.global_store_sectors,
    "Bank Conflicts": lambda counts: (
        counts.shared_load_bank_conflicts + counts.shared_store_bank_conflicts
    ),
    "Atomic Passes": lambda counts: counts.atomic_passes,
}
"""What is shown of a source line."""


def render_text(report: Report) -> str:
    """The report as plain text, 100 columns wide."""
    out = StringIO()
    render(report, Console(file=out, width=WIDTH, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def render(report: Report, console: Console) -> None:
    """Print the report."""
    facts = report.facts
    console.print(
        Text.assemble(
            (facts.kernel, "bold"),
            f" on {facts.device} (compute capability {facts.compute_capability}), by the"
            f" {facts.engine} engine in {facts.seconds:,.3f} s of this host",
        )
    )
    for section in report.sections:
        if section.metrics:
            console.print(_section(section))
    console.print(_source_counters(report))
    console.print(
        "Counted: in the execution. Instructions are those of PTX, not a GPU's own.", style="dim"
    )


def _section(section: Section) -> Table:
    table = _table(f"{section.title} ({section.kind})")
    table.add_column("Metric Name", min_width=44)
    table.add_column("Unit", min_width=10)
    table.add_column("Value", justify="right", min_width=20)
    for metric in section.metrics:
        table.add_row(metric.name, metric.unit, _number(metric.value))
    return table


def _source_counters(report: Report) -> Table:
    """The costliest lines; a column of what never happened is left out."""
    shown = report.lines[:COSTLIEST]
    more = len(report.lines) - len(shown)
    title = "Source Counters (counted)" + (f", {more} more lines not shown" if more else "")
    columns = [
        (heading, count)
        for heading, count in _COLUMNS.items()
        if any(count(counts) for _, counts in shown)
    ]
    table = _table(title)
    table.add_column("Line", no_wrap=True)
    for heading in (*(heading for heading, _ in columns), "Lanes"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Source")
    for line, counts in shown:
        cells = [_number(count(counts)) for _, count in columns]
        lanes = f"{counts.average_active_lanes:.1f}"
        source = Text(source_line(*split_line(line)), no_wrap=True, overflow="ellipsis")
        table.add_row(_short(line), *cells, lanes, source)
    return table


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _number(value: Value) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _short(line: str) -> str:
    """The file by its name alone: what stands before it is in the JSON."""
    file, number = split_line(line)
    return f"{Path(file).name}:{number}"
