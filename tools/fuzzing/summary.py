"""Reports what a run of the fuzzer did: as a table, and as JSON."""

from __future__ import annotations

import resource
from dataclasses import asdict
from typing import Any

from fuzzing.branches import sides_of
from fuzzing.campaign import SEEDS, Campaign
from fuzzing.cases import Finding
from fuzzing.targets import forms
from warploom.isa.spec import FORMS


def table(campaign: Campaign) -> str:
    """Returns a Markdown table of the targets: examples, processor seconds, errors found; and what
    the whole run took, with the start of workers and the reduction of what was found."""
    rows = [
        (name, tally.examples, tally.processor_seconds, _count(campaign, name))
        for name, tally in campaign.tallies.items()
    ]
    examples, seconds, found = (list(column) for column in list(zip(*rows, strict=True))[1:])
    rows.append(("all", sum(examples), sum(seconds), sum(found)))
    head = ["| target | examples | processor seconds | errors found |", "| --- | --: | --: | --: |"]
    shown = [f"| {name} | {runs:,} | {time:,.0f} | {errors} |" for name, runs, time, errors in rows]
    whole = f"Processor seconds of all processes: {processor_seconds():,.0f}."
    return "\n".join([*head, *shown, "", whole, *_coverage(campaign)])


def _coverage(campaign: Campaign) -> list[str]:
    """Returns how many of the instruction forms the target `forms` executed, and those of families
    that it did not."""
    tally = campaign.tallies.get("forms")
    if tally is None or not tally.examples:
        return []
    first = campaign.plan.seed * SEEDS
    seeds = range(first, first + tally.examples)
    executed = forms.executed(seeds)
    every = {spec for specs in FORMS.values() for spec in specs}
    left = sorted(spec.syntax for spec in forms.EVERY - executed)
    line = f"Instruction forms executed by `forms`: {len(executed)} of {len(every)}"
    opcodes = {opcode for seed in seeds for opcode in forms.opcodes(seed)}
    sides = sum(map(sides_of, opcodes))
    return [
        f"{line} ({len(forms.EVERY)} are in its families).",
        f"Sides of conditions in the semantics of its {len(opcodes):,} operations that lanes took: "
        f"{len(campaign.sides):,} of {sides:,}.",
    ] + [f"Not executed: {', '.join(left[:20])}{' ...' if len(left) > 20 else ''}"] * bool(left)


def processor_seconds() -> float:
    """Returns what this process and the workers that have ended have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _count(campaign: Campaign, target: str) -> int:
    return sum(finding.target == target for finding in campaign.findings.values())


def describe(finding: Finding) -> str:
    """Returns what was found, how to run it, and where it was written."""
    more = f" ({len(finding.seeds)} seeds)" if len(finding.seeds) > 1 else ""
    outcome = finding.outcome
    return (
        f"{outcome.kind} in {finding.target}{more}: {outcome.message}\n"
        f"    {finding.command}\n    {finding.file}"
    )


def document(campaign: Campaign, command: str) -> dict[str, Any]:
    """Returns the whole run for JSON."""
    return {
        "command": command,
        "processor_seconds": processor_seconds(),
        "targets": {name: asdict(tally) for name, tally in campaign.tallies.items()},
        "findings": [asdict(finding) for finding in campaign.findings.values()],
    }
