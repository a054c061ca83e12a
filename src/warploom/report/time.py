"""The report of a launch's modelled time: sections named as Nsight Compute's, where warps waited,
what bounds the kernel."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warploom.report.advice import Advice
from warploom.report.render import WIDTH, section_table, styled_table
from warploom.report.sections import Metric, Report, Section
from warploom.report.source import source_line, split_line
from warploom.timing.readings import LineTime
from warploom.timing.result import Timing

LINES = 10
"""So many source lines are shown."""

MARK = "modelled"

ADDED = "(added by ptxas)"
"""Shown for the line of machine code that was made for no instruction of the PTX."""


def time_sections(timing: Timing) -> tuple[Section, ...]:
    """Speed Of Light, Scheduler Statistics, Warp State Statistics, memory; every number
    modelled."""
    return (
        speed_of_light(timing),
        scheduler_statistics(timing),
        warp_states(timing),
        memory(timing),
        *pipeline(timing),
    )


def with_time(report: Report, timing: Timing) -> Report:
    """Returns a launch's report with the sections of its modelled time, and what bounds it."""
    bottleneck = Advice(
        "Bottleneck (modelled)",
        "",
        timing.bound,
        "`warploom time` shows the lines at which warps wait, and the reasons for the waits.",
    )
    sections = (*report.sections, *time_sections(timing))
    advice = (bottleneck, *report.advice)
    return replace(report, sections=sections, advice=advice, modelled_bound=timing.bound)


def speed_of_light(timing: Timing) -> Section:
    """Cycles, and how much of each throughput was used."""
    metrics = [
        _metric("Elapsed Cycles", "cycle", timing.elapsed_cycles, "sm__cycles_elapsed.max"),
        _metric("SM Active Cycles", "cycle", timing.cycles, "sm__cycles_active.max"),
        _metric("Duration", "us", timing.seconds * 1e6, "gpu__time_duration.sum"),
        _metric("SM Frequency", "MHz", timing.spec.clock_mhz),
    ]
    if timing.sampled_blocks < timing.blocks:
        metrics += [
            _metric("Blocks Replayed", "block", timing.sampled_blocks),
            _metric("Blocks", "block", timing.blocks),
            _metric("Extrapolation Error", "cycle", timing.cycles_error),
        ]
    if timing.predicted_blocks:
        metrics.append(_metric("Blocks Predicted", "block", timing.predicted_blocks))
    metrics += [_metric(f"{r.name} Throughput", "%", 100 * r.used) for r in timing.roofs]
    return Section("GPU Speed Of Light Throughput", tuple(metrics))


def scheduler_statistics(timing: Timing) -> Section:
    """Returns what schedulers did in their cycles: an issue, or the reason why not."""
    cycles = max(1, timing.scheduler_cycles)
    metrics = [
        _metric(
            *("Active Warps Per Scheduler", "warp", timing.active_warps / timing.spec.schedulers),
            "smsp__warps_active.avg.per_cycle_active",
        ),
        _metric(
            *("Eligible Warps Per Scheduler", "warp", timing.eligible_warps),
            "smsp__warps_eligible.avg.per_cycle_active",
        ),
        _metric(
            *("Issued Warp Per Scheduler", "", timing.issue_utilisation),
            "smsp__issue_active.avg.per_cycle_active",
        ),
        _metric(
            *("Executed Ipc Active", "inst/cycle", timing.ipc),
            "sm__inst_executed.avg.per_cycle_active",
        ),
        _metric("Machine Instructions", "inst", timing.instructions),
        _metric(
            *("Achieved Occupancy", "%", 100 * timing.achieved_occupancy),
            "sm__warps_active.avg.pct_of_peak_sustained_active",
        ),
        _metric("Scheduler Cycles", "cycle", timing.scheduler_cycles),
        _metric("Cycles With An Issue", "%", 100 * timing.issued / cycles),
    ]
    metrics += [
        _metric(f"No Issue: {_title(name)}", "%", 100 * count / cycles)
        for name, count in sorted(timing.stalls.items(), key=lambda item: -item[1])
        if count
    ]
    return Section("Scheduler Statistics", tuple(metrics))


def warp_states(timing: Timing) -> Section:
    """Cycles of a warp between two of its issues, by its state."""
    issues = max(1, timing.issued)
    whole = sum(timing.warp_states.values()) / issues
    latency = "smsp__average_warp_latency_per_inst_issued.ratio"
    metrics = [_metric("Warp Cycles Per Issued Instruction", "cycle", whole, latency)]
    metrics += [
        _metric(_title(name), "cycle/inst", count / issues, _stall_metric(name))
        for name, count in sorted(timing.warp_states.items(), key=lambda item: -item[1])
        if count
    ]
    return Section("Warp State Statistics", tuple(metrics))


def memory(timing: Timing) -> Section:
    """Bytes and hit rates of each level."""
    found: list[tuple[str, str, int | float, str | None]] = [
        ("L1 Bytes", "byte", timing.l1_bytes, None),
        ("L1 Hit Rate", "%", 100 * timing.l1_hit_rate, "l1tex__t_sector_hit_rate.pct"),
        ("L2 Bytes", "byte", timing.l2_bytes, None),
        ("L2 Hit Rate", "%", 100 * timing.l2_hit_rate, "lts__t_sector_hit_rate.pct"),
        ("DRAM Bytes Read", "byte", timing.dram_read_bytes, "dram__bytes_read.sum"),
        ("DRAM Bytes Written", "byte", timing.dram_written_bytes, "dram__bytes_write.sum"),
    ]
    return Section("Memory Workload Analysis (modelled)", tuple(_metric(*one) for one in found))


def pipeline(timing: Timing) -> tuple[Section, ...]:
    """Describes where warps wait at mbarriers and how busy the Tensor Memory Accelerator is; empty
    where there is neither."""
    found = timing.pipeline
    if found is None:
        return ()
    whole = max(1, sum(timing.warp_states.values()))
    metrics = (
        _metric("Warps Wait For Copies", "%", 100 * found.for_copies / whole),
        _metric("Warps Wait For Threads At Mbarriers", "%", 100 * found.for_threads / whole),
        _metric("Tensor Memory Accelerator Busy", "%", 100 * found.tma_use),
    )
    return (Section("Asynchronous Copies (modelled)", metrics),)


def render_time_text(timing: Timing) -> str:
    """Returns the report as plain text, 100 columns wide."""
    out = StringIO()
    render_time(timing, Console(file=out, width=WIDTH, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def render_time(timing: Timing, console: Console) -> None:
    """Prints the report."""
    device = timing.device
    console.print(
        Text.assemble(
            (timing.program.title, "bold"),
            f" on {device.title} (compute capability {device.cc}), scheduler {timing.scheduler},"
            f" {timing.caches} caches: {timing.cycles:,} cycles, modelled",
        )
    )
    console.print(Text(f"Timed from {timing.basis}.", style="dim"))
    for section in time_sections(timing):
        console.print(section_table(section))
    console.print(_stalled_lines(timing))
    console.print(Text(timing.bound[:1].upper() + timing.bound[1:] + ".", style="bold"))
    console.print(
        "All these figures are modelled. docs/timing.md explains the model and lists the "
        "estimates.",
        style="dim",
    )


def time_as_json(timing: Timing) -> str:
    """Returns the report as JSON."""
    basis = timing.basis
    content = {
        "kernel": timing.program.name,
        "device": timing.device.title,
        "compute_capability": timing.device.cc,
        "scheduler": timing.scheduler,
        "caches": timing.caches,
        "kind": MARK,
        "basis": {"code": basis.code, "found": basis.matched_share, "reason": basis.reason},
        "cycles": timing.cycles,
        "elapsed_cycles": timing.elapsed_cycles,
        "cycles_error": timing.cycles_error,
        "seconds": timing.seconds,
        "blocks": timing.blocks,
        "sampled_blocks": timing.sampled_blocks,
        "predicted_blocks": timing.predicted_blocks,
        "bound": timing.bound,
        "sections": {
            section.title: {metric.name: metric.value for metric in section.metrics}
            for section in time_sections(timing)
        },
        "stalls": timing.stalls,
        "warp_states": timing.warp_states,
        "lines": {
            one.line: {"issued": one.issued, "states": dict(one.states)}
            for one in timing.by_line().values()
        },
    }
    return json.dumps(content, indent=2, allow_nan=False)


def _stalled_lines(timing: Timing) -> Table:
    """Returns the source lines before which warps waited longest, and what for."""
    lines = list(timing.by_line().values())
    whole = max(1, sum(line.stalled for line in lines))
    more = len(lines) - LINES
    title = "Source Counters (modelled)" + (f", {more} more lines not shown" if more > 0 else "")
    table = styled_table(title)
    table.add_column("Line", no_wrap=True)
    for heading in ("Issued", "Stalled %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Mostly", no_wrap=True)
    table.add_column("Source", max_width=WIDTH // 2)
    for line in lines[:LINES]:
        share = f"{100 * line.stalled / whole:.1f}"
        name, source = _place(line.line)
        table.add_row(name, f"{line.issued:,}", share, _mostly(line), source)
    return table


def _place(line: str) -> tuple[str, Text]:
    """Returns a line as it is shown, and its text."""
    if not line:
        return ADDED, Text("")
    file, number = split_line(line)
    return f"{file.rpartition('/')[2]}:{number}", Text(source_line(file, number), style="dim")


def _mostly(line: LineTime) -> str:
    waits = {name: n for name, n in line.states.items() if name not in ("selected", "not_selected")}
    name, count = max(waits.items(), key=lambda item: item[1])
    return _title(name) if count else ""


def _title(name: str) -> str:
    return f"Stall {name.replace('_', ' ').title()}" if name not in _GOING else _GOING[name]


def _stall_metric(name: str) -> str:
    """Nsight Compute's name of a state of warps (Kernel Profiling Guide, "Metrics Reference")."""
    return f"smsp__average_warps_issue_stalled_{_NSIGHT.get(name, name)}_per_issue_active.ratio"


_NSIGHT = {"dispatch_stall": "dispatch"}
_GOING = {"selected": "Selected", "not_selected": "Not Selected", "no_warp": "No Warp Resident"}


def _metric(name: str, unit: str, value: float, nsight: str | None = None) -> Metric:
    return Metric(name, unit, value, MARK, nsight)
