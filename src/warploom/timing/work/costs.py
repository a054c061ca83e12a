"""Looks up the cost of each class of work on a device: the rows of `devices/data/work.json`, each
with its source, and the throughput of the units of an SM."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec

UNITS = (
    *("fp32", "int", "imul", "shift", "fp64", "fp16", "special", "bits", "convert", "shuffle"),
    *("tensor", "lsu", "texture", "barrier", "control", "tensor_memory"),
)
"""The units of an SM, as `TimingSpec.lanes_*` names them; tensor cores and control have no such
field."""

SHARED_UNITS = ("texture", "barrier")
"""Units that all sub-partitions share; on some devices double precision is shared, too."""

QUEUED_UNITS = ("special", "bits", "convert", "shuffle", "lsu", "texture")
"""Units that answer after a varying time: warps wait for them on the short scoreboard (Nsight
Compute, "Warp Stall Reasons")."""

TICKS = 1024
"""Parts of a cycle in which the engine counts when a unit is free: some units take a warp in less
than one cycle."""

NO_LIMIT = 1 << 30
"""Cycles that stand for a unit which the device does not have."""


class WorkCost(NamedTuple):
    """Holds the cost of one class on one device: its unit, the warp instructions that it issues
    there, the cycles from its first issue to that of an instruction which needs its result, and the
    source."""

    unit: str
    slots: int
    latency: int
    source: str


@dataclass(frozen=True)
class WorkCosts:
    """Looks up the costs of a device: what each class of work (a row name of `work.json`) needs,
    and for how long its units are occupied."""

    device: DeviceSpec
    timing: TimingSpec

    def of(self, name: str) -> WorkCost:
        """Returns the cost of a class on the device, by the last of its rows for this compute
        capability or an earlier one. A row's latency may be the name of a field of the device's
        figures; without one, it is the unit's latency times the slots. Raises KeyError for an
        unknown class."""
        rows = _rows()[name]
        row = [row for row in rows if row.since <= self.device.compute_capability][-1]
        latency = row.latency
        if isinstance(latency, str):
            latency = getattr(self.timing, latency)
        if latency is None:
            latency = row.slots * self.unit_latency(row.unit)
        return WorkCost(row.unit, row.slots, latency, row.source)

    def unit_latency(self, unit: str) -> int:
        """Returns the cycles from the issue of an instruction of a unit to that of one which needs
        its result; for control, barriers and the load/store unit those of integer arithmetic."""
        # These units have no latency of their own.
        alias = "int" if unit in ("control", "barrier", "lsu") else unit
        return getattr(self.timing, f"latency_{alias}")

    def interval(self, unit: str) -> int:
        """Returns the ticks (1/TICKS of a cycle) for which a warp instruction occupies a unit, at
        least 1, from the unit's lanes, those of one scheduler unless all share the unit; 0 for
        control and for tensor cores, whose time is `tensor_interval`."""
        if unit in ("control", "tensor"):
            return 0
        lanes = getattr(self.timing, f"lanes_{unit}")
        unit_count = 1 if self.is_shared(unit) else self.timing.schedulers
        # 32 lanes of a warp over the unit's lanes; `lanes` counts those of the whole SM.
        return max(1, round(TICKS * 32 * unit_count / lanes))

    def is_shared(self, unit: str) -> bool:
        """Returns whether an SM has one unit of this name, which all its schedulers share, instead
        of one for each."""
        return unit in SHARED_UNITS or (unit == "fp64" and self.timing.fp64_shared)

    def tensor_interval(self, products: int) -> int:
        """Returns the ticks for which a tensor core (one for each scheduler) is occupied by
        `products` multiply-adds of 16 bits; those of NO_LIMIT cycles, whatever their number, on
        a device without tensor cores."""
        products_per_cycle = self.timing.tensor_fma / self.timing.schedulers
        return (
            round(TICKS * products / products_per_cycle) if products_per_cycle else TICKS * NO_LIMIT
        )


class WorkRow(NamedTuple):
    """Holds a row of the table; `latency` is in cycles, the name of the `TimingSpec` field that has
    it, or None (see `WorkCosts.of`)."""

    since: tuple[int, ...]
    unit: str
    slots: int
    latency: int | str | None
    source: str


@cache
def _rows() -> dict[str, list[WorkRow]]:
    """Returns the rows of `devices/data/work.json` by class, in the order of the file, which is
    that of their compute capabilities."""
    path = files("warploom.devices").joinpath("data", "work.json")
    by_class: dict[str, list[WorkRow]] = {}
    for name, since, *rest in json.loads(path.read_text("utf-8"))["rows"]:
        first = tuple(int(part) for part in since.split("."))
        by_class.setdefault(name, []).append(WorkRow(first, *rest))
    return by_class
