"""Reads and writes the record of a GPU: what each launch took, and its metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recorded:
    """Holds what was recorded of a launch.

    `seconds` lie between two events around each of several launches. `metrics` are those of Nsight
    Compute by name, of one launch from empty caches. Either is empty where it was not recorded.
    """

    registers: int = 0
    seconds: tuple[float, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Record:
    """Holds the record of a GPU: what nvidia-smi and the tools said of it, and launches by name."""

    machine: Mapping[str, str]
    launches: Mapping[str, Recorded]


def read_record(file: Path) -> Record:
    """Returns the record in a file that `write_record` made."""
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    names: list[str] = content["metrics"]
    launches = {
        name: Recorded(
            registers,
            tuple(seconds),
            {n: v for n, v in zip(names, values, strict=False) if v is not None},
        )
        for name, (registers, seconds, values) in content["launches"].items()
    }
    return Record(content["machine"], launches)


def write_record(file: Path, record: Record) -> None:
    """Write a record as JSON, a line for each launch."""
    names = list(dict.fromkeys(name for one in record.launches.values() for name in one.metrics))
    rows = (
        f"{json.dumps(name)}: {json.dumps(_row(one, names))}"
        for name, one in record.launches.items()
    )
    file.write_text(
        f'{{"machine": {json.dumps(record.machine, indent=1)},\n'
        f'"metrics": {json.dumps(names)},\n"launches": {{\n' + ",\n".join(rows) + "\n}}\n",
        "utf-8",
    )


def _row(one: Recorded, names: list[str]) -> list[Any]:
    values = [one.metrics.get(name) for name in names] if one.metrics else []
    whole = [int(v) if v is not None and v == int(v) else v for v in values]
    return [one.registers, [float(f"{s:.5g}") for s in one.seconds], whole]
