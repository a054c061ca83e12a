"""Source, PTX and machine code of a kernel side by side, with how often each was executed and where
warps waited."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warploom.machinecode.control import Control
from warploom.machinecode.counted import MachineCounts
from warploom.observe.counters import Counters
from warploom.program.program import Site
from warploom.ptx.printer import print_instruction
from warploom.report.render import styled_table
from warploom.report.source import source_line, split_line
from warploom.report.time import ADDED
from warploom.timing.readings import LineTime
from warploom.timing.result import Timing

WIDTH = 190


@dataclass(frozen=True)
class MachineRow:
    """A machine instruction: its offset in bytes, its control information, and how often warps
    executed it (from machine code)."""

    offset: int
    control: str
    text: str
    executed: int


@dataclass(frozen=True)
class PtxRow:
    """A PTX instruction, how often warps executed it (counted), and the machine instructions that
    were made for it; those that were made for none have no text before them."""

    text: str
    executed: int | None
    machine: tuple[MachineRow, ...]


@dataclass(frozen=True)
class SourceRows:
    """A source line ("file:line") with what it became; `stalled` is its share of all cycles in
    which warps could not issue, mostly for the reason `reason` (modelled)."""

    line: str
    source: str
    stalled: float
    reason: str
    rows: tuple[PtxRow, ...]


def sass_rows(machine: MachineCounts, counters: Counters, timing: Timing) -> list[SourceRows]:
    """Returns the lines of a kernel in the order of the program, those of the assembler's own
    routines last; lines that became nothing are left out."""
    program = machine.matching.program
    made_for: dict[Site | None, list[MachineRow]] = defaultdict(list)
    known = set(program.sites)
    listing = machine.matching.listing.instructions
    for made, executed in zip(listing, machine.by_instruction, strict=True):
        site = machine.matching.site_of(made)
        row = MachineRow(made.offset, control_text(made.control), str(made), executed)
        made_for[site if site in known else None].append(row)
    added = PtxRow("", None, (*made_for.pop(None, ()),))
    counts = counters.by_instruction()
    found: dict[str, list[PtxRow]] = defaultdict(list)
    for index, made in enumerate(program.instructions):
        rows = (*made_for.pop(program.sites[index], ()),)
        if rows or index not in program.hidden:
            row = PtxRow(print_instruction(made), counts[index].warp_instructions, rows)
            found[program.line(index)].append(row)
    if added.machine:
        found[""].append(added)
    times = timing.by_line()
    whole = max(1, sum(one.stalled for one in times.values()))
    return [
        SourceRows(line, *_source(line), *_stalls(times.get(line), whole), (*rows,))
        for line, rows in found.items()
    ]


def control_text(control: Control) -> str:
    """Returns control information in the manner of assemblers: barriers that are waited for, read
    and write barrier, yield, stall count."""
    waits = "".join(str(i) if i in control.waits else "-" for i in range(6))
    read, write = ("-" if b is None else b for b in (control.read_barrier, control.write_barrier))
    return f"{waits}:R{read}:W{write}:{'Y' if control.yields else '-'}:{control.stall:02d}"


def render_sass_text(machine: MachineCounts, rows: list[SourceRows], resources: str) -> str:
    """Returns the listing as plain text, 190 columns wide."""
    out = StringIO()
    render_sass(machine, rows, resources, Console(file=out, width=WIDTH, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def render_sass(
    machine: MachineCounts, rows: list[SourceRows], resources: str, console: Console
) -> None:
    """Prints the listing."""
    console.print(Text(machine.matching.program.title, style="bold"), resources)
    table = styled_table("Source, PTX, machine code")
    table.add_column("Line", no_wrap=True)
    table.add_column("Stalled %", justify="right", no_wrap=True)
    for heading in ("PTX", "Machine code"):
        table.add_column("Warps", justify="right", no_wrap=True)
        if heading == "Machine code":
            table.add_column("Offset", justify="right", no_wrap=True)
            table.add_column("Control", no_wrap=True)
        table.add_column(heading, no_wrap=True)
    for row in rows:
        _add(table, row)
    console.print(table)
    console.print(
        "PTX instructions were counted during execution. The counts of machine instructions are "
        f"derived from these counts (confidence: {100 * machine.confidence:.0f} %). Stalls are "
        "modelled. See docs/machine_code.md.",
        style="dim",
    )


def sass_as_json(machine: MachineCounts, rows: list[SourceRows], resources: str) -> str:
    """Returns the listing as JSON."""
    content = {
        "kernel": machine.matching.program.name,
        "resources": resources,
        "machine_instructions": machine.instructions,
        "by_pipe": dict(machine.by_pipe),
        "by_opcode": dict(machine.by_opcode),
        "confidence": machine.confidence,
        "lines": [asdict(row) for row in rows],
    }
    return json.dumps(content, indent=2, allow_nan=False)


def _source(line: str) -> tuple[str]:
    return (source_line(*split_line(line)) if line else "",)


def _stalls(time: LineTime | None, whole: int) -> tuple[float, str]:
    if time is None or not time.stalled:
        return 0.0, ""
    waits = {name: n for name, n in time.states.items() if name not in ("selected", "not_selected")}
    return 100 * time.stalled / whole, max(waits, key=lambda name: waits[name])


def _add(table: Table, row: SourceRows) -> None:
    """Adds the rows of a source line: first the line itself, then what it became."""
    name = row.line.rpartition("/")[2] or ADDED
    stalled = f"{row.stalled:.1f}" if row.stalled else ""
    head = Text(" ".join(part for part in (row.source, row.reason and f"({row.reason})") if part))
    table.add_row(Text(name, style="bold"), stalled, "", head, "", "", "", "")
    for ptx in row.rows:
        executed = "" if ptx.executed is None else f"{ptx.executed:,}"
        for place, machine in enumerate(ptx.machine or (None,)):
            before = (executed, Text(f"  {ptx.text}")) if not place else ("", "")
            table.add_row("", "", *before, *_machine_cells(machine))


def _machine_cells(row: MachineRow | None) -> Iterator[str | Text]:
    if row is None:
        yield from ("", "", "", "")
    else:
        yield from (f"{row.executed:,}", f"{row.offset:04x}", row.control, Text(row.text))
