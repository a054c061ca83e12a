"""What sanitizers cost: the kernels of `kernels.py` in their natural shapes, with and without.

    python benchmarks/sanitize.py [--only REGEX] [--json FILE]

Each kernel is launched with one worker, in turn without sanitizers, with each tool and with all,
ten times over. The best of each counts, in seconds of the processor for the whole launch. Findings
are shown. `rows` is the share of its accesses to global and shared memory, by warps, in which the
lanes lie in a few rows (`InRows`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from families import CASES
from families.base import Case

import warploom as wl
from warploom.sanitize.findings import TOOLS

ROUNDS = 10
COLUMNS: dict[str, tuple[str, ...]] = {
    "none": (),
    **{tool: (tool,) for tool in TOOLS},
    "all": TOOLS,
}
"""The tools of each column."""


MOST_ROWS = 4
IN_ROWS = 0.9
"""Kernels with this share of accesses whose lanes lie in a few rows are summed up apart."""


@wl.observer
class InRows:
    """Counts accesses to global and shared memory, and those that are no atomics and whose active
    lanes lie in at most MOST_ROWS rows: in a row, each lane touches what follows the one before,
    with the lanes between the two missing, or the same place."""

    @staticmethod
    def on_access(block, warp, instruction, line, mask, space, kind, size, addresses, state):
        if space == wl.MemorySpace.GLOBAL or space == wl.MemorySpace.SHARED:
            rows, before = 0, -1
            for lane in range(32):
                if mask >> lane & 1:
                    follows = False
                    if before >= 0:
                        behind = addresses[lane] - addresses[before]
                        follows = behind == 0 or behind == (lane - before) * size
                    rows += not follows
                    before = lane
            state[0] += 1
            state[1] += rows <= MOST_ROWS and kind != wl.AccessKind.ATOMIC


@dataclass
class Measured:
    """The best seconds of a launch for each column, the share of accesses in rows, what all
    tools found, and the codes of the last round's launches (`Run.tier`)."""

    seconds: dict[str, float]
    rows: float = 0.0
    found: list[str] = field(default_factory=list[str])
    tiers: set[str] = field(default_factory=set[str])

    def ratio(self, tool: str) -> float:
        """Return how many times as long as without sanitizers a launch takes."""
        return self.seconds[tool] / self.seconds["none"]


def measure(case: Case) -> Measured:
    """Measure one kernel."""
    gpu = wl.Device(workers=1)
    kernel = gpu.load(case.path)[case.kernel]
    shape = case.shapes[0]
    problem = case.build(shape)
    values = [
        gpu.to_device(value) if isinstance(value, np.ndarray) else value
        for value in problem.arguments
    ]
    launcher = kernel[problem.grid, shape.block, None, problem.shared_bytes]
    measured = Measured(dict.fromkeys(COLUMNS, math.inf))
    seconds = measured.seconds
    for number in range(ROUNDS + 1):
        for name, tools in COLUMNS.items():
            options: dict[str, Any] = {"sanitize": tools}
            if case.in_place:
                for index in problem.expected:
                    values[index].view[...] = problem.arguments[index]
            began = time.process_time()
            run = launcher(*values, **options)
            taken = time.process_time() - began
            if number:  # the first compiles
                seconds[name] = min(seconds[name], taken)
            if number == ROUNDS:
                measured.tiers.add(run.tier)
            measured.found = [f"{one.severity}: {one.kind} at {one.line}" for one in run.findings]
    counts = np.zeros(2, np.int64)
    launcher(*values, observe=InRows(counts))
    measured.rows = counts[1] / max(1, counts[0])
    return measured


def summed_up(name: str, rows: dict[str, Measured], tool: str) -> str:
    """Return the geometric mean and the worst of some kernels."""
    mean = math.exp(sum(math.log(row.ratio(tool)) for row in rows.values()) / max(1, len(rows)))
    worst = max(rows, key=lambda kernel: rows[kernel].ratio(tool))
    return (
        f"{tool}, {name} ({len(rows)}): {mean:.1f} times in the geometric mean,"
        f" {rows[worst].ratio(tool):.1f} ({worst})"
    )


def main() -> None:
    """Print a table, and the geometric mean of each column."""
    os.environ["WARPLOOM_OPT_LEVEL"] = "3"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose names match")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    given = parser.parse_args()
    tools = [name for name in COLUMNS if name != "none"]
    print(f"| kernel | milliseconds | {' | '.join(tools)} | rows |")
    print(f"| --- | --: | {' | '.join('--:' for _ in tools)} | --: |")
    measured: dict[str, Measured] = {}
    for case in (case for case in CASES if re.search(given.only, case.name)):
        row = measured[case.name] = measure(case)
        shown = " | ".join(f"{row.ratio(tool):.1f}" for tool in tools)
        milliseconds = row.seconds["none"] * 1e3
        print(f"| {case.name} | {milliseconds:.2f} | {shown} | {row.rows:.2f} |", flush=True)
        for line in row.found:
            print(f"  {line}")
    in_rows = {name: row for name, row in measured.items() if row.rows >= IN_ROWS}
    for name, rows in (("all kernels", measured), ("lanes in rows", in_rows)):
        for tool in tools if rows else ():
            print(summed_up(name, rows, tool))
    print(f"code: {', '.join(sorted(set[str]().union(*(m.tiers for m in measured.values()))))}")
    if given.json:
        found = {name: row.seconds | {"rows": row.rows} for name, row in measured.items()}
        given.json.write_text(json.dumps(found, indent=2), "utf-8")


if __name__ == "__main__":
    main()
