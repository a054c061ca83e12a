"""The sections of a report, named as Nsight Compute names its own.

Every section says of what kind its numbers are: "launch" (as launched) or "counted" (in the
execution). How sections look is for `report.render`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.core.errors import Dim3
from warploom.observe.counters import Counters, Counts

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a launch beside its counters. `seconds` were measured on the host."""

    kernel: str
    device: str
    compute_capability: str
    engine: str
    grid: Dim3
    block: Dim3
    warps: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of a section."""

    name: str
    unit: str
    value: Value


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of one kind under a title."""

    title: str
    kind: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All that is reported of one launch; `lines` are its source lines, the costliest first."""

    facts: Facts
    sections: tuple[Section, ...]
    lines: tuple[tuple[str, Counts], ...]
    counters: Counters


def make_report(facts: Facts, counters: Counters) -> Report:
    """The report of a launch from its facts and counters."""
    sections = (
        launch_statistics(facts),
        instruction_statistics(counters),
        memory_workload(counters),
    )
    lines = sorted(
        counters.by_line().items(), key=lambda item: item[1].warp_instructions, reverse=True
    )
    return Report(facts, sections, tuple(lines), counters)


def launch_statistics(facts: Facts) -> Section:
    """The shape of the launch and the memory that it asked for."""
    blocks = facts.grid[0] * facts.grid[1] * facts.grid[2]
    threads = blocks * facts.block[0] * facts.block[1] * facts.block[2]
    given = (
        ("Grid Size", "block", _dims(facts.grid)),
        ("Block Size", "thread", _dims(facts.block)),
        ("Blocks", "block", blocks),
        ("Threads", "thread", threads),
        ("Warps", "warp", facts.warps),
        ("Static Shared Memory Per Block", "byte", facts.static_shared_bytes),
        ("Dynamic Shared Memory Per Block", "byte", facts.dynamic_shared_bytes),
        ("Local Memory Per Thread", "byte", facts.local_bytes),
    )
    return Section("Launch Statistics", "launch", tuple(Metric(*line) for line in given))


def instruction_statistics(counters: Counters) -> Section:
    """What was executed, by class, and how control flowed."""
    metrics = [
        Metric("Warp Instructions", "inst", counters.warp_instructions),
        Metric("Thread Instructions", "inst", counters.thread_instructions),
        Metric(
            "Thread Instructions, Predicated On", "inst", counters.thread_instructions_predicated_on
        ),
        Metric("Active Lanes Per Warp Instruction", "lane", counters.average_active_lanes),
    ]
    by_class = sorted(counters.instructions_by_unit.items(), key=lambda item: -item[1])
    metrics += [Metric(f"Class {name}", "inst", count) for name, count in by_class]
    metrics += [
        Metric("Branches", "inst", counters.branches),
        Metric("Divergent Branches", "inst", counters.divergent_branches),
        Metric("Reconvergences", "event", counters.reconvergences),
        Metric("Barriers", "inst", counters.barriers),
    ]
    return Section("Instruction Statistics", "counted", tuple(metrics))


def memory_workload(counters: Counters) -> Section:
    """What the accesses of each kind cost; kinds that did not occur are left out."""
    metrics: list[Metric] = []
    for space in ("global", "local", "shared", "constant"):
        for op in ("load", "store", "atomic"):
            metrics += _accesses(counters, space, op)
    if counters.atomic_requests:
        metrics.append(Metric("Atomic Passes", "pass", counters.atomic_passes))
    return Section("Memory Workload Analysis", "counted", tuple(metrics))


def _accesses(counters: Counters, space: str, op: str) -> list[Metric]:
    """The lines of one kind of access."""
    requests = counters.get(f"{space}_{op}_requests", 0)
    if not requests:
        return []
    title = f"{space.title()} {op.title()}"
    found = [Metric(f"{title} Requests", "request", requests)]
    for field, unit in (
        ("sectors", "sector"),
        ("lines", "line"),
        ("wavefronts", "wavefront"),
        ("bank_conflicts", "wavefront"),
    ):
        count = counters.get(f"{space}_{op}_{field}")
        if count is not None:
            name = f"{title} {field.replace('_', ' ').title()}"
            found.append(Metric(name, unit, count))
            found.append(Metric(f"{name} Per Request", unit, count / requests))
    asked = counters[f"{space}_{op}_bytes_requested"]
    moved = counters[f"{space}_{op}_bytes_moved"]
    found.append(Metric(f"{title} Bytes Requested", "byte", asked))
    found.append(Metric(f"{title} Bytes Moved", "byte", moved))
    return found


def as_json(report: Report) -> dict[str, object]:
    """The report as what `json.dumps` takes; `counters` and `lines` hold every counter."""
    facts = report.facts
    return {
        "kernel": facts.kernel,
        "device": facts.device,
        "compute_capability": facts.compute_capability,
        "engine": facts.engine,
        "grid": list(facts.grid),
        "block": list(facts.block),
        "seconds": facts.seconds,
        "sections": {section.title: _section(section) for section in report.sections},
        "counters": _counts(report.counters),
        "lines": {line: _counts(counts) for line, counts in report.lines},
    }


def _section(section: Section) -> dict[str, object]:
    metrics = [{"name": m.name, "unit": m.unit, "value": m.value} for m in section.metrics]
    return {"kind": section.kind, "metrics": metrics}


def _counts(counts: Counts) -> dict[str, int | float | Mapping[str, int]]:
    return {
        **counts,
        "average_active_lanes": counts.average_active_lanes,
        "instructions_by_unit": counts.instructions_by_unit,
    }


def _dims(dims: Dim3) -> str:
    return f"({dims[0]}, {dims[1]}, {dims[2]})"
