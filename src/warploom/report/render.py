"""Renders a report as text: tables in the manner of Nsight Compute."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from warploom.core.errors import WarploomError
from warploom.core.mangled import read_symbol
from warploom.observe.counters import Counts
from warploom.report.console import KINDS, PLACE, RULE, TITLE
from warploom.report.sections import Metric, Report, Section, Value
from warploom.report.source import source_line, split_line
from warploom.report.terms import translator
from warploom.report.verdict import VerdictLine, gain_text, section_names, verdict

WIDTH = 100
COSTLIEST = 10
"""The source lines that are shown."""

SOURCE_WIDTH = 24
"""The characters that are shown of each."""

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


def render_text(report: Report, terms: str | None = None, parts: Parts | None = None) -> ReportText:
    """Returns parts of the report, all by default, as plain text, 100 columns wide."""
    out = StringIO()
    render(report, Console(file=out, width=WIDTH, color_system=None), terms, parts)
    return ReportText("\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n")


def _compiling(seconds: float) -> str:
    return f", after {seconds:,.3f} s of compilation" if seconds >= 0.0005 else ""


def _tier(tier: str) -> str:
    """Returns words for a time in baseline code, which implies nothing about longer runs."""
    return ", in baseline code (longer runs use optimized code)" if tier == "baseline" else ""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a report that are shown: the verdict and, with `details`, all else; or the
    sections of some names alone (beginnings of titles). `next_command` ends the verdict."""

    details: bool = True
    sections: Sequence[str] = ()
    next_command: str = ""


def render(
    report: Report, console: Console, terms: str | None = None, parts: Parts | None = None
) -> None:
    """Prints parts of the report, all by default, in the terms of "cuda", "opencl" or "hip", else
    in its own. Raises WarploomError for the name of a section that it does not have."""
    parts = parts or Parts()
    say = translator(terms or report.facts.terms)
    chosen = _chosen(report, parts.sections)
    if chosen is None:
        lines = _print_head(report, console, is_short=not parts.details)
        _print_verdict(report, console, say, VERDICT_LINES - lines)
        if parts.next_command:
            console.print(Text(f"Next: {parts.next_command}"), soft_wrap=True)
    if _shows("Advice", chosen, details=parts.details):
        _print_advice(report, console, say)
    for section in report.sections:
        if section.metrics and _shows(section.title, chosen, details=parts.details):
            console.print(section_table(section, say, console.width))
    if _shows("Source Counters", chosen, details=parts.details):
        _print_source_counters(report, console, say)
    if parts.details and chosen is None:
        console.print(
            'Values marked "counted" were counted during execution. Values marked "modelled" are '
            "computed from the device's specifications. Instructions are PTX instructions, not "
            "machine instructions.",
            style="dim",
        )


def _chosen(report: Report, names: Sequence[str]) -> frozenset[str] | None:
    """Returns the titles of the sections that names mean; None for no names."""
    if not names:
        return None
    titles = list(section_names(report))
    chosen: set[str] = set()
    for name in names:
        fit = [title for title in titles if title.lower().startswith(name.lower())]
        if not fit:
            raise WarploomError(
                f"the report has no section {name!r}. Its sections are {', '.join(titles)}."
            )
        chosen.update(fit)
    return frozenset(chosen)


def _shows(title: str, chosen: frozenset[str] | None, *, details: bool) -> bool:
    return details if chosen is None else title in chosen


def _print_head(report: Report, console: Console, *, is_short: bool) -> int:
    """Prints what was launched, where, and how long that took; returns the lines that it takes
    after the first."""
    facts = report.facts
    compiling = _compiling(facts.compile_seconds)
    text = (
        f" on {facts.spec.title}, run by the {facts.engine} engine in {facts.seconds:,.3f} s"
        f"{f' (compiled in {facts.compile_seconds:,.3f} s)' if compiling else ''}"
        if is_short
        else f" on {facts.spec.title} (compute capability {facts.spec.cc}), run by the "
        f"{facts.engine} engine in {facts.seconds:,.3f} s on this host{compiling}"
        f"{_tier(facts.tier)}"
    )
    notes: list[str] = []
    if facts.newer_target is not None:
        notes.append(
            f"The PTX targets {facts.newer_target}, which is newer than this device. The device "
            "supports all instructions in this PTX, but a driver would reject the PTX, as "
            "--strict-target does."
        )
    if facts.any_order:
        notes.append(
            "Blocks ran in arbitrary order: another launch may give different results and counts."
        )
    head = Text.assemble((read_symbol(facts.kernel).template, "bold"), text)
    for line in (head, *notes):
        console.print(line)
    return sum(len(textwrap.wrap(str(line), console.width)) for line in (head, *notes)) - 1


VERDICT_LINES = 9
"""The lines of a verdict at most below a head of one line, so that a first screen has fifteen with
three buffers, an empty line and the next command."""

CODE_LINES = 2
"""The lines of the source of a finding at most."""

REMEDY_INDENT = " " * 6
CODE_INDENT = REMEDY_INDENT + "| "


def _print_verdict(report: Report, console: Console, say: Translate, left: int) -> None:
    """Prints the verdict in at most `left` lines: as many findings as fit with their source, their
    whole remedies and a line of numbers each, which is cut to the width only if no line is left for
    its end; the first finding is whole if it fits at all. The next line names those left out."""
    findings: list[tuple[_Finding, bool]] = []
    lines = verdict(report)
    for at, line in enumerate(lines):
        finding = _Finding.of(line, console.width, say)
        space = left - (at + 1 < len(lines))
        if at > FIRST_FINDING and finding.least > space >= finding.least - len(finding.code):
            finding = replace(finding, code=[])
        if finding.least > space:
            more = [say(other.title) for other in lines[at:] if other.title]
            if more:
                rest = _Finding.of(VerdictLine(f"  {_further(more)}"), console.width, say)
                findings.append((rest, False))
                left -= 1
            break
        is_whole = at <= FIRST_FINDING and finding.most <= space
        left -= finding.most if is_whole else finding.least
        findings.append((finding, is_whole))
    for finding, is_whole in findings:
        fits = is_whole or len(finding.text) - 1 <= left
        left -= len(finding.text) - 1 if fits and not is_whole else 0
        shown = Text("\n".join(finding.text) if fits else finding.whole)
        shown.highlight_regex(r"(?<=^  )[^ ]+", PLACE)
        console.print(shown, no_wrap=True, overflow="ellipsis")
        for part in finding.code:
            console.print(Text(part, style="dim"), no_wrap=True, overflow="ellipsis")
        for part in finding.remedy:
            console.print(Text(REMEDY_INDENT + part, style=RULE))


FIRST_FINDING = 1
"""The index of the finding that matters most; the bound stands before it."""


def _further(titles: list[str]) -> str:
    """Returns a line for findings that do not fit on a first screen."""
    more = f", and {len(titles) - 1} more" if len(titles) > 1 else ""
    return f"{titles[0]}{more}: see --details"


@dataclass(frozen=True, slots=True)
class _Finding:
    """A finding as lines of a console: its numbers, its source and its remedy; `whole` are the
    numbers on one line."""

    whole: str
    text: list[str]
    code: list[str]
    remedy: list[str]

    @classmethod
    def of(cls, line: VerdictLine, width: int, say: Translate) -> _Finding:
        """Returns a line of a verdict, wrapped to a width."""
        text = say(line.text)
        code = textwrap.wrap(
            line.code,
            width,
            initial_indent=CODE_INDENT,
            subsequent_indent=CODE_INDENT + "    ",
            max_lines=CODE_LINES,
            placeholder=" …",
            break_on_hyphens=False,
        )
        remedy = textwrap.wrap(say(line.remedy), width - len(REMEDY_INDENT))
        return cls(text, textwrap.wrap(text, width, subsequent_indent=REMEDY_INDENT), code, remedy)

    @property
    def least(self) -> int:
        """Returns the lines that it takes if its numbers are cut."""
        return 1 + len(self.code) + len(self.remedy)

    @property
    def most(self) -> int:
        """Returns the lines that it takes as a whole."""
        return len(self.text) + len(self.code) + len(self.remedy)


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
        kind = Text(metric.kind, style=KINDS.get(metric.kind, ""))
        table.add_row(say(_explained(metric)), say(metric.unit), say(value), kind)
    return table


def _explained(metric: Metric) -> str:
    """Returns the name of a metric, with the reason of an efficiency above 100 %: lanes that want
    one word share it."""
    is_above = metric.name.endswith("Efficiency") and isinstance(metric.value, float)
    if is_above and float(metric.value) > 100:
        return f"{metric.name} (lanes share words)"
    return metric.name


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
    number = _number if with_reasons else _short_number
    longest = max((len(_short(line.line)) for line in shown), default=0)
    table.add_column("Line", no_wrap=True, min_width=longest)
    for heading in ("Cost", *(say(heading) for heading, _ in columns), "Lanes"):
        # Headings may wrap, numbers not: none of their digits may be missing.
        least = None if with_reasons else SHORT_NUMBER
        table.add_column(heading, justify="right", no_wrap=with_reasons, min_width=least)
    if with_reasons:
        table.add_column("Why / Source", min_width=24, max_width=WIDTH // 2)
    for line in shown:
        cells = [number(count(line.counts)) for _, count in columns]
        lanes = f"{line.counts.average_active_lanes:.1f}"
        why = Text(f"{say(line.why)}\n" if line.why else "")
        why.append(_cut(source_line(*split_line(line.line))), style="dim")
        reasons = (why,) if with_reasons else ()
        table.add_row(_short(line.line), number(line.cost), *cells, lanes, *reasons)
    return table


def _print_advice(report: Report, console: Console, say: Translate) -> None:
    """Prints what the rules found, each with its evidence, its remedy and what that may gain."""
    if report.advice:
        console.print(Text("Advice", style=TITLE))
    for advice in report.advice:
        where = f" at {_short(advice.line)}" if advice.line else ""
        text = Text.assemble((f"{say(advice.rule)}{where}: ", RULE), f"{say(advice.evidence)}.")
        console.print(Padding(text, (0, 0, 0, 2)))
        gained = gain_text(report, advice)
        remedy = f"{say(advice.text)}{f' ({gained})' if gained else ''}".strip()
        if remedy:
            console.print(Padding(Text(remedy), (0, 0, 0, 4)))
    if report.advice:
        console.print()


def styled_table(title: str) -> Table:
    """Returns an empty table, as reports have them."""
    return Table(
        title=title,
        title_justify="left",
        title_style=TITLE,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _number(value: Value) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


SHORT_NUMBER = 5
"""The most characters of a number in a narrow table."""


def _short_number(value: Value) -> str:
    """Returns a count in three digits and the letter of its unit, such as 8.39M; smaller ones in
    full."""
    if not isinstance(value, int) or value < 10_000:
        return str(value)
    size, letters = float(value), iter("kMGTPE")
    letter = ""
    while size >= 999.5:
        size, letter = size / 1000, next(letters)
    return f"{size:.3g}{letter}" if size < 99.95 else f"{size:.0f}{letter}"


def _cut(source: str) -> str:
    return source if len(source) <= SOURCE_WIDTH else source[: SOURCE_WIDTH - 1] + "…"


def _short(line: str) -> str:
    """Returns the file by its name alone: what stands before it is in the JSON."""
    file, number = split_line(line)
    return f"{Path(file).name}:{number}"
