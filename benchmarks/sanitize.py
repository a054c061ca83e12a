"""What sanitizers cost: the kernels of `kernels.py` in their natural shapes, with and without.

    python benchmarks/sanitize.py [--only REGEX] [--json FILE]

Each kernel is launched with one worker, in turn without sanitizers, with each tool and with all,
ten times over. The best of each counts, in seconds of the processor for the whole launch. Findings
are listed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import time
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


def measure(case: Case) -> tuple[dict[str, float], list[str]]:
    """Returns the best seconds of a launch for each column, and what all tools found."""
    gpu = wl.Device(workers=1)
    kernel = gpu.load(case.path)[case.kernel]
    shape = case.shapes[0]
    problem = case.build(shape)
    values = [
        gpu.to_device(value) if isinstance(value, np.ndarray) else value
        for value in problem.arguments
    ]
    launcher = kernel[problem.grid, shape.block, None, problem.shared_bytes]
    seconds = dict.fromkeys(COLUMNS, math.inf)
    found: list[str] = []
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
            found = [f"{one.severity}: {one.kind} at {one.line}" for one in run.findings]
    return seconds, found


def main() -> None:
    """Print a table, and the geometric mean of each column."""
    os.environ["WARPLOOM_OPT_LEVEL"] = "3"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose names match")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    given = parser.parse_args()
    tools = [name for name in COLUMNS if name != "none"]
    print(f"| kernel | milliseconds | {' | '.join(tools)} |")
    print(f"| --- | --: | {' | '.join('--:' for _ in tools)} |")
    rows: dict[str, dict[str, float]] = {}
    for case in (case for case in CASES if re.search(given.only, case.name)):
        seconds, found = measure(case)
        ratios = {tool: seconds[tool] / seconds["none"] for tool in tools}
        rows[case.name] = ratios
        shown = " | ".join(f"{ratios[tool]:.1f}" for tool in tools)
        print(f"| {case.name} | {seconds['none'] * 1e3:.2f} | {shown} |", flush=True)
        for line in found:
            print(f"  {line}")
    for tool in tools:
        mean = math.exp(sum(math.log(row[tool]) for row in rows.values()) / max(1, len(rows)))
        worst = max(rows, key=lambda name: rows[name][tool])
        print(f"{tool}: {mean:.1f} times in the geometric mean, {rows[worst][tool]:.1f} ({worst})")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
