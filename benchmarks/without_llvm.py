"""How far the lessons go without LLVM, Numba and NVRTC: what a browser's Python would have.

    python benchmarks/without_llvm.py            every lesson, recorded by the reference machine
    python benchmarks/without_llvm.py --parse    parse and verify the PTX of all lessons, twice
    node benchmarks/pyodide.mjs FOLDER           the latter in Pyodide, with wheels from FOLDER

llvmlite, Numba and (with --parse) NumPy give way to modules whose every name is a class that does
nothing; what computes with them fails. The rules of the reference machine count in Python.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "web" / "runtime"))
from stand_ins import Finder  # pyright: ignore[reportMissingImports]


def record_lessons() -> None:
    """Record each launch of the lessons by the reference machine; print how many, and how long."""
    from msgspec.structs import replace

    from warploom.cost.device_rules import RULES
    from warploom.helpers import table

    def count(rule: str, *given: Any) -> None:
        RULES[rule](*given)

    def no_tool(name: str) -> None:
        return None

    table.count_compiled = count
    from warploom.host.programs import ptxas

    ptxas.find_tool = no_tool
    from warploom.ui.lessons import lessons, requests_of
    from warploom.ui.record import record

    began, longest, launches, steps = time.perf_counter(), 0.0, 0, 0
    for lesson in lessons():
        for request in requests_of(lesson):
            since = time.perf_counter()
            trace = record(replace(request, engine="reference", timed=False))
            longest = max(longest, time.perf_counter() - since)
            launches, steps = launches + 1, steps + trace.steps.count
    print(
        f"{launches} launches of {len(lessons())} lessons, {steps:,} warp steps:"
        f" {time.perf_counter() - began:.2f} s, the longest {longest:.2f} s"
    )


def parse_lessons() -> None:
    """Parse and verify the stored PTX twice; print how long that takes."""
    import zipfile

    began = time.perf_counter()
    from warploom.frontends.precompiled import ARCHIVE
    from warploom.ptx.parser import parse
    from warploom.ptx.verify import verify

    times = [time.perf_counter() - began]
    with zipfile.ZipFile(ARCHIVE) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist()]
    for _ in range(2):
        began = time.perf_counter()
        for text in texts:
            verify(parse(text, "kernel.ptx", 32))
        times.append(time.perf_counter() - began)
    version = sys.version.split()[0]
    print(
        f"Python {version} on {sys.platform}: imported in {times[0]:.2f} s, {len(texts)} modules"
        f" parsed and verified in {times[1]:.2f} s, again in {times[2]:.2f} s"
    )


if __name__ == "__main__":
    parsing = "--parse" in sys.argv
    sys.meta_path.insert(0, Finder(("llvmlite", "numba", *(("numpy",) if parsing else ()))))
    parse_lessons() if parsing else record_lessons()
