"""Published figures of hardware, each with its source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One figure: the kernel of kernels.cu that stands for the published benchmark, with its
    parameters; `clock_mhz` is what the card ran at, None for that of the catalog. More is better
    where the unit has "/s" in it."""

    device: str
    clock_mhz: float | None
    kernel: str
    parameters: Mapping[str, int]
    published: float
    unit: str
    source: str

    @property
    def title(self) -> str:
        parameters = ", ".join(f"{name} {value:,}" for name, value in self.parameters.items())
        return f"{self.kernel} ({parameters})" if parameters else self.kernel

    @property
    def more_is_better(self) -> bool:
        return "/s" in self.unit


@cache
def figures() -> tuple[Figure, ...]:
    """Returns all figures."""
    path = files("warploom.validation").joinpath("figures.json")
    tables: dict[str, Any] = json.loads(path.read_text("utf-8"))
    rows: list[list[Any]] = tables["rows"]
    found: list[Figure] = []
    for device, clock, kernel, parameters, published, unit, source in rows:
        citation: str = tables["sources"][source]
        found.append(Figure(device, clock, kernel, parameters, published, unit, citation))
    return tuple(found)
