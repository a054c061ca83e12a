"""The least time that a launch takes of each part of the GPU, by its counters and the device's
peaks: what is used longest bounds it. Nothing waits here; `warploom time` models that."""

from __future__ import annotations

from dataclasses import replace

from warploom.devices.spec import DeviceSpec
from warploom.observe.counters import Counters
from warploom.report.peaks import Ceiling, ceilings_of, peaks
from warploom.report.sections import Report
from warploom.report.work import work_of


def ceilings(report: Report) -> tuple[Ceiling, ...]:
    """Returns the ceilings of a launch, the longest first; none for a device whose peaks are not
    known."""
    return () if report.work is None else ceilings_of(report.work, report.facts.spec)


def least_seconds(
    counters: Counters, spec: DeviceSpec, blocks: int, buffers: int | None = None
) -> float | None:
    """Returns the least time that a launch of some blocks takes at the device's peaks, or None if
    these are not known. With `buffers`, the bytes of the buffers that the kernel gets, each of them
    is taken to move between L2 and DRAM once; without, no access hits a cache. Atomics on one
    address, which only a report finds, do not count."""
    timing = peaks(spec)
    if timing is None:
        return None
    work = work_of(counters, spec, timing, blocks)
    if buffers:
        work = replace(work, loads_once=buffers, stores_once=buffers)
    found = ceilings_of(work, spec)
    least = [one for one in found if not (buffers and one.is_upper)]
    return max((one.seconds for one in least), default=0.0)
