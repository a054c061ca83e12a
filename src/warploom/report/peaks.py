"""The least time that some work takes of each part of the GPU at the device's peaks, and what a
remedy gains that saves a part of the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec, find_timing
from warploom.report.work import Work
from warploom.timing.work.costs import TICKS, WorkCosts

SLOW_UNITS = {
    "double": ("fp64", "double precision"),
    "special": ("special", "special functions"),
    "conversions": ("convert", "conversions"),
}
"""Units of an SM that take several cycles for a warp instruction on some device, by the field of
`Work`: their names in the model of time and in reports. Compilers do not fold their instructions
into others, as they do those of integers."""

L1_BYTES = 128
"""Bytes that L1 serves in a wavefront."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A part of the GPU, the seconds for which a launch uses it, and what these are for.
    `is_upper`: caches might make it less; else it is the least."""

    part: str
    seconds: float
    work: str
    is_upper: bool = False


@dataclass(frozen=True, slots=True)
class Gain:
    """The modelled gain of a remedy: what bounds the launch takes `before` seconds now, and
    `after` seconds of what then bounds it. `part` is the part of the GPU that the remedy relieves
    most, from `part_before` to `part_after`."""

    before: float
    after: float
    part: str
    part_before: float
    part_after: float

    @property
    def share(self) -> float:
        """Returns the share of the modelled time that the remedy saves."""
        return 1 - self.after / self.before if self.before else 0.0

    @property
    def relief(self) -> float:
        """Returns the time that the remedy saves in its part, as a share of the launch's."""
        return (self.part_before - self.part_after) / self.before if self.before else 0.0


def ceilings_of(work: Work, spec: DeviceSpec) -> tuple[Ceiling, ...]:
    """Returns the ceilings of some work, the longest first; none for a device whose peaks are not
    known."""
    timing = peaks(spec)
    return () if timing is None else _sorted(_of_work(work, timing, spec))


def gain_of(work: Work, spec: DeviceSpec, saved: Mapping[str, float]) -> Gain | None:
    """Returns what a remedy gains that saves some amounts of work (by the names of the fields of
    `Work`); None if nothing of it is modelled."""
    timing = peaks(spec)
    if timing is None or not saved:
        return None
    now = _sorted(_of_work(work, timing, spec))
    later = {one.part: one for one in _of_work(work.without(saved), timing, spec)}
    if not now:
        return None
    relieved = max(now, key=lambda one: one.seconds - later[one.part].seconds)
    return Gain(
        now[0].seconds,
        max(one.seconds for one in later.values()),
        relieved.part,
        relieved.seconds,
        later[relieved.part].seconds,
    )


def time_text(seconds: float) -> str:
    """Returns a time in a unit of three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def peaks(spec: DeviceSpec) -> TimingSpec | None:
    """Returns the figures of a device, or None if there are none."""
    try:
        return find_timing(spec)
    except KeyError:
        return None


def _sorted(found: Iterator[Ceiling]) -> tuple[Ceiling, ...]:
    return tuple(sorted((one for one in found if one.seconds), key=lambda one: -one.seconds))


def _of_work(work: Work, timing: TimingSpec, spec: DeviceSpec) -> Iterator[Ceiling]:
    """Yields the ceilings of all parts, also of those without work."""
    cycle = 1e-6 / timing.clock_mhz
    sms = max(1e-9, work.sms - work.idle_sms)
    yield Ceiling(
        "instructions", work.issued / (sms * timing.schedulers) * cycle, f"{work.issued:,} issued"
    )
    yield from _of_slow_units(work, WorkCosts(spec, timing), sms)
    yield Ceiling(
        "shared memory",
        work.wavefronts * timing.shared_wavefront_cycles / sms * cycle,
        f"{work.wavefronts:,} wavefronts",
    )
    yield Ceiling(
        "constant cache",
        work.constant_passes * timing.constant_cycles / sms * cycle,
        f"{work.constant_passes:,} passes",
    )
    yield Ceiling(
        "atomics in L2",
        work.atomic_passes * timing.atomic_cycles * cycle,
        f"{work.atomic_passes:,} passes",
    )
    yield Ceiling("latency", work.latency * cycle, f"{work.held_warps} warps per SM at a time")
    yield from _of_memory(work, timing, spec, sms)


def _of_slow_units(work: Work, costs: WorkCosts, sms: float) -> Iterator[Ceiling]:
    """Yields the ceilings of the units that take several cycles for a warp instruction."""
    for field, (unit, part) in SLOW_UNITS.items():
        number, timing = int(getattr(work, field)), costs.timing
        units = sms * (1 if costs.is_shared(unit) else timing.schedulers)
        cycles = number * costs.interval(unit) / TICKS / units if number else 0
        yield Ceiling(part, cycles * 1e-6 / timing.clock_mhz, f"{number:,} instructions")


def _of_memory(work: Work, timing: TimingSpec, spec: DeviceSpec, sms: float) -> Iterator[Ceiling]:
    """Yields the ceilings of L1 for local memory, of L2 and of DRAM. Caches that were not counted
    are taken to keep what fits into them: buffers that fit into L2 move to an SM at most as often
    as threads access them, but to L2 once."""
    cycle = 1e-6 / timing.clock_mhz
    is_in_l1 = work.local_per_sm is not None and work.local_per_sm <= work.l1_bytes
    in_l1, beyond = (work.local, 0) if is_in_l1 and spec.l1_local else (0, work.local)
    l1_cycles = in_l1 / L1_BYTES * timing.l1_wavefront_cycles / sms
    yield Ceiling("local memory in L1", l1_cycles * cycle, _size(in_l1))
    to_l2 = _to_l2(work, spec) + beyond
    rate = min(timing.l2_bytes_per_cycle or 1e30, timing.sm_bytes_per_cycle * sms or 1e30)
    size = work.loads_once
    hits = work.counted is None and size is not None and work.loaded > 2 * size
    yield Ceiling(
        "L2 cache",
        to_l2 / rate * cycle if rate < 1e30 else 0.0,
        f"{_size(to_l2)}{' if nothing hits L1' if hits else ''}",
        hits,
    )
    to_dram, is_upper = _to_dram(work, spec, beyond)
    seconds = to_dram / (timing.dram_gb_per_s * timing.dram_efficiency * 1e9)
    condition = " if nothing hits a cache" if is_upper else ""
    yield Ceiling("global memory", seconds, f"{_size(to_dram)}{condition}", is_upper)


def _to_l2(work: Work, spec: DeviceSpec) -> int:
    """Returns the bytes of global memory that SMs exchange with L2."""
    if work.counted is not None:
        return int(work.moved * work.counted[0])
    loaded = work.loaded
    if work.loads_once is not None and work.loads_once <= work.l1_bytes // 2:
        loaded = min(loaded, spec.sms * work.loads_once)
    return loaded + work.stored + work.updated


def _to_dram(work: Work, spec: DeviceSpec, local: int) -> tuple[int, bool]:
    """Returns the bytes that L2 exchanges with DRAM, and whether these are an upper bound."""
    if work.counted is not None:
        return int((work.moved + local) * work.counted[1]), False
    if work.loads_once is None or work.stores_once is None:
        most = work.moved + local
        return most, most > 0
    if work.local_per_sm is not None and work.local_per_sm * spec.sms <= spec.l2_bytes:
        local = 0
    stores = min(work.stored + work.updated, work.stores_once)
    return min(work.loaded, work.loads_once) + stores + local, work.may_hit_l2


def _size(count: int) -> str:
    """Returns a number of bytes in a unit of three digits."""
    size, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"
