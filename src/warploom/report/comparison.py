"""Compares two runs by their reports as data: what changed, ranked by what it costs, and a verdict.

A run is a launch, or several whose counts are added up. Reading files and printing are left to the
command line and to `report.compared`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from warploom.core.errors import WarploomError
from warploom.report.peaks import time_text

SMALL = 0.1
"""A change against the verdict is named from this part of the one that made it."""

SAME = 0.03
"""Times that differ by less are the same: the model of time is no better than that."""

Counts = Mapping[str, float]


@dataclass(frozen=True)
class RunTotals:
    """The totals of a run: `counts` of all launches, the modelled `seconds` of all of them (None if
    any has none), and the least seconds that the device's peaks allow; `occupancy` and `registers`
    are those of a run of one kernel."""

    name: str
    device: str
    launches: int
    counts: Counts
    seconds: float | None
    least_seconds: float | None
    occupancy: float | None
    registers: float | None

    @classmethod
    def of(cls, name: str, data: object) -> RunTotals:
        """Returns the totals of a report as `report.export.as_json` makes it, or of a program's
        (`warploom run --json FILE`). Raises WarploomError for anything else."""
        try:
            if isinstance(data, dict) and "kernels" in data:
                reports = msgspec.convert(data, ProgramData).kernels
            else:
                reports = [msgspec.convert(data, ReportData)]
        except msgspec.ValidationError as error:
            raise WarploomError(
                f"{name} is not a report: {error}. Write one with `warploom profile --json` or "
                "`warploom run --json FILE program`."
            ) from None
        if not reports:
            raise WarploomError(f"{name} is the report of a program that launched no kernel")
        return cls._of(name, reports)

    @classmethod
    def _of(cls, name: str, reports: Sequence[ReportData]) -> RunTotals:
        counts: defaultdict[str, float] = defaultdict(float)
        for one in reports:
            for key, value in one.counts():
                counts[key] += value
        times = [one.metric("Duration") for one in reports]
        longest = [one.ceilings[0] for one in reports if one.ceilings]
        single = reports[0] if len(reports) == 1 else None
        return cls(
            name,
            reports[0].device,
            sum(one.launches for one in reports),
            dict(counts),
            sum(t / 1e6 for t in times if t is not None) if None not in times else None,
            sum(one.seconds for one in longest) if len(longest) == len(reports) else None,
            single.metric("Theoretical Occupancy") if single else None,
            single.metric("Registers Per Thread") if single else None,
        )


class MetricData(msgspec.Struct, frozen=True):
    """A metric of a report."""

    name: str
    value: float | str | None


class CeilingData(msgspec.Struct, frozen=True):
    """The least seconds of a part of the GPU."""

    part: str
    seconds: float


class ReportData(msgspec.Struct, frozen=True):
    """The report of a kernel as data: what is compared of it. `ceilings` begin with the longest."""

    kernel: str
    device: str
    counters: dict[str, float | dict[str, float]]
    launches: int = 1
    sections: dict[str, list[MetricData]] = {}
    ceilings: tuple[CeilingData, ...] = ()

    def counts(self) -> Iterator[tuple[str, float]]:
        """Yields its counters by name, warp instructions of a unit as `unit NAME`."""
        for name, value in self.counters.items():
            if isinstance(value, dict):
                yield from ((f"unit {unit}", count) for unit, count in value.items())
            else:
                yield name, value

    def metric(self, name: str) -> float | None:
        """Returns the value of a metric by the beginning of its name; None if there is none."""
        metrics = (one for section in self.sections.values() for one in section)
        found = next((one.value for one in metrics if one.name.startswith(name)), None)
        return None if isinstance(found, str) else found


class ProgramData(msgspec.Struct, frozen=True):
    """The report of a program."""

    kernels: list[ReportData]


# ---- what is compared ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantity:
    """A count that is compared: less of it is better. `slots` is about what one costs, by which
    rows are ranked: issue slots of an SM in the time that its busiest unit takes for it."""

    name: str
    value: Callable[[Counts], float]
    slots: float = 1.0


def _sum(*names: str) -> Callable[[Counts], float]:
    return lambda counts: sum(counts.get(name, 0) for name in names)


WAVEFRONT, SECTOR = 4.0, 8.0
"""What they cost: an SM with four schedulers issues four instructions while shared memory serves
one wavefront, and about eight while its share of DRAM moves a sector that misses caches (H100: 13
bytes a cycle and SM; a sector that hits L2 costs half of that)."""

QUANTITIES = (
    Quantity("Warp Instructions", _sum("warp_instructions")),
    Quantity("Global Load Sectors", _sum("global_load_sectors"), SECTOR),
    Quantity("Global Store Sectors", _sum("global_store_sectors"), SECTOR),
    Quantity("Global Atomic Passes", _sum("global_atomic_passes"), SECTOR),
    Quantity("Shared Atomic Passes", _sum("shared_atomic_passes"), WAVEFRONT),
    Quantity(
        "Local Memory Sectors (Spills, Arrays)",
        _sum("local_load_sectors", "local_store_sectors"),
        SECTOR,
    ),
    Quantity(
        "Shared Wavefronts",
        _sum("shared_load_wavefronts", "shared_store_wavefronts"),
        WAVEFRONT,
    ),
    Quantity("Constant Transactions", _sum("constant_load_transactions"), WAVEFRONT),
    Quantity("Texture Sectors", _sum("texture_load_sectors", "surface_load_sectors"), SECTOR),
    Quantity(
        "Bytes Of Asynchronous Copies",
        _sum("tensor_copy_bytes_loaded", "tensor_copy_bytes_stored"),
        SECTOR / 32,
    ),
    Quantity("Matrix Instructions", _sum("unit matrix"), WAVEFRONT),
    Quantity("Divergent Branches", _sum("divergent_branches")),
    Quantity("Barriers", _sum("barriers", "cluster_barriers")),
)
"""What is compared of every run."""


@dataclass(frozen=True)
class Ratio:
    """A figure that is a ratio, and can look worse where the run is better: its `total` is what
    counts. `rising` is 1 if more of it looks better, -1 if less does."""

    name: str
    value: Callable[[Counts], float | None]
    total: str
    rising: int


def _per(numerator: str, denominator: str) -> Callable[[Counts], float | None]:
    def value(counts: Counts) -> float | None:
        below = counts.get(denominator, 0)
        return counts.get(numerator, 0) / below if below else None

    return value


RATIOS = (
    Ratio(
        "Global Load Sectors Per Request",
        _per("global_load_sectors", "global_load_requests"),
        "Global Load Sectors",
        -1,
    ),
    Ratio(
        "Global Store Sectors Per Request",
        _per("global_store_sectors", "global_store_requests"),
        "Global Store Sectors",
        -1,
    ),
    Ratio(
        "Shared Wavefronts Per Load Request",
        _per("shared_load_wavefronts", "shared_load_requests"),
        "Shared Wavefronts",
        -1,
    ),
    Ratio(
        "Active Lanes Per Warp Instruction",
        _per("thread_instructions", "warp_instructions"),
        "Warp Instructions",
        1,
    ),
)


@dataclass(frozen=True)
class Row:
    """A figure before and after; `slots` is what the change costs (negative: saves)."""

    name: str
    before: float
    after: float
    slots: float = 0.0

    @property
    def change(self) -> str:
        """Returns the change in words."""
        if self.before == self.after:
            return "same"
        if not self.before:
            return "new"
        if not self.after:
            return "gone"
        return f"{100 * (self.after / self.before - 1):+,.1f} %"


@dataclass(frozen=True)
class Comparison:
    """Two runs: the verdict in one sentence, then what made it; rows of counts, the largest cost of
    a change first; ratios; and notes on figures that mislead."""

    before: RunTotals
    after: RunTotals
    verdict: str
    reason: str
    rows: tuple[Row, ...]
    ratios: tuple[Row, ...]
    notes: tuple[str, ...]


def compare(before: RunTotals, after: RunTotals) -> Comparison:
    """Compares two runs."""
    rows = tuple(
        Row(one.name, value, other, one.slots * (other - value))
        for one in QUANTITIES
        for value, other in ((one.value(before.counts), one.value(after.counts)),)
        if value or other
    )
    ranked = tuple(sorted(rows, key=lambda row: -abs(row.slots)))
    ratios = tuple(
        Row(one.name, value, other)
        for one in RATIOS
        for value, other in ((one.value(before.counts), one.value(after.counts)),)
        if value is not None and other is not None
    )
    for name, value, other in (
        ("Theoretical Occupancy, %", before.occupancy, after.occupancy),
        ("Registers Per Thread", before.registers, after.registers),
    ):
        ratios += (Row(name, value, other),) if value is not None and other is not None else ()
    gain, basis = _gain(before, after, ranked)
    verdict = _verdict(before, after, gain, basis)
    notes = (*_differences(before, after), *_misleading(ratios, ranked, gain))
    return Comparison(before, after, verdict, _reason(ranked, gain), ranked, ratios, notes)


def _gain(before: RunTotals, after: RunTotals, rows: Sequence[Row]) -> tuple[float, str]:
    """Returns how many times as fast the run is afterwards, and what says so: modelled times, the
    least times by the device's peaks, or the counted slots."""
    if before.seconds and after.seconds:
        return before.seconds / after.seconds, "modelled time"
    if before.least_seconds and after.least_seconds:
        return before.least_seconds / after.least_seconds, (
            "lower bound on the time, at the device's peak rates"
        )
    slots = [sum(q.slots * q.value(one.counts) for q in QUANTITIES) for one in (before, after)]
    return (slots[0] / slots[1] if slots[1] else 1.0), "counted slots"


def _verdict(before: RunTotals, after: RunTotals, gain: float, basis: str) -> str:
    times = {
        "modelled time": (before.seconds, after.seconds),
        "lower bound on the time, at the device's peak rates": (
            before.least_seconds,
            after.least_seconds,
        ),
    }.get(basis)
    shown = ""
    if times and times[0] and times[1]:
        shown = f": {time_text(times[0])} before, {time_text(times[1])} after"
    if abs(gain - 1) < SAME:
        return f"The same, within {100 * SAME:.0f} % ({basis}{shown})."
    if gain > 1:
        return f"Better: {gain:.3g} times as fast ({basis}{shown})."
    return f"Worse: takes {1 / gain:.3g} times as long ({basis}{shown})."


def _reason(rows: Sequence[Row], gain: float) -> str:
    """Returns what changed most in the direction of the verdict, and most against it."""
    changed = [row for row in rows if row.slots]
    if not changed:
        return "No count changed."
    sign = -1 if gain >= 1 else 1
    along = [row for row in changed if row.slots * sign > 0]
    against = [row for row in changed if row.slots * sign < 0]
    if not along:
        return (
            "The changed counts do not explain this result. The largest change is in "
            f"{_shown(against[0])}."
        )
    cause = f"Because of {_shown(along[0])}"
    if against and abs(against[0].slots) > SMALL * abs(along[0].slots):
        return f"{cause}, despite {_shown(against[0])}."
    return f"{cause}."


def _shown(row: Row) -> str:
    return f"{row.name.lower()} (from {row.before:,.0f} to {row.after:,.0f}: {row.change})"


def _differences(before: RunTotals, after: RunTotals) -> tuple[str, ...]:
    """Returns notes on what makes two runs hard to compare."""
    notes: list[str] = []
    if before.device != after.device:
        notes.append(f"The devices differ: {before.device} before, {after.device} after.")
    if before.launches != after.launches:
        notes.append(
            f"Totals are sums over {before.launches:,} launches before and {after.launches:,} "
            "after."
        )
    return tuple(notes)


def _misleading(ratios: Sequence[Row], rows: Sequence[Row], gain: float) -> tuple[str, ...]:
    """Returns notes on ratios that look worse though the run, or their total, is better."""
    totals = {row.name: row for row in rows}
    notes: list[str] = []
    for row in ratios:
        rule = next((one for one in RATIOS if one.name == row.name), None)
        change = row.after - row.before
        if rule is not None and change * rule.rising < 0:
            total = totals.get(rule.total)
            if total is not None and total.after < total.before:
                notes.append(
                    f"{row.name} looks worse ({row.before:,.3g} before, {row.after:,.3g} after), "
                    f"but the total fell: {rule.total} {total.change}. The total determines the "
                    "cost."
                )
        if row.name.startswith("Theoretical Occupancy") and change < 0 and gain > 1 + SAME:
            notes.append(
                f"Occupancy fell from {row.before:,.3g} % to {row.after:,.3g} %, but the run is "
                "faster: fewer warps can hide latencies if each has more independent work."
            )
    return tuple(notes)
