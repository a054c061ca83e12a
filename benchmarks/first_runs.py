"""The first and the tenth run of a program against one that knows how much work there is.

    python benchmarks/first_runs.py [--only REGEX] [--sample N] [--minutes M] [--write]

A run is a process that launches one kernel (families/) in its natural shape, as often as takes
0.05, 0.2, 1 or 5 s in baseline code, and begins with nothing compiled; the first run has an empty
cache, the tenth that of nine runs before it. The process is forked from one that has imported the
engine. Its time is processor time of its launches, in the code that Warploom chooses: compilation
is included where a launch waits for it, loading PTX and a compiler beside the launches are not.

The oracle knows the number of launches, and takes the fastest of three codes: baseline code only,
level 1 from the first launch on, level 3 from the first launch on; each is measured in processes of
its own, compilation included. That of the first run has an empty cache, that of the tenth finds
level 1 or level 3 in the cache. A figure is the time of the run over the oracle's; a kernel of
which one launch takes more than an amount of work has none for it.

--only takes the kernels whose names match, --sample N of them, evenly spaced; no kernel is begun
after M minutes (15). --write puts the table into docs/first_runs.md.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import documents
from families import CASES
from families.processes import (
    BASELINE,
    LEVEL_1,
    LEVEL_3,
    TIERS,
    Launches,
    Work,
    in_new_process,
)

PAGE = documents.PERFORMANCE.with_name("first_runs.md")
AMOUNTS = (0.05, 0.2, 1.0, 5.0)
"""Seconds in baseline code."""

RUNS = 10
LEVELS = (LEVEL_1, LEVEL_3)


@dataclass(frozen=True)
class Comparison:
    """Compares one run with the oracle: seconds of both, the code in which the run ended, and the
    code that the oracle chose."""

    seconds: float
    oracle_seconds: float
    tier: str
    oracle_tier: str

    @property
    def ratio(self) -> float:
        """Gives the seconds of the run over those of the oracle."""
        return self.seconds / self.oracle_seconds


@dataclass(frozen=True)
class Measurement:
    """Holds the comparisons of a kernel by amount of work, of first runs and of tenth ones."""

    kernel: str
    first: dict[float, Comparison]
    tenth: dict[float, Comparison]


def measure(kernel: str) -> Measurement:
    """Measures a kernel with all amounts of work."""
    with tempfile.TemporaryDirectory() as folder:
        work = Work(kernel, BASELINE, f"{folder}/baseline", seconds=AMOUNTS[-1])
        baseline = in_new_process(work)
        one = statistics.median(baseline.seconds[1:])
        counts = {amount: round(amount / one) for amount in AMOUNTS if one <= amount}
        most = min(max(counts.values()), len(baseline.seconds))

        def run(code: str, cache: str, launches: int = most) -> Launches:
            return in_new_process(Work(kernel, code, f"{folder}/{cache}", launches))

        cold = {BASELINE: baseline, **{level: run(level, level) for level in LEVELS}}
        cached = {level: run(level, level) for level in LEVELS}
        first: dict[float, Comparison] = {}
        tenth: dict[float, Comparison] = {}
        for amount, count in counts.items():
            count = min(count, most)
            runs = [run(TIERS, f"tiers{amount}", count) for _ in range(RUNS)]
            first[amount] = compare(runs[0], cold, count)
            tenth[amount] = compare(runs[-1], cached, count)
        return Measurement(kernel, first, tenth)


def compare(made: Launches, codes: dict[str, Launches], count: int) -> Comparison:
    """Compares a run of `count` launches with the fastest of the codes."""
    fastest = min(codes, key=lambda code: codes[code].totals[count - 1])
    chosen = codes[fastest]
    return Comparison(made.totals[-1], chosen.totals[count - 1], made.tier, chosen.tier)


def selected(names: str, sample: int | None) -> list[str]:
    """Returns the kernels whose names match, or `sample` of them. Exits with an error if there is
    none."""
    found = [case.name for case in CASES if re.search(names, case.name)]
    if not found:
        raise SystemExit(f"no kernel's name matches {names!r}; {__file__} --help")
    number = min(sample or len(found), len(found))
    return [found[i * len(found) // number] for i in range(number)]


def measurements(kernels: Sequence[str], seconds: float) -> Iterator[Measurement]:
    """Measures kernels until the time is over."""
    end = time.monotonic() + seconds
    for kernel in kernels:
        if time.monotonic() >= end:
            return
        yield measure(kernel)


def row(name: str, first: Sequence[str], tenth: Sequence[str]) -> str:
    """Writes a line of the table: a cell for each amount of work, of first and of tenth runs."""
    cells = "".join(f"{text:>10}" for text in first), "".join(f"{text:>10}" for text in tenth)
    return f"{name:26}{cells[0]}  {cells[1]}".rstrip()


HEADER = row("first and tenth run of", *2 * [[f"{amount:g} s" for amount in AMOUNTS]])


def rows(done: Measurement) -> str:
    """Writes the ratios of a kernel; under them the codes in which its runs ended, and those that
    the oracles chose."""
    both = done.first, done.tenth
    ratios = [_cells(runs, lambda one: f"{one.ratio:.2f}") for runs in both]
    tiers = [_cells(runs, lambda one: one.tier) for runs in both]
    oracles = [_cells(runs, lambda one: one.oracle_tier) for runs in both]
    return "\n".join((row(done.kernel, *ratios), row("  run", *tiers), row("  oracle", *oracles)))


def _cells(runs: dict[float, Comparison], text: Callable[[Comparison], str]) -> list[str]:
    """Returns a text for each amount of work, "-" where one launch takes longer."""
    return [text(runs[amount]) if amount in runs else "-" for amount in AMOUNTS]


def means(done: Sequence[Measurement]) -> str:
    """Writes the geometric mean over the kernels, and the greatest ratio, of each amount."""
    sides = [[one.first for one in done], [one.tenth for one in done]]
    ratios = [[[r[a].ratio for r in side if a in r] for a in AMOUNTS] for side in sides]
    mean = [[f"{statistics.geometric_mean(c):.2f}" if c else "-" for c in side] for side in ratios]
    worst = [[f"{max(c):.2f}" if c else "-" for c in side] for side in ratios]
    return "\n".join((row(f"geometric mean of {len(done)}", *mean), row("greatest", *worst)))


def main() -> None:
    options = argparse.ArgumentParser(description="Compare runs with an oracle.")
    options.add_argument("--only", default="", metavar="REGEX", help="kernels to run, by name")
    options.add_argument("--sample", type=int, metavar="N", help="so many of them")
    options.add_argument("--minutes", type=float, default=15.0, help="no kernel begins later")
    options.add_argument("--write", action="store_true", help="write docs/first_runs.md")
    given = options.parse_args()
    print(HEADER)
    done: list[Measurement] = []
    for measurement in measurements(selected(given.only, given.sample), 60 * given.minutes):
        done.append(measurement)
        print(rows(measurement), flush=True)
    print(means(done))
    if given.write:
        table = "\n".join((HEADER, *map(rows, done), means(done)))
        documents.write("first runs", table, PAGE)


if __name__ == "__main__":
    main()
