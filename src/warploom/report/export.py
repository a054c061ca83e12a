"""Reports for other programs: JSON and CSV, with Nsight Compute's names of metrics."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from io import StringIO

from warploom.observe.counters import Counts
from warploom.observe.examples import Example
from warploom.report.ceilings import ceilings
from warploom.report.sections import Report, Section, Value

COLUMNS = (
    *("Kernel Name", "Device", "Section Name", "Metric Name", "Metric Unit", "Metric Value"),
    *("Kind", "Nsight Metric"),
)


def as_json(report: Report) -> dict[str, object]:
    """Returns the report as what `json.dumps` takes; `counters` and `lines` hold every counter."""
    facts = report.facts
    return {
        "kernel": facts.kernel,
        "device": facts.spec.title,
        "compute_capability": facts.spec.cc,
        "newer_target": facts.newer_target,
        "engine": facts.engine,
        "grid": list(facts.grid),
        "block": list(facts.block),
        "seconds": facts.seconds,
        "compile_seconds": facts.compile_seconds,
        "tier": facts.tier,
        "order": "any" if facts.any_order else "blocks",
        "sections": {section.title: _section(section) for section in report.sections},
        "metrics": {
            metric.nsight: _finite(metric.value)
            for section in report.sections
            for metric in section.metrics
            if metric.nsight
        },
        "counters": _counts(report.counters),
        "lines": {
            line.line: {**_counts(line.counts), "cost": line.cost, "why": line.why}
            for line in report.lines
        },
        "ceilings": [
            {"part": one.part, "seconds": one.seconds, "work": one.work} for one in ceilings(report)
        ],
        "advice": [
            {"rule": a.rule, "line": a.line, "evidence": a.evidence, "advice": a.text}
            for a in report.advice
        ],
        "examples": [_example(example) for example in report.examples],
    }


def as_csv(report: Report) -> str:
    """Returns all numbers of the sections, a line each."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for section in report.sections:
        for m in section.metrics:
            value = _finite(m.value)
            row = (section.title, m.name, m.unit, "" if value is None else value, m.kind)
            writer.writerow((report.facts.kernel, report.facts.spec.title, *row, m.nsight or ""))
    return out.getvalue()


def _section(section: Section) -> list[dict[str, object]]:
    return [
        {
            "name": m.name,
            "unit": m.unit,
            "value": _finite(m.value),
            "kind": m.kind,
            "nsight": m.nsight,
        }
        for m in section.metrics
    ]


def _example(example: Example) -> dict[str, object]:
    return {
        "line": example.line,
        "space": example.space.value,
        "op": example.op,
        "size": example.size,
        "transactions": example.cost,
        "best": example.best,
        "lanes": list(example.lanes),
        "addresses": list(example.addresses),
        "colliding_lanes": [list(lanes) for lanes in example.collisions],
    }


def _counts(counts: Counts) -> dict[str, int | float | Mapping[str, int]]:
    return {
        **counts,
        "average_active_lanes": counts.average_active_lanes,
        "instructions_by_unit": counts.instructions_by_unit,
    }


def _finite(value: Value) -> Value | None:
    """JSON has no word for what is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
