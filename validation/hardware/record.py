"""Records on a GPU what the launches of recorded.py take and count.

    python validation/hardware/prepare.py FOLDER --cc 9.0      # on any computer
    python validation/hardware/record.py FOLDER RECORD.json    # on one with a GPU and ncu

Each launch is checked where its results are known, then launched ROUNDS times between two events;
the record has the seconds in their order. Then Nsight Compute profiles one launch each, from empty
caches, without control of the clocks: the record has METRICS. Needs NumPy, Numba and cuda-bindings;
not Warploom.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gpu import Function, Gpu
from metrics import METRICS
from recorded import Launch, case_of, read_launches
from records import Record, Recorded, read_record, write_record

ROUNDS = 9
SECONDS = 0.5
"""A launch is not repeated once its repetitions have taken so long together."""


class Prepared:
    """Holds a launch whose code and arguments are on the GPU."""

    def __init__(self, gpu: Gpu, folder: Path, launch: Launch) -> None:
        self._gpu, self.launch = gpu, launch
        self.function: Function = gpu.load((folder / launch.file).read_bytes(), launch.kernel)
        self._case = case_of(launch.case)
        values: list[Any] = _values(launch)
        self._expected: dict[int, Any] = {}
        if self._case is not None:
            problem = self._case.build(self._case.shapes[0])
            values, self._expected = list(problem.arguments), dict(problem.expected)
        self._arrays = {
            at: gpu.to_device(value)
            for at, value in enumerate(values)
            if isinstance(value, np.ndarray)
        }
        self._kept = {at: gpu.to_device(values[at]) for at in self._expected}
        self._arguments: list[Any] = [
            self._arrays.get(at, value) for at, value in enumerate(values)
        ]

    @property
    def fits(self) -> bool:
        """Returns whether the registers of a block are not more than there are."""
        return math.prod(self.launch.block) <= self.function.most_threads

    def __call__(self) -> float:
        """Restores what an earlier launch wrote, then launches; returns seconds."""
        for at, kept in self._kept.items():
            self._gpu.copy(self._arrays[at], kept)
        one = self.launch
        return self._gpu.launch(
            self.function, one.grid, one.block, one.shared_bytes, self._arguments
        )

    def check(self) -> None:
        """Compare what the last launch wrote with the expected results; AssertionError if wrong."""
        if self._case is not None:
            for at, wanted in self._expected.items():
                got = self._gpu.to_host(self._arrays[at])
                self._case.check(self._case.shapes[0], at, got, wanted)

    def free(self) -> None:
        """Free device memory."""
        for array in (*self._arrays.values(), *self._kept.values()):
            self._gpu.free(array)


def _values(launch: Launch) -> list[Any]:
    return [_array(**one) if isinstance(one, dict) else one for one in launch.arguments]


def _array(dtype: str, count: int, contents: str) -> Any:
    """Returns the array that `recorded.array` describes."""
    random = np.random.default_rng(1)
    if contents == "zeros":
        return np.zeros(count, dtype)
    if contents == "shifts":
        inverse = 1.0 / (1425.0 + np.arange(count) * 0.1953125) ** 2
        return (4148.808 * (inverse - inverse[-1]) / 0.00004096).astype(dtype)
    if dtype.startswith("f"):
        return random.random(count, np.float32).astype(dtype)
    return random.integers(0, np.iinfo(dtype).max, count, dtype, endpoint=True)


def each(folder: Path, pattern: str, action: Callable[[Prepared], Any]) -> Iterator[Any]:
    """Yields the name of each launch that fits on the GPU, and what `action` makes of it."""
    gpu = Gpu()
    for launch in read_launches(folder / "launches.json"):
        if re.search(pattern, launch.name):
            prepared = Prepared(gpu, folder, launch)
            if prepared.fits:
                yield launch.name, action(prepared)
            prepared.free()


def timed(prepared: Prepared) -> Recorded:
    """Returns registers and the seconds of the launches after the first, which is checked.

    Raises AssertionError where its results are wrong.
    """
    prepared()
    prepared.check()
    seconds: list[float] = []
    while len(seconds) < ROUNDS and sum(seconds) < SECONDS:
        seconds.append(prepared())
    return Recorded(prepared.function.registers, tuple(seconds))


def counted(folder: Path, pattern: str, log: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields each launch's name and its metrics by Nsight Compute."""
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--log-file", str(log), "--metrics", ",".join(_known_metrics())]
    command += [sys.executable, __file__, str(folder), "-", "--once", "--only", pattern]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    names = re.findall(r"^launched (.*)$", done.stdout, re.M)
    lines = [line for line in log.read_text("utf-8").splitlines() if line.startswith('"')]
    header, _, *rows = csv.reader(lines)
    for name, row in zip(names, rows, strict=False):
        found: dict[str, float] = {}
        for metric, value in zip(header, row, strict=True):
            if metric in METRICS:
                with suppress(ValueError):
                    found[metric] = float(value.replace(",", ""))
        yield name, found


def _known_metrics() -> list[str]:
    """Returns METRICS without those that Nsight Compute does not have for this GPU."""
    asked = ["ncu", "--query-metrics"]
    known = set(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())
    found = [one for one in METRICS if one.startswith("launch__") or one.split(".")[0] in known]
    print("not known to ncu:", *(one for one in METRICS if one not in found), flush=True)
    return found


def smi(*fields: str) -> Sequence[str]:
    """Returns fields that nvidia-smi reports of the first GPU."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader", "-i", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [one.strip() for one in done.stdout.split(",")]


def main() -> None:
    options = argparse.ArgumentParser(description="Record launches on a GPU.")
    options.add_argument("folder", type=Path, help="what prepare.py wrote")
    options.add_argument("record", type=Path, help="the JSON file to write; it is added to")
    options.add_argument("--only", default="", metavar="REGEX", help="launches to record, by name")
    options.add_argument("--times", action="store_true", help="record no metrics")
    options.add_argument("--metrics", action="store_true", help="record no times")
    options.add_argument("--once", action="store_true", help="launch each once, record nothing")
    given = options.parse_args()
    if given.once:
        for name, _ in each(given.folder, given.only, lambda prepared: prepared()):
            print("launched", name, flush=True)
        return
    kept = read_record(given.record) if given.record.exists() else Record({}, {})
    asked = ("name", "driver_version", "clocks.max.sm", "clocks.max.mem", "clocks.sm", "clocks.mem")
    machine = {**kept.machine, **dict(zip(asked, smi(*asked), strict=False))}
    launches = dict(kept.launches)
    if not given.metrics:
        for name, found in each(given.folder, given.only, timed):
            launches[name] = replace(found, metrics=launches.get(name, Recorded()).metrics)
        machine["clocks.sm after timing"] = smi("clocks.sm")[0]
    if not given.times:
        log = given.record.with_suffix(".ncu.csv")
        for name, metrics in counted(given.folder, given.only, log):
            launches[name] = replace(launches.get(name, Recorded()), metrics=metrics)
    write_record(given.record, Record(machine, launches))


if __name__ == "__main__":
    main()
