"""The least time that a launch takes of each part of the GPU, by its counters and the device's
peaks: what is used longest bounds it. Nothing waits here; `warploom time` models that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec, find_timing
from warploom.observe.counters import Counters
from warploom.report.sections import Report
from warploom.timing.work.classes import FREE, class_of
from warploom.timing.work.costs import TICKS, WorkCosts

SLOW_UNITS = {"fp64": "double precision", "special": "special functions"}
"""Units of an SM that take several cycles for a warp instruction on some device, with published
throughputs, by the names of the model of time. Compilers do not fold their instructions into
others, as they do those of integers."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A part of the GPU, the seconds for which a launch uses it at least, and what these are
    for."""

    part: str
    seconds: float
    work: str


def ceilings(report: Report) -> tuple[Ceiling, ...]:
    """Returns the ceilings of a launch, the longest first; none for a device whose peaks are not
    known."""
    spec, counters = report.facts.spec, report.counters
    timing = _peaks(spec)
    if timing is None:
        return ()
    found = (*_of_launch(counters, timing, spec, report.facts.blocks), _of_atomics(report, timing))
    return tuple(sorted((one for one in found if one.seconds), key=lambda one: -one.seconds))


def least_seconds(counters: Counters, spec: DeviceSpec, blocks: int) -> float | None:
    """Returns the least time that a launch of some blocks takes at the device's peaks, or None if
    these are not known. Atomics on one address, which only a report finds, do not count."""
    timing = _peaks(spec)
    if timing is None:
        return None
    return max(one.seconds for one in _of_launch(counters, timing, spec, blocks))


def time_text(seconds: float) -> str:
    """Returns a time in a unit of three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _peaks(spec: DeviceSpec) -> TimingSpec | None:
    """Returns the figures of a device, or None if there are none."""
    try:
        return find_timing(spec)
    except KeyError:
        return None


def _of_launch(
    counters: Counters, timing: TimingSpec, spec: DeviceSpec, blocks: int
) -> tuple[Ceiling, ...]:
    """Returns the ceilings that follow from the counters alone."""
    used = max(1, min(blocks, spec.sms))
    units = _of_units(counters, WorkCosts(spec, timing), used)
    return (*_of_sms(counters, timing, used), *units, _of_memory(counters, timing))


def _of_units(counters: Counters, costs: WorkCosts, used: int) -> Iterator[Ceiling]:
    """Yields the ceilings of the units that take several cycles for a warp instruction, if `used`
    SMs share the work evenly."""
    timing, slots = costs.timing, dict[str, int]()
    for instruction, count in zip(counters.program.instructions, counters.executions, strict=True):
        name = class_of(instruction) if count else FREE
        if name != FREE:
            cost = costs.of(name)
            slots[cost.unit] = slots.get(cost.unit, 0) + int(count) * cost.slots
    for unit, part in SLOW_UNITS.items():
        if number := slots.get(unit, 0):
            units = used * (1 if costs.is_shared(unit) else timing.schedulers)
            cycles = number * costs.interval(unit) / TICKS / units
            yield Ceiling(part, cycles * 1e-6 / timing.clock_mhz, f"{number:,} instructions")


def _of_sms(counters: Counters, timing: TimingSpec, used: int) -> tuple[Ceiling, ...]:
    """Returns the ceilings of units of an SM, if `used` SMs share the work evenly."""
    cycle = 1e-6 / timing.clock_mhz
    issued = counters.warp_instructions
    passes = sum(counters[f"shared_{op}_wavefronts"] for op in ("load", "store", "atomic"))
    return (
        Ceiling("instructions", issued / (used * timing.schedulers) * cycle, f"{issued:,} issued"),
        Ceiling(
            "shared memory",
            passes * timing.shared_wavefront_cycles / used * cycle,
            f"{passes:,} wavefronts",
        ),
    )


def _of_memory(counters: Counters, timing: TimingSpec) -> Ceiling:
    """Returns the ceiling of DRAM: for the sectors that missed L2 where caches were counted, else
    for all that were moved."""
    kinds = [f"{space}_{op}" for space in ("global", "local") for op in ("load", "store", "atomic")]
    moved = sum(counters.get(f"{kind}_bytes_moved", 0) for kind in kinds)
    misses = sum(counters.get(f"{kind}_l2_misses", 0) for kind in kinds)
    hits = sum(counters.get(f"{kind}_l2_hits", 0) for kind in kinds)
    is_counted = bool(misses or hits)
    transferred = 32 * misses if is_counted else moved
    seconds = transferred / (timing.dram_gb_per_s * timing.dram_efficiency * 1e9)
    condition = "" if is_counted else " without cache hits"
    return Ceiling("global memory", seconds, f"{_size(transferred)}{condition}")


def _of_atomics(report: Report, timing: TimingSpec) -> Ceiling:
    """Returns the ceiling of the slice of L2 that serves atomics to one address."""
    total = next((one for one in report.advice if one.rule == "atomics on one address"), None)
    passes = report.counters.atomic_passes if total and "one address of" in total.evidence else 0
    return Ceiling(
        "atomics on one address",
        passes * timing.atomic_cycles * 1e-6 / timing.clock_mhz,
        f"{passes:,} passes",
    )


def _size(count: int) -> str:
    """Returns a number of bytes in a unit of three digits."""
    size, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"
