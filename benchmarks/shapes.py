"""Counts the instructions of the processor that kernels take in natural and unnatural shapes.

    python benchmarks/shapes.py [--only REGEX] [--write] [--json FILE]

Each kernel of kernels.py is launched in all of its shapes with code for x86-64-v3, first in a
process of its own, which checks the results, then under callgrind (`callgrind.py`). A launch takes
so many instructions in machine code of the kernel and its helpers for one warp instruction; the
warp instructions for one instruction of each shape are given relative to the kernel's best shape.
Unlike rates of kernels.py they do not depend on what else the computer does, and an instruction
that waits for memory counts as one that does not.

Kernels are counted side by side, one a core. --write puts the table into docs/kernels.md, --json
writes every figure. Needs valgrind.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import callgrind
import documents
from families import CASES
from families.base import Case
from families.measuring import Launch
from families.tables import mean_and_worst

import warploom as wl

PAGE = documents.PERFORMANCE.with_name("kernels.md")
HEADER = f"{'kernel':26}{'instructions':>14}  shapes, relative to the best"


@dataclass(frozen=True)
class Counted:
    """Holds the warp instructions of a launch in a shape, and the processor's instructions."""

    kernel: str
    shape: str
    warp_instructions: int
    instructions: int

    @property
    def rate(self) -> float:
        """Gives warp instructions for one instruction of the processor."""
        return self.warp_instructions / self.instructions


def counted(case: Case) -> list[Counted]:
    """Counts a kernel in all of its shapes.

    Raises CalledProcessError where a process fails, as with a wrong result.
    """
    with tempfile.TemporaryDirectory() as folder:
        number = str(CASES.index(case))
        callgrind.run([__file__, "--compile", folder, number])
        parts = callgrind.count([__file__, "--launch", folder, number], Path(folder))
        executed: list[int] = json.loads((Path(folder) / "executed.json").read_text("utf-8"))
    return [
        Counted(case.name, shape.label, warp_instructions, part["kernel"])
        for shape, warp_instructions, part in zip(case.shapes, executed, parts, strict=True)
    ]


def compile_shapes(case: Case, folder: Path) -> None:
    """Fills the cache, and leaves PTX, problems and numbers of warp instructions in `folder`.

    Raises AssertionError where a result is wrong.
    """
    gpu = _device(folder)
    (folder / "kernel.ptx").write_text(gpu.load(case.path).ptx, "utf-8")
    problems = [case.build(shape) for shape in case.shapes]
    (folder / "problems.pickle").write_bytes(pickle.dumps(problems))
    executed: list[int] = []
    for launch in _launches(gpu, case, folder):
        launch()
        launch.check()
        executed.append(launch.warp_instructions())
        launch.free()
    (folder / "executed.json").write_text(json.dumps(executed), "utf-8")


def launch_shapes(case: Case, folder: Path) -> None:
    """Launches a kernel in all shapes, each in a part of callgrind's counts of its own."""
    counts = callgrind.Callgrind(folder)
    counts.start()
    for launch in _launches(_device(folder), case, folder):
        counts.zero()
        launch()
        counts.dump()
        launch.free()


def _device(folder: Path) -> wl.Device:
    os.environ["WARPLOOM_CACHE_DIR"] = str(folder / "cache")
    return wl.Device(workers=1)


def _launches(gpu: wl.Device, case: Case, folder: Path) -> Iterator[Launch]:
    """Yields a launch for each shape of the problems in a folder."""
    kernel = gpu.load(folder / "kernel.ptx")[case.kernel]
    problems = pickle.loads((folder / "problems.pickle").read_bytes())
    for shape, problem in zip(case.shapes, problems, strict=True):
        yield Launch(gpu, kernel, replace(case, build=lambda _, problem=problem: problem), shape)


def ratios(shapes: Sequence[Counted]) -> list[float]:
    """Returns the rate of each shape of a kernel relative to the best of them."""
    best = max(one.rate for one in shapes)
    return [one.rate / best for one in shapes]


def row(shapes: Sequence[Counted]) -> str:
    """Writes one kernel's line of the table."""
    pairs = zip(shapes, ratios(shapes), strict=True)
    cells = "  ".join(f"{f'{one.shape} {ratio:.2f}':>12}" for one, ratio in pairs)
    return f"{shapes[0].kernel:26}{1 / shapes[0].rate:14.2f}  {cells}"


def summary(kernels: Sequence[Sequence[Counted]]) -> str:
    """Writes the mean and the worst ratio of the table."""
    pairs = [
        (ratio, f"{one.kernel} in {one.shape}")
        for shapes in kernels
        for one, ratio in zip(shapes, ratios(shapes), strict=True)
    ]
    return f"{len(kernels)} kernels, {len(pairs)} launch shapes: {mean_and_worst(pairs)}"


def main() -> None:
    options = argparse.ArgumentParser(description="Count instructions in many launch shapes.")
    options.add_argument("--only", default="", metavar="REGEX", help="kernels to run, by name")
    options.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    options.add_argument("--json", type=Path, help="write every figure there")
    options.add_argument("--compile", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--launch", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.compile or given.launch:
        step = compile_shapes if given.compile else launch_shapes
        folder, number = given.compile or given.launch
        step(CASES[int(number)], Path(folder))
        return
    if not shutil.which("valgrind"):
        raise SystemExit(callgrind.MISSING)
    kernels: list[list[Counted]] = []
    print(HEADER)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for shapes in pool.map(counted, [c for c in CASES if re.search(given.only, c.name)]):
            kernels.append(shapes)
            print(row(shapes), flush=True)
            if given.json:
                rows = [asdict(one) for shapes in kernels for one in shapes]
                given.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    print(f"\n{summary(kernels)}")
    if given.write:
        documents.write("counted-shapes", "\n".join([HEADER, *map(row, kernels)]), PAGE)
        documents.write("counted-summary", summary(kernels), PAGE)


if __name__ == "__main__":
    main()
