"""The verdict on a launch: what bounds it, and the three findings that matter most, on lines of
source or on the launch as a whole, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from warploom.report.advice import Advice
from warploom.report.ceilings import ceilings, time_text
from warploom.report.costs import LineCost, unit_costs
from warploom.report.sections import Report
from warploom.report.source import source_line, split_line

FINDINGS = 3
"""The lines of source, and properties of the launch, that a verdict names."""

LEAST_LINE = 0.05
"""A line with a smaller share of the cost is not named."""


@dataclass(frozen=True)
class VerdictLine:
    """A line of a verdict: a line of source or "launch" with what was found there, and beneath it
    the `remedy`, if there is one."""

    text: str
    remedy: str = ""


def verdict(report: Report) -> tuple[VerdictLine, ...]:
    """Returns what bounds the launch, then the findings that matter most."""
    return (VerdictLine(f"{_longest(report)}."), *_findings(report)[:FINDINGS])


def _findings(report: Report) -> list[VerdictLine]:
    """Returns the advice on a launch in its order, which is that of its worth; where there is none
    that costs anything, the lines of source that cost most follow."""
    # Advice on what bounds the modelled time has no place; the first line says that.
    found = [_advised(advice) for advice in report.advice if advice.line != ""]
    if not any(advice.cost for advice in report.advice):
        found += [_line(line) for line in report.lines if line.share >= LEAST_LINE]
    return found


def _advised(advice: Advice) -> VerdictLine:
    """Returns advice with its number first, and its remedy beneath."""
    where = "launch"
    if advice.line is not None:
        file, number = split_line(advice.line)
        where = f"{PurePath(file).name}:{number}"
    share = f" (up to {100 * advice.share:.0f} % of the cost)" if advice.share else ""
    return VerdictLine(f"  {where}  {advice.rule}{share}: {advice.evidence}", advice.text)


def _longest(report: Report) -> str:
    """Returns the part of the GPU that the launch uses longest, in modelled time where it has some,
    by the device's peaks otherwise, else by counted slots."""
    if report.modelled_bound:
        return f"Bound (modelled): {report.modelled_bound.removesuffix('.')}"
    found = ceilings(report)
    if found:
        first, second = found[0], found[1:2]
        text = f"Bound by {first.part} (modelled): {time_text(first.seconds)} for {first.work}"
        return text + "".join(f", {other.part} {time_text(other.seconds)}" for other in second)
    units = unit_costs(report.counters, report.examples, report.facts.spec.warp_size)
    total = sum(units.values())
    if not total:
        return "No instruction was executed"
    unit, slots = next(iter(units.items()))
    return f"Largest cost: {unit} ({100 * slots / total:.0f} % of the counted slots)"


def _line(line: LineCost) -> VerdictLine:
    """Returns a line with its share of the cost, the reason and the source."""
    file, number = split_line(line.line)
    text = f"{line.why} | {source_line(file, number)}".removesuffix(" | ")
    return VerdictLine(
        f"  {PurePath(file).name}:{number}  {100 * line.share:.0f} % of the cost: {text}"
    )


def section_names(report: Report) -> Iterator[str]:
    """Yields the names of the sections that a report can show one by one."""
    yield from (section.title for section in report.sections if section.metrics)
    yield from ("Source Counters", "Advice")
