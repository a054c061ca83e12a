"""The verdict on a launch: what bounds it, and the findings that matter most, on lines of source or
on the launch as a whole, each with its remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from warploom.report.advice import Advice
from warploom.report.advice.origins import enumerated
from warploom.report.ceilings import ceilings
from warploom.report.costs import LineCost, unit_costs
from warploom.report.peaks import Gain, gain_of, time_text
from warploom.report.sections import Report
from warploom.report.source import source_line, split_line

FINDINGS = 2
"""The costliest lines of source that a verdict names if it has no finding."""

LEAST_SHOWN = 0.01
"""Smaller shares of the modelled time count as nothing."""

LEAST_LINE = 0.05
"""A line with a smaller share of the cost is not named."""


MOST_NAMED = 3
"""How many more lines are named for one remedy."""

LEAST_RELIEF = 0.1
"""Beside a finding that saves so much of the modelled time, or would if the part of the GPU that it
relieves were used alone, those that save less are not named, nor minor ones."""

LEAST_IDLE = 0.1
"""The share of SMs without work from which on times are said to be those of the busiest SM."""


@dataclass(frozen=True)
class VerdictLine:
    """A line of a verdict: a line of source or "launch" with what was found there; beneath it the
    source (`code`) and the `remedy`, if there are such. `title` is the text without evidence."""

    text: str
    remedy: str = ""
    code: str = ""
    title: str = ""


def verdict(report: Report) -> tuple[VerdictLine, ...]:
    """Returns what bounds the launch, then the findings that matter most."""
    return (VerdictLine(f"{_longest(report)}."), *_findings(report))


def gain_text(report: Report, advice: Advice) -> str:
    """Returns what a remedy gains at most: the modelled time of the launch before and after, by
    `ceilings`, or that of the part of the GPU that it relieves, if another one bounds the launch.
    Where nothing is modelled, the share of the counted cost; empty without any."""
    found = _gain(report, advice)
    if found is None:
        has_model = report.work is not None or not advice.share
        return "" if has_model else f"saves up to {100 * advice.share:.0f} % of the counted cost"
    if found.share >= LEAST_SHOWN:
        times = f"{time_text(found.before)} to {time_text(found.after)}"
        return f"saves up to {100 * found.share:.0f} %: {times}"
    if found.relief < LEAST_SHOWN:
        return "saves hardly any time"
    times = f"{time_text(found.part_before)} to {time_text(found.part_after)}"
    return f"not the bottleneck: {found.part} {times}"


def _gain(report: Report, advice: Advice) -> Gain | None:
    if report.work is None:
        return None
    return gain_of(report.work, report.facts.spec, advice.saves)


def _findings(report: Report) -> list[VerdictLine]:
    """Returns the advice on a launch, that which gains most first; where there is none, the lines
    of source that cost most follow."""
    # Advice on what bounds the modelled time has no place; the first line says that.
    advised = joined([advice for advice in report.advice if advice.line != ""])
    ranked = [(_worth(report, advice), advice) for advice in advised]
    ranked.sort(key=lambda pair: (pair[1].is_minor, -pair[0] * _weight(report, pair[1])))
    is_large = any(worth >= LEAST_RELIEF and not advice.is_minor for worth, advice in ranked)
    least = LEAST_RELIEF if is_large else LEAST_SHOWN
    chosen = [
        advice for worth, advice in ranked if worth >= least and not (advice.is_minor and is_large)
    ]
    found = [_advised(report, advice) for advice in chosen]
    other = next(
        (at for at, advice in enumerate(chosen) if _relieves_another(report, advice)), None
    )
    if other is not None:
        found[other] = replace(
            found[other], remedy=f"{found[other].remedy} {_conclusion(report)}".strip()
        )
    if all(advice.is_minor for advice in chosen):
        found += [_line(line) for line in report.lines[:FINDINGS] if line.share >= LEAST_LINE]
        return [VerdictLine(NOTHING_FOUND), *found]
    return found


def joined(found: Sequence[Advice]) -> list[Advice]:
    """Returns advice with the same remedy for several lines as one piece, which saves what all of
    them save, at the line that costs most; others as they are."""
    by_remedy: dict[tuple[str, str], list[Advice]] = {}
    for advice in found:
        by_remedy.setdefault((advice.rule, advice.text), []).append(advice)
    return [_of_lines(same) for same in by_remedy.values()]


def _of_lines(same: Sequence[Advice]) -> Advice:
    """Returns advice of one rule for several lines as one piece."""
    most = max(same, key=lambda advice: advice.share)
    others = tuple(dict.fromkeys(one.line for one in same if one.line not in (None, most.line)))
    saves: Counter[str] = Counter()
    for advice in same:
        saves.update(advice.saves)
    share = min(1.0, sum(advice.share for advice in same))
    return replace(most, others=others, saves=dict(saves), share=share)


NOTHING_FOUND = "  No access pattern, branch or launch parameter costs much time."


def _worth(report: Report, advice: Advice) -> float:
    """Returns the share of the time that advice gains, as an order. What makes results wrong comes
    first; what no peak limits, before small gains."""
    if advice.is_minor:
        return 0.0 if advice.saves else LEAST_RELIEF
    if advice.line is not None and advice.cost is None and not advice.saves:
        return 2.0
    found = _gain(report, advice)
    if found is None:
        return max(advice.share, LEAST_RELIEF)
    return found.relief


def _relieves_another(report: Report, advice: Advice) -> bool:
    """Returns whether advice relieves another part of the GPU than the bound."""
    found = _gain(report, advice)
    return found is not None and found.share < LEAST_SHOWN <= found.relief


def _conclusion(report: Report) -> str:
    """Returns what follows for this run from advice on another part of the GPU than the bound. The
    way of each warp may be shorter with fewer instructions, which `ceilings` does not count."""
    if ceilings(report)[0].part == "latency":
        return "The effect of this change on latency is not modelled."
    return "This change does not shorten the run."


def _weight(report: Report, advice: Advice) -> float:
    """Returns the weight of a finding's worth in the order: half for one that relieves another part
    of the GPU than the bound."""
    found = _gain(report, advice)
    return 0.5 if found is not None and found.share < LEAST_SHOWN else 1.0


def _advised(report: Report, advice: Advice) -> VerdictLine:
    """Returns advice with its number first, its source and its remedy beneath."""
    where, code = "launch", ""
    if advice.line is not None:
        file, number = split_line(advice.line)
        where = enumerated([f"{PurePath(file).name}:{number}", *_short(advice.others, file)])
        code = source_line(file, number)
    elif advice.code:
        file, number = split_line(advice.code)
        code = f"{PurePath(file).name}:{number}  {source_line(file, number)}"
    gained = gain_text(report, advice)
    title = f"{where}  {advice.rule}{f' ({gained})' if gained else ''}"
    return VerdictLine(f"  {title}: {advice.evidence}", advice.text, code, title)


def _short(lines: Sequence[str], file: str) -> list[str]:
    """Returns lines of source as they are named after one of `file`: at most MOST_NAMED of them."""
    places = [split_line(line) for line in lines]
    names = [
        f"{number}" if other == file else f"{PurePath(other).name}:{number}"
        for other, number in sorted(places)
    ]
    more = len(names) - MOST_NAMED
    return names if more <= 0 else [*names[:MOST_NAMED], f"{more} more"]


def _longest(report: Report) -> str:
    """Returns the part of the GPU that the launch uses longest, in modelled time where it has some,
    by the device's peaks otherwise, else by counted slots."""
    if report.modelled_bound:
        return f"Bound (modelled): {report.modelled_bound.removesuffix('.')}"
    found = ceilings(report)
    if found and report.work is not None:
        first, second = found[0], found[1:2]
        idle = report.work.idle_sms >= LEAST_IDLE * report.work.sms
        where = " (busiest SM)" if idle and first.part in OF_SMS else ""
        text = (
            f"Bound by {first.part} (modelled): {'at most ' if first.is_upper else ''}"
            f"{time_text(first.seconds)} for {first.work}{where}"
        )
        return text + "".join(f"; {one.part} {time_text(one.seconds)}" for one in second)
    units = unit_costs(report.counters, report.examples, report.facts.spec.warp_size)
    total = sum(units.values())
    if not total:
        return "No instruction was executed"
    unit, slots = next(iter(units.items()))
    return f"Largest cost: {unit} ({100 * slots / total:.0f} % of the counted cost)"


OF_SMS = {"instructions", "double precision", "special functions", "shared memory"}
"""Parts of the GPU that each SM has; the others serve all SMs."""


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
