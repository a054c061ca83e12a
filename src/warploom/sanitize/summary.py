"""Summarizes findings of several launches as text, JSON or SARIF."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from warploom.sanitize.findings import ERROR, NOTE, WARNING, Finding
from warploom.sanitize.suppressions import read_suppressions, without_suppressed

PREFIX = "========= "
"""Begins each line, as in compute-sanitizer's output."""

LEVELS = (ERROR, WARNING, NOTE)


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings of several launches, each pair of lines once, with the counts added
    up."""
    merged: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        key = (
            finding.tool,
            finding.kind,
            finding.space,
            frozenset((finding.line, finding.other_line)),
        )
        previous = merged.get(key)
        merged[key] = (
            replace(previous, count=previous.count + finding.count) if previous else finding
        )
    return sorted(merged.values(), key=lambda finding: LEVELS.index(finding.severity))


@dataclass(frozen=True, slots=True)
class Summary:
    """Holds the findings to be shown, at most `limit` of them; `suppressed` is the number of
    further ones that a file of suppressions accepts."""

    findings: Sequence[Finding]
    suppressed: int = 0
    limit: int = 100

    def number(self, severity: str) -> int:
        """Returns the number of findings of a severity, shown or not."""
        return sum(finding.severity == severity for finding in self.findings)

    def text(self) -> str:
        """Returns the findings in the form of compute-sanitizer, and their numbers."""
        lines: list[str] = []
        for finding in self.findings[: self.limit]:
            title, *rest = finding.message.split("\n")
            lines += [f"{finding.severity.capitalize()}: {title}", *rest]
            lines += [f"    {finding.count:,} times"] if finding.count > 1 else []
            lines.append("")
        hidden = len(self.findings) - self.limit
        if hidden > 0:
            lines.append(f"Findings not shown: {hidden:,} (--limit)")
        if self.suppressed:
            lines.append(f"{self.suppressed:,} suppressed")
        counts = ", ".join(_counted(self.number(level), level) for level in LEVELS)
        lines.append(f"ERROR SUMMARY: {counts}")
        return "\n".join((PREFIX + line).rstrip() for line in lines) + "\n"

    def data(self) -> dict[str, Any]:
        """Returns all findings as data for JSON."""
        return {
            "findings": [asdict(finding) for finding in self.findings],
            "suppressed": self.suppressed,
            **{f"{level}s": self.number(level) for level in LEVELS},
        }

    def sarif(self) -> str:
        """Returns all findings as SARIF 2.1.0, for tools of code review."""
        rules = sorted({f"{finding.tool}/{finding.kind}" for finding in self.findings})
        run = {
            "tool": {"driver": {"name": "Warploom", "rules": [{"id": rule} for rule in rules]}},
            "results": [_result(finding) for finding in self.findings],
        }
        schema = "https://json.schemastore.org/sarif-2.1.0.json"
        return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def summarised(findings: Iterable[Finding], suppressions: Path | None, limit: int) -> Summary:
    """Returns the summary of the findings of several launches; `suppressions` is a file of accepted
    ones. Raises WarploomError for a file that cannot be used."""
    accepted = read_suppressions(suppressions) if suppressions else ()
    kept, suppressed = without_suppressed(merge_findings(findings), accepted)
    return Summary(kept, suppressed, limit)


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}" + "s" * (number != 1)


def _result(finding: Finding) -> dict[str, Any]:
    """Returns one result of SARIF."""
    result: dict[str, Any] = {
        "ruleId": f"{finding.tool}/{finding.kind}",
        "level": finding.severity,
        "message": {"text": finding.message},
        "occurrenceCount": finding.count,
    }
    if finding.line:
        result["locations"] = [_location(finding.line)]
    if finding.other_line:
        result["relatedLocations"] = [_location(finding.other_line)]
    return result


def _location(place: str) -> dict[str, Any]:
    file, _, line = place.rpartition(":")
    region = {"startLine": int(line)} if line.isdigit() else {}
    return {"physicalLocation": {"artifactLocation": {"uri": file}, "region": region}}
