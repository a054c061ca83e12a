"""Reads what KTT published of the search spaces: counters of an RTX 2080 Ti by configuration."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "currently_unused/cachefiles/KTT data"


@dataclass(frozen=True)
class Result:
    """A configuration by KTT's names of parameters, its counters by Nsight Compute's names, and
    registers of a thread."""

    parameters: dict[str, int]
    counters: dict[str, float]
    registers: int


def results(root: Path, space: str) -> Iterator[Result]:
    """Yield the configurations of a space that ran, from a clone of the benchmark hub."""
    file = root / FOLDER / f"KT{space}Output_2080Ti.json.gz"
    for result in json.loads(gzip.decompress(file.read_bytes()))["Results"]:
        if result["Status"] == "Ok":
            (run,) = result["ComputationResults"]
            registers = run["CompilationData"]["RegistersCount"]
            counters = _named(run["ProfilingData"]["Counters"])
            yield Result(_named(result["Configuration"]), counters, registers)


def _named(values: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["Name"]: one["Value"] for one in values}
