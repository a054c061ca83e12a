"""Holds Warploom against the record of an H100: counters, modelled cycles, sanitizers' verdicts.

    python validation/hardware/compare.py [--rows] [--only REGEX] [--verdicts]

The kernels of `benchmarks/families` run in their natural shapes, as they were recorded. A counter
is exact where it equals the metric of Nsight Compute. Modelled cycles are compared with
sm__cycles_active.max, the cycles in which the busiest multiprocessor had a warp; elapsed cycles and
the duration, which have those of the launch itself as well, with sm__cycles_elapsed.max and
gpu__time_duration.sum.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from recorded import ROOT, case_of
from records import HERE, Record, read_record

import warploom as wl

sys.path.insert(0, str(ROOT / "tests/sanitize"))

LEAST_REGISTERS = 16
"""Nsight Compute never shows fewer registers of a thread, however few ptxas says that it uses."""

Counted = Callable[[wl.Run], float]


def _counter(name: str) -> Counted:
    return lambda run: float(getattr(run.counters, name))


def _registers(run: wl.Run) -> float:
    return max(run.kernel.resources.registers, LEAST_REGISTERS)


def _lsu(what: str, space: str, *operations: str) -> tuple[str, ...]:
    """Names metrics of L1's load/store pipeline."""
    unit = "data" if what == "wavefronts" else "t"
    place = f"pipe_lsu_{what}_mem_{space}" if unit == "data" else f"{what}_pipe_lsu_mem_{space}"
    return tuple(f"l1tex__{unit}_{place}_op_{one}.sum" for one in operations)


COUNTERS: dict[str, tuple[Counted, tuple[str, ...]]] = {
    "registers": (_registers, ("launch__registers_per_thread",)),
    "machine instructions": (
        lambda run: float(run.machine.instructions),
        ("smsp__inst_executed.sum",),
    ),
    "global load requests": (
        _counter("global_load_requests"),
        _lsu("requests", "global", "ld"),
    ),
    "global load sectors": (_counter("global_load_sectors"), _lsu("sectors", "global", "ld")),
    "global store requests": (_counter("global_store_requests"), _lsu("requests", "global", "st")),
    "global store sectors": (_counter("global_store_sectors"), _lsu("sectors", "global", "st")),
    "atomic requests": (
        _counter("global_atomic_requests"),
        _lsu("requests", "global", "atom", "red"),
    ),
    "shared load wavefronts": (
        _counter("shared_load_wavefronts"),
        _lsu("wavefronts", "shared", "ld"),
    ),
    "shared store wavefronts": (
        _counter("shared_store_wavefronts"),
        _lsu("wavefronts", "shared", "st"),
    ),
}
"""By name, what Warploom counts of a run, and the metrics whose sum it stands for."""

BY_PTX, BY_CODE = "SM active cycles, PTX", "SM active cycles, machine code"
TIMES = {
    BY_PTX: "sm__cycles_active.max",
    BY_CODE: "sm__cycles_active.max",
    "elapsed cycles, machine code": "sm__cycles_elapsed.max",
    "duration, machine code": "gpu__time_duration.sum",
}
"""By name, modelled times of a run, and the metrics that they stand for; the duration in ns."""


@dataclass(frozen=True)
class Compared:
    """Holds a kernel's counters and modelled times beside the recorded ones.

    `counters` has (counted, recorded) by name; `times` (modelled, recorded) by the names of TIMES.
    """

    name: str
    counters: dict[str, tuple[float, float]]
    times: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def error(self, counter: str) -> float:
        """Returns how far a counter is off, as a share of the recorded value."""
        ours, theirs = self.counters[counter]
        return 0.0 if ours == theirs else ours / theirs - 1 if theirs else float("inf")


@cache
def record() -> Record:
    """Returns the record of the H100."""
    return read_record(HERE / "h100.json")


def run_case(name: str) -> wl.Run:
    """Runs a kernel of `benchmarks/families` as it was recorded, its work logged for replay."""
    case = case_of(name)
    assert case is not None
    gpu = wl.Device("h100", record=True)
    shape = case.shapes[0]
    problem = case.build(shape)
    values = [gpu.to_device(v) if isinstance(v, np.ndarray) else v for v in problem.arguments]
    kernel = gpu.load(case.path)[case.kernel]
    return kernel[problem.grid, shape.block, None, problem.shared_bytes](*values)


def compared(name: str, timed: bool = True) -> Compared:
    """Returns a kernel's comparison, without its cycles where it is not `timed`."""
    metrics = record().launches[f"families/{name}"].metrics
    return compare_run(name, run_case(name), metrics, timed)


def compare_run(name: str, run: wl.Run, metrics: Mapping[str, float], timed: bool) -> Compared:
    """Returns a run beside the metrics that were recorded of the same launch."""
    counters = {key: pair for key, pair in _pairs(run, metrics) if any(pair)}
    if not timed:
        return Compared(name, counters)
    by_ptx, by_code = (run.time(code=code) for code in ("ptx", "machine"))
    modelled = by_ptx.cycles, by_code.cycles, by_code.elapsed_cycles, by_code.seconds * 1e9
    times = {
        title: (ours, metrics[metric])
        for (title, metric), ours in zip(TIMES.items(), modelled, strict=True)
    }
    return Compared(name, counters, times)


def _pairs(run: wl.Run, recorded: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, float]]]:
    for key, (counted, metrics) in COUNTERS.items():
        if all(metric in recorded for metric in metrics):
            yield key, (counted(run), sum(recorded[metric] for metric in metrics))


def names(pattern: str = "") -> list[str]:
    """Returns the names of the recorded kernels of `benchmarks/families`."""
    found = (name.partition("/")[2] for name in record().launches if name.startswith("families/"))
    return [name for name in found if re.search(pattern, name)]


def counter_table(rows: Sequence[Compared]) -> Iterator[str]:
    """Yields the lines of a table of the counters."""
    yield "| counter | kernels | exact | within 1 % | worst |"
    yield "| --- | --- | --- | --- | --- |"
    for counter in COUNTERS:
        having = [row for row in rows if counter in row.counters]
        if not having:
            continue
        errors = np.abs([row.error(counter) for row in having])
        worst = having[int(errors.argmax())]
        deviation = f"{100 * worst.error(counter):+.1f} % ({worst.name})" if errors.any() else ""
        exact, near = (errors == 0).sum(), (errors <= 0.01).sum()
        yield f"| {counter} | {len(having)} | {exact} | {near} | {deviation} |"


def time_table(rows: Sequence[Compared]) -> Iterator[str]:
    """Yields the lines of a table of modelled cycles over recorded ones."""
    yield "| modelled | kernels | MAPE | median | geometric mean | within 15 % | Spearman |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for title in TIMES:
        modelled, recorded = np.array([row.times[title] for row in rows]).T
        ratios = modelled / recorded
        errors = np.abs(ratios - 1)
        ours, theirs = (np.argsort(np.argsort(values)) for values in (modelled, recorded))
        cells = (
            f"{100 * errors.mean():.1f} %",
            f"{np.median(ratios):.2f}",
            f"{np.exp(np.log(ratios).mean()):.2f}",
            (errors <= 0.15).sum(),
            f"{np.corrcoef(ours, theirs)[0, 1]:.2f}",
        )
        yield f"| {title} | {len(rows)} | {' | '.join(map(str, cells))} |"


def row_table(rows: Sequence[Compared]) -> Iterator[str]:
    """Yields the lines of a table of kernels."""
    yield "| kernel | instructions | recorded cycles | error with PTX | error with machine code |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        deviations = (
            f"{100 * (row.times[title][0] / row.times[title][1] - 1):+.0f} %"
            for title in (BY_PTX, BY_CODE)
        )
        recorded = row.times[BY_CODE][1]
        instructions = f"{100 * row.error('machine instructions'):+.1f} %"
        yield f"| {row.name} | {instructions} | {recorded:,.0f} | {' | '.join(deviations)} |"


FINDINGS = {
    "Race reported": "race",
    "Uninitialized": "uninitialized read",
    "Invalid": "out of bounds",
    "Barrier error": "divergent barrier",
    "did not end": "deadlock",
}
"""By the beginning of compute-sanitizer's message, what Warploom calls the finding."""


def verdicts() -> tuple[list[str], dict[str, set[str]]]:
    """Returns the kernels of tests/sanitize that compute-sanitizer saw, and its findings by kernel.

    A kernel that did not end has a deadlock.
    """
    content: dict[str, Any] = json.loads((HERE / "h100_sanitizers.json").read_text("utf-8"))
    seen: list[str] = content.pop("seen")
    found: dict[str, set[str]] = {name: set() for name in seen}
    for messages in content.values():
        for name, texts in messages.items():
            found[name] |= {kind for text in texts for key, kind in FINDINGS.items() if key in text}
    return seen, found


def verdict_table() -> Iterator[str]:
    """Yields the lines of a table of what was found, by what is wrong with a kernel."""
    from cases import FOLDER, read_cases

    cases = {one.name: one for path in FOLDER.glob("*.cu") for one in read_cases(path.stem).cases}
    seen, found = verdicts()
    yield "| what is wrong | kernels | compute-sanitizer finds something |"
    yield "| --- | --- | --- |"
    kinds = sorted(set[str]().union(*(cases[name].kinds for name in seen)))
    groups = {kind: [name for name in seen if kind in cases[name].kinds] for kind in kinds}
    groups["anything"] = [name for name in seen if cases[name].kinds]
    groups["nothing"] = [name for name in seen if not cases[name].kinds]
    for title, group in groups.items():
        yield f"| {title} | {len(group)} | {sum(bool(found[name]) for name in group)} |"


def main() -> None:
    options = argparse.ArgumentParser(description="Compare with the record of an H100.")
    options.add_argument("--only", default="", metavar="REGEX", help="kernels, by name")
    options.add_argument("--rows", action="store_true", help="print every kernel")
    options.add_argument("--verdicts", action="store_true", help="compute-sanitizer's alone")
    given = options.parse_args()
    if given.verdicts:
        print("\n".join(verdict_table()))
        return
    rows = [compared(name) for name in names(given.only)]
    print("\n".join((*counter_table(rows), "", *time_table(rows))))
    if given.rows:
        print("\n".join(("", *row_table(rows))))


if __name__ == "__main__":
    main()
