"""Prints the kernels in Warploom's JSON reports as a table in Markdown, for the summary of a job.

python tools/report_table.py FOLDER
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

COLUMNS = {
    "warp instructions": "warp_instructions",
    "global load sectors": "global_load_sectors",
    "global store sectors": "global_store_sectors",
    "bank conflicts": "shared_load_bank_conflicts",
    "divergent branches": "divergent_branches",
}
"""Titles of columns and the counters in them."""


def table(reports: list[dict[str, Any]]) -> str:
    """The table of the kernels in some reports: launches of one shape are counted together."""
    rows: dict[tuple[str, ...], Counter[str]] = {}
    for report in reports:
        for kernel in report.get("kernels", []):
            found = rows.setdefault(_shape(kernel), Counter())
            found.update({name: kernel["counters"][name] for name in COLUMNS.values()})
            found["launches"] += kernel.get("launches", 1)
    if not rows:
        return "No kernel ran on the software GPU.\n"
    counted = ("launches", *COLUMNS.values())
    entries = [
        ["kernel", "grid", "block", "launches", *COLUMNS],
        ["---"] * 3 + ["---:"] * len(counted),
        *([*shape, *(f"{counts[name]:,}" for name in counted)] for shape, counts in rows.items()),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in entries)


def _shape(kernel: dict[str, Any]) -> tuple[str, ...]:
    grid, block = ("x".join(map(str, kernel[part])) for part in ("grid", "block"))
    return f"`{kernel['kernel']}`", grid, block


if __name__ == "__main__":
    files = sorted(Path(sys.argv[1]).glob("*.json"))
    print(table([json.loads(file.read_text("utf-8")) for file in files]), end="")
