"""The compiled engine on kernels of many families, in launch shapes natural and unnatural.

    python benchmarks/kernels.py [--only REGEX] [--shapes REGEX] [--native] [--check] [--write]
                                 [--json FILE]

Each kernel (families/) is launched with one worker, all counters and bounds checks on. The first
launch in a shape compiles baseline code, the second one optimized code; the results of both are
checked against NumPy. Then launches of optimized code of 0.15 s of processor time make a round,
and the best of three rounds is given, without the time of reading counters. A rate is millions of
warp instructions a second; the rates of a kernel's shapes are given relative to its best one. A
shape is the block, and after a plus by how much the problem's sides exceed the natural ones.
Compile seconds are processor time of the natural shape's first launch beyond a later one's, from
a cache in which only earlier kernels left anything; optimize seconds are those of its first
launch of optimized code.

--native also runs the native loop (families/loops.py) of the kernels that have one.
--check only checks results. --write puts the tables into docs/kernels.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import documents
from families import CASES
from families.base import Case, LaunchShape
from families.measuring import launches, measure
from families.tables import HEADER, Measurement, row, summary, table

import warploom as wl

PAGE = documents.PERFORMANCE.with_name("kernels.md")
EMPTY = 'extern "C" __global__ void k(int *x) { if (x) x[0] = 1; }'


@dataclass(frozen=True)
class Selection:
    """Selects kernels by name and launch shapes by label; the natural shape is always in."""

    names: str = ""
    labels: str = ""

    def cases(self) -> list[Case]:
        """Returns the selected kernels; exits with an error where there is none."""
        selected = [case for case in CASES if re.search(self.names, case.name)]
        if not selected:
            raise SystemExit(f"no kernel's name matches {self.names!r}; {__file__} --help")
        return selected

    def shapes(self, case: Case) -> Iterator[LaunchShape]:
        """Yields the selected shapes of a kernel."""
        natural, *others = case.shapes
        yield natural
        yield from (shape for shape in others if re.search(self.labels, shape.label))


def check(selection: Selection) -> None:
    """Check every selected kernel in its selected shapes, and print its name.

    Raises AssertionError at the first wrong result.
    """
    for case in selection.cases():
        done = [launch.shape.label for launch, _ in launches(case, selection.shapes(case))]
        print(f"{case.name}: right in {', '.join(done)}", flush=True)


def measured(selection: Selection, native: bool) -> Iterator[Measurement]:
    """Measures all selected kernels with an empty cache, after a launch that loads the engine."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARPLOOM_CACHE_DIR"] = folder
        gpu = wl.Device(workers=1)
        gpu.compile(EMPTY)["k"][1, 32](gpu.zeros(1, "int32"))
        for case in selection.cases():
            yield measure(case, selection.shapes(case), native)


def main() -> None:
    options = argparse.ArgumentParser(description="Measure kernels in many launch shapes.")
    options.add_argument("--only", default="", metavar="REGEX", help="kernels to run, by name")
    options.add_argument("--shapes", default="", metavar="REGEX", help="shapes beside the natural")
    options.add_argument("--native", action="store_true", help="time native loops as well")
    options.add_argument("--check", action="store_true", help="check results only")
    options.add_argument("--write", action="store_true", help="write docs/kernels.md")
    options.add_argument("--json", type=Path, help="write every timing there")
    given = options.parse_args()
    selection = Selection(given.only, given.shapes)
    if given.check:
        check(selection)
        return
    print(HEADER)
    measurements: list[Measurement] = []
    for measurement in measured(selection, given.native):
        measurements.append(measurement)
        print(row(measurement), flush=True)
        if given.json:
            content = json.dumps([asdict(done) for done in measurements], indent=2)
            given.json.write_text(content + "\n", "utf-8")
    print(f"\n{summary(measurements)}")
    if given.write:
        documents.write("kernels", table(measurements), PAGE)
        documents.write("summary", summary(measurements), PAGE)


if __name__ == "__main__":
    main()
