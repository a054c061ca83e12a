"""Measures what each pass of the compiler does to each kernel of benchmarks/families.

    python benchmarks/passes.py [--only REGEX] [--passes NAME,...] [--write] [--json FILE]

Each kernel is compiled in its natural shape with all passes, and without each of them in turn
(`WARPLOOM_DISABLE`); compile time is processor time until there is optimized machine code. Where
the LLVM IR differs, callgrind counts the instructions of the processor in machine code of one
launch, with both (`callgrind.py`). Results are checked before that, outside of callgrind.

The whole table takes most of an hour on one core. --write puts it into docs/passes.md, --json
writes every figure. Needs valgrind.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import callgrind
import documents
from families import CASES
from families.base import Case
from pass_cells import Cell, costly, list_of_losses, table
from pass_launches import Compiled, read_compiled

from warploom.ir.options import Pass

PAGE = documents.PERFORMANCE.with_name("passes.md")
LAUNCHES = Path(__file__).with_name("pass_launches.py")
BATCH = 8
"""So many kernels are counted by one process, which takes ten seconds to start under callgrind."""


def measured(cases: Sequence[Case], passes: Sequence[Pass]) -> Iterator[Cell]:
    """Measures all passes on all kernels; compile times are right if the cache has none of them.

    Raises CalledProcessError where a process fails, as with a wrong result.
    """
    for first in range(0, len(cases), BATCH):
        yield from _measured(cases[first : first + BATCH], passes)


def _measured(cases: Sequence[Case], passes: Sequence[Pass]) -> Iterator[Cell]:
    with tempfile.TemporaryDirectory() as folder:
        names = [case.name for case in cases]
        callgrind.run([str(LAUNCHES), "compile", folder, json.dumps(names), *passes])
        compiled = read_compiled(Path(folder))
        counts = callgrind.count([str(LAUNCHES), "launch", folder], Path(folder))
    launched = [one for one in compiled if one.changes]
    kernels = {
        (one.kernel, one.without): part["kernel"]
        for one, part in zip(launched, counts, strict=True)
    }
    yield from cells_of(compiled, kernels)


def cells_of(
    compiled: Sequence[Compiled], counts: dict[tuple[str, Pass | None], int]
) -> Iterator[Cell]:
    """Yields a cell for each kernel and each pass that it was compiled without; `counts` has
    instructions by the kernel and the pass left out."""
    whole = {one.kernel: one for one in compiled if one.without is None}
    for one in compiled:
        if one.without is not None:
            seconds = whole[one.kernel].seconds, one.seconds
            cell = Cell(one.without, one.kernel, one.changes, seconds)
            if one.changes:
                pair = counts[one.kernel, None], counts[one.kernel, one.without]
                cell = Cell(one.without, one.kernel, one.changes, seconds, pair)
            yield cell


def main() -> None:
    options = argparse.ArgumentParser(description="Measure what passes do to kernels.")
    options.add_argument("--only", default="", metavar="REGEX", help="kernels to run, by name")
    options.add_argument("--passes", default=",".join(Pass), help="passes, with commas between")
    options.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    options.add_argument("--json", type=Path, help="write every figure there")
    given = options.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit(callgrind.MISSING)
    cases = [case for case in CASES if re.search(given.only, case.name)]
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARPLOOM_CACHE_DIR"] = folder
        for cell in measured(cases, [Pass(name) for name in given.passes.split(",")]):
            cells.append(cell)
            if cell.changes:
                print(f"{cell.name:10}{cell.kernel:28}{cell.cost:6.2f}", flush=True)
            if given.json:
                given.json.write_text(
                    json.dumps([asdict(one) for one in cells], indent=1) + "\n", "utf-8"
                )
    print(f"\n{table(cells)}\n\n{list_of_losses(cells)}\n\n" + "\n".join(costly(cells)))
    if given.write:
        documents.write("passes", table(cells), PAGE)
        documents.write("costs", list_of_losses(cells), PAGE)
        documents.write("verdict", "\n".join(costly(cells)) or "none", PAGE)


if __name__ == "__main__":
    main()
