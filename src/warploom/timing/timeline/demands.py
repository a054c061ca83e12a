"""Derives what works need (`Demand`) and what limits their overlap from the figures of a device and
the modelled time of launches."""

from __future__ import annotations

from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec
from warploom.timing.result import Timing
from warploom.timing.timeline.schedule import DeviceLimits
from warploom.timing.timeline.work import Demand, Engine

PARTS = 32
"""Parts of a kernel's time for which the slots that it occupies are computed."""

HYPER_Q = (3, 5)
"""The first compute capability whose streams feed queues of their own (Kepler GK110 whitepaper)."""


def limits_of(spec: DeviceSpec, timing: TimingSpec) -> DeviceLimits:
    """Returns what limits the overlap of works on a device."""
    one_queue = spec.compute_capability < HYPER_Q
    return DeviceLimits(timing.resident_grids, timing.copy_engines, one_queue)


def launch_demand(timing: Timing) -> Demand:
    """Returns what a launch needs, by its modelled time alone. The time in which no SM has a block
    is spread over the whole, as its parts that run are shown as shares of that."""
    active = timing.cycles / max(1, timing.elapsed_cycles)
    uses = {roof.name: min(1.0, roof.used) * active for roof in timing.roofs}
    return Demand(timing.seconds, timing.slots_used(PARTS), timing.block_share, uses)


def copy_demand(engine: Engine, size: int, timing: TimingSpec) -> Demand:
    """Returns what a copy or a fill of `size` bytes needs. One on the device reads and writes DRAM,
    a fill writes it; one to or from the host goes over the link, as from page-locked memory."""
    if engine.is_in_dram:
        bytes_per_second = timing.dram_gb_per_s * 1e9 * timing.dram_efficiency
        moved = size if engine is Engine.FILL else 2 * size
        return Demand(moved / bytes_per_second, uses={"DRAM": 1.0})
    return Demand(timing.latency_copy_us * 1e-6 + size / (timing.host_gb_per_s * 1e9))
