"""Renders the comparison of two runs: as text, and as JSON."""

from __future__ import annotations

import json
from io import StringIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from warploom.report.comparison import Comparison, Row
from warploom.report.render import WIDTH, styled_table

COLOURS = {"Better": "green", "Worse": "red"}


def render_comparison_text(comparison: Comparison) -> str:
    """Returns a comparison as plain text, 100 columns wide."""
    out = StringIO()
    render_comparison(comparison, Console(file=out, width=WIDTH, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def render_comparison(comparison: Comparison, console: Console) -> None:
    """Prints a comparison: the verdict first."""
    word = comparison.verdict.partition(":")[0]
    console.print(Text(comparison.verdict, style=f"bold {COLOURS.get(word, '')}".strip()))
    console.print(Text(comparison.reason))
    for note in comparison.notes:
        console.print(Padding(Text(f"Note: {note}"), (0, 0, 0, 2)))
    before, after = comparison.before.name, comparison.after.name
    console.print()
    console.print(_table("Counted", comparison.rows, before, after))
    if comparison.ratios:
        console.print()
        console.print(_table("Per request, per warp", comparison.ratios, before, after))


def _table(title: str, rows: tuple[Row, ...], before: str, after: str) -> Table:
    table = styled_table(title)
    table.add_column("Metric Name", min_width=36)
    for name in (f"Before: {before}", f"After: {after}", "Change"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.name, _number(row.before), _number(row.after), row.change)
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def comparison_as_json(comparison: Comparison) -> str:
    """Returns a comparison as JSON."""
    data = {
        "before": comparison.before.name,
        "after": comparison.after.name,
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "notes": comparison.notes,
        "seconds": [comparison.before.seconds, comparison.after.seconds],
        "least_seconds": [comparison.before.least_seconds, comparison.after.least_seconds],
        "counts": [_as_data(row) for row in comparison.rows],
        "ratios": [_as_data(row) for row in comparison.ratios],
    }
    return json.dumps(data, indent=2)


def _as_data(row: Row) -> dict[str, object]:
    return {
        "name": row.name,
        "before": row.before,
        "after": row.after,
        "change": row.change,
        "slots": row.slots,
    }
