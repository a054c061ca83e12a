"""Renders a report as text: tables in the manner of Nsight Compute."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warploom.core.mangled import read_symbol
from warploom.observe.counters import Counts
from warploom.report.sections import Report, Section, Value
from warploom.report.source import source_line, split_line
from warploom.report.terms import translator

WIDTH = 100
COSTLIEST = 10
"""So many source lines are shown."""

SOURCE_WIDTH = 24
"""So much is shown of each."""

Translate = Callable[[str], str]

_COLUMNS: dict[str, Callable[[Counts], int]] = {
    "Warp Inst": lambda counts: counts.warp_instructions,
    "Divergent": lambda counts: counts.divergent_branches,
    "Ld Sectors": lambda counts: counts.global_load_sectors,
    "St Sectors": lambda counts: counts.global_store_sectors,
    "Conflicts": lambda counts: (
        counts.shared_load_bank_conflicts + counts.shared_store_bank_conflicts
    ),
    "Atomic Passes": lambda counts: counts.atomic_passes,
}
"""What is shown of a source line."""


class ReportText(str):
    """A report, which a notebook shows as it is and not as a quoted string."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Writes the text for IPython."""
        printer.text(str(self))


def render_text(report: Report, terms: str | None = None) -> ReportText:
    """Returns the report as plain text, 100 columns wide."""
    out = StringIO()
    render(report, Console(file=out, width=WIDTH, color_system=None), terms)
    return ReportText("\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n")


def _compiling(seconds: float) -> str:
    return f", after {seconds:,.3f} s of compiling" if seconds >= 0.0005 else ""


def _tier(tier: str) -> str:
    """Returns words for a time in baseline code, which implies nothing about longer runs."""
    return ", in baseline code (longer runs get optimised code)" if tier == "baseline" else ""


def render(report: Report, console: Console, terms: str | None = None) -> None:
    """Prints the report, in the terms of "cuda", "opencl" or "hip", else in its own."""
    facts = report.facts
    say = translator(terms or facts.terms)
    console.print(
        Text.assemble(
            (read_symbol(facts.kernel).template, "bold"),
            f" on {facts.spec.title} (compute capability {facts.spec.cc}), by the"
            f" {facts.engine} engine in {facts.seconds:,.3f} s of this host"
            f"{_compiling(facts.compile_seconds)}{_tier(facts.tier)}",
        )
    )
    if facts.newer_target is not None:
        console.print(
            f"The PTX is for {facts.newer_target}, which this device is older than; it has every"
            f" instruction in it. A driver would refuse it (--strict-target)."
        )
    if facts.any_order:
        console.print(
            "Blocks ran in any order: another launch may leave another result, and other counts."
        )
    for section in report.sections:
        if section.metrics:
            console.print(section_table(section, say, console.width))
    _print_source_counters(report, console, say)
    _print_advice(report, console, say)
    console.print(
        "Counted: in the execution. Modelled: computed from the device's facts. Instructions are"
        " those of PTX, not a GPU's own.",
        style="dim",
    )


def section_table(section: Section, say: Translate = str, width: int = WIDTH) -> Table:
    """Returns a section as a table, in the words of `say`. Where `width` is less than WIDTH, names
    are wrapped, and values are not."""
    narrow = width < WIDTH
    table = styled_table(say(section.title))
    table.add_column("Metric Name", min_width=None if narrow else 44)
    table.add_column("Unit", min_width=None if narrow else 10)
    table.add_column("Value", justify="right", min_width=None if narrow else 20, no_wrap=narrow)
    table.add_column("Kind", no_wrap=narrow)
    for metric in section.metrics:
        value = _number(metric.value)
        table.add_row(say(metric.name), say(metric.unit), say(value), metric.kind)
    return table


def _print_source_counters(report: Report, console: Console, say: Translate) -> None:
    """Prints the costliest lines; what each costs for stands below the table where the console is
    narrow."""
    narrow = console.width < WIDTH
    console.print(_source_counters(report, say, with_reasons=not narrow))
    if not narrow:
        return
    for line in report.lines[:COSTLIEST]:
        text = Text(f"{_short(line.line)} ", style="bold")
        text.append(say(line.why) if line.why else "", style="not bold")
        console.print(text)
        console.print(Text(f"  {source_line(*split_line(line.line)).strip()}", style="dim"))
    console.print()


def _source_counters(report: Report, say: Translate, *, with_reasons: bool) -> Table:
    """Returns the costliest lines; a column of what never happened is left out."""
    shown = report.lines[:COSTLIEST]
    more = len(report.lines) - len(shown)
    title = "Source Counters (counted)" + (f", {more} more lines not shown" if more else "")
    columns = [
        (heading, count)
        for heading, count in _COLUMNS.items()
        if any(count(line.counts) for line in shown)
    ]
    table = styled_table(title)
    table.add_column("Line", no_wrap=True)
    for heading in ("Cost", *(say(heading) for heading, _ in columns), "Lanes"):
        table.add_column(heading, justify="right", no_wrap=True)
    if with_reasons:
        table.add_column("Why / Source", min_width=24, max_width=WIDTH // 2)
    for line in shown:
        cells = [_number(count(line.counts)) for _, count in columns]
        lanes = f"{line.counts.average_active_lanes:.1f}"
        why = Text(f"{say(line.why)}\n" if line.why else "")
        why.append(_cut(source_line(*split_line(line.line))), style="dim")
        reasons = (why,) if with_reasons else ()
        table.add_row(_short(line.line), _number(line.cost), *cells, lanes, *reasons)
    return table


def _print_advice(report: Report, console: Console, say: Translate) -> None:
    """Prints what the rules found, each with its evidence."""
    if report.advice:
        console.print(Text("Advice", style="bold"))
    for advice in report.advice:
        where = f" at {_short(advice.line)}" if advice.line else ""
        text = Text(f"  {say(advice.rule)}{where}: ", style="bold")
        text.append(f"{say(advice.evidence)}.", style="not bold")
        console.print(text)
        console.print(Text(f"    {say(advice.text)}"))
    if report.advice:
        console.print()


def styled_table(title: str) -> Table:
    """Returns an empty table, as reports have them."""
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


def _cut(source: str) -> str:
    return source if len(source) <= SOURCE_WIDTH else source[: SOURCE_WIDTH - 1] + "…"


def _short(line: str) -> str:
    """Returns the file by its name alone: what stands before it is in the JSON."""
    file, number = split_line(line)
    return f"{Path(file).name}:{number}"
