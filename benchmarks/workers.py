"""What several workers gain, kernel by kernel, beside one.

    python benchmarks/workers.py [--only REGEX] [--workers N,...] [--write]

Each kernel of kernels.py is launched in its natural shape, in code of level 3, by one worker, by
default (as many workers as pay) and by the given numbers of workers, in turn; the best of ROUNDS
wall times of each is taken, without the time of reading counters. Results are checked against NumPy
first. A gain is the time of one worker over that of several. Where the default left one worker, the
reason stands behind it. --write puts the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from dataclasses import dataclass

import documents
from families import CASES
from families.base import Case
from families.measuring import Launch, optimised

import warploom as wl

ROUNDS = 12
LONG = 0.01
"""Launches of more than so many seconds on one worker have a mean of their own."""


@dataclass(frozen=True)
class Gains:
    """Holds the seconds of a launch by one worker, the gains of others by the number of workers
    (None: the default), and why the default had one worker."""

    kernel: str
    seconds: float
    gains: dict[int | None, float]
    reason: str


def measure(case: Case, numbers: list[int | None]) -> Gains:
    """Launches a kernel with each number of workers in turn.

    Raises AssertionError where a result is wrong.
    """
    shape, launches = case.shapes[0], {}
    for workers in (1, *numbers):
        gpu = wl.Device(workers=workers)
        launches[workers] = Launch(gpu, gpu.load(case.path)[case.kernel], case, shape)
    best = dict.fromkeys(launches, float("inf"))
    for launch in launches.values():
        launch()
        launch.check()
    for _ in range(ROUNDS):
        for workers, launch in launches.items():
            began = time.perf_counter()
            launch()
            best[workers] = min(best[workers], time.perf_counter() - began)
    reason = launches[None].serial_reason()
    for launch in launches.values():
        launch.free()
    return Gains(case.name, best[1], {each: best[1] / best[each] for each in numbers}, reason)


def row(one: Gains) -> str:
    """Writes one kernel's line."""
    gains = "".join(f"{gain:9.2f}" for gain in one.gains.values())
    reason = one.reason.rpartition(" at ")[0] or one.reason
    return f"{one.kernel:28}{1e3 * one.seconds:9.1f}{gains}  {reason}".rstrip()


def summary(measured: list[Gains]) -> str:
    """Writes the geometric means and the least gain of the default."""
    gains = [one.gains[None] for one in measured]
    long = [one.gains[None] for one in measured if one.seconds > LONG]
    least = min(measured, key=lambda one: one.gains[None])
    lines = [
        f"{len(os.sched_getaffinity(0))} cores, by default: geometric mean"
        f" {statistics.geometric_mean(gains):.2f}, lowest {least.gains[None]:.2f} ({least.kernel})",
    ]
    if long:
        lines.append(
            f"{len(long)} launches longer than {1e3 * LONG:.0f} ms: geometric mean"
            f" {statistics.geometric_mean(long):.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description="Measure what several workers gain.")
    options.add_argument("--only", default="", metavar="REGEX", help="kernels to run, by name")
    options.add_argument("--workers", default="", metavar="N,...", help="numbers of workers")
    options.add_argument("--write", action="store_true", help="write docs/performance.md")
    given = options.parse_args()
    numbers: list[int | None] = [None, *map(int, filter(None, given.workers.split(",")))]
    heads = "".join(f"{'default' if each is None else each:>9}" for each in numbers)
    lines = [f"{'kernel':28}{'ms':>9}{heads}"]
    print(lines[0])
    measured: list[Gains] = []
    with optimised():
        for case in CASES:
            if re.search(given.only, case.name):
                measured.append(measure(case, numbers))
                lines.append(row(measured[-1]))
                print(lines[-1], flush=True)
    print(f"\n{summary(measured)}")
    if given.write:
        documents.write("workers", "\n".join([*lines, "", summary(measured)]))


if __name__ == "__main__":
    main()
