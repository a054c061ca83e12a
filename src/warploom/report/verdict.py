"""The verdict on a launch in at most five lines: what costs most, the three costliest lines with
reason and remedy, and the next command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from warploom.report.advice import Advice
from warploom.report.ceilings import ceilings
from warploom.report.costs import LineCost, unit_costs
from warploom.report.sections import Report
from warploom.report.source import source_line, split_line

LINES = 3
"""The lines of source that a verdict names."""

LEAST_LINE = 0.05
"""A line with a smaller share of the cost is not named."""

_CLAUSE_END = re.compile(r"[:;.](?=\s|$)|\s\((?!\d)")
"""Ends the first clause of a remedy; a shape in parentheses, (32x2), belongs to it."""


def verdict(report: Report, next_command: str = "") -> tuple[str, ...]:
    """Returns the lines of the verdict, without line breaks; the last is `next_command`, if it is
    given."""
    lines = (_line(report, line) for line in report.lines[:LINES] if line.share >= LEAST_LINE)
    last = (f"Next: {next_command}",) if next_command else ()
    return (_bound(report), *lines, *last)


def _bound(report: Report) -> str:
    """Returns what bounds the launch, and what it leaves without work."""
    parts = [_longest(report)]
    parts += [_short(advice) for advice in report.advice if advice.line is None]
    return "; ".join(parts) + "."


def _longest(report: Report) -> str:
    """Returns the part of the GPU that the launch uses longest, in modelled time where it has some,
    by the device's peaks otherwise, else by counted slots."""
    if report.modelled_bound:
        return f"Bound (modelled): {report.modelled_bound.removesuffix('.')}"
    found = ceilings(report)
    if found:
        first, second = found[0], found[1:2]
        text = f"Bound by {first.part} (modelled): {_time(first.seconds)} for {first.work}"
        return text + "".join(f", {other.part} {_time(other.seconds)}" for other in second)
    units = unit_costs(report.counters, report.examples, report.facts.spec.warp_size)
    total = sum(units.values())
    if not total:
        return "No instruction was executed"
    unit, slots = next(iter(units.items()))
    return f"Largest cost: {unit} ({100 * slots / total:.0f} % of the counted slots)"


def _time(seconds: float) -> str:
    """Returns a time in a unit of three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _short(advice: Advice) -> str:
    """Returns advice on a launch in a few words."""
    share = f" ({100 * advice.share:.0f} %)" if advice.share else ""
    return f"{advice.rule}{share}"


def _line(report: Report, line: LineCost) -> str:
    """Returns a line with its share of the cost, and its advice that costs most, else the reason
    and the source."""
    file, number = split_line(line.line)
    found = next((one for one in report.advice if one.line == line.line and one.cost), None)
    if found is None:
        text = f"{line.why} | {source_line(file, number)}".removesuffix(" | ")
    else:
        text = f"{found.rule}: {first_clause(found.text)}."
    return f"{100 * line.share:4.0f} %  {PurePath(file).name}:{number}  {text}"


def first_clause(text: str) -> str:
    """Returns a remedy up to the end of its first clause."""
    end = _CLAUSE_END.search(text)
    return text[: end.start()] if end else text


def section_names(report: Report) -> Iterator[str]:
    """Yields the names of the sections that a report can show one by one."""
    yield from (section.title for section in report.sections if section.metrics)
    yield from ("Source Counters", "Advice")
