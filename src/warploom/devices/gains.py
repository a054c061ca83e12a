"""Finds the smallest changes of a block by which an SM holds more of its warps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from warploom.devices.occupancy import Demand, Occupancy, occupancy_of
from warploom.devices.spec import DeviceSpec


@dataclass(frozen=True, slots=True)
class Gain:
    """One change and what it brings: `resource` from `before` to `after` gives `occupancy`."""

    resource: str
    before: int
    after: int
    occupancy: Occupancy


def gains(spec: DeviceSpec, demand: Demand) -> tuple[Gain, ...]:
    """For registers, shared memory and block size: the nearest value that gains active warps.

    Of block sizes, the nearest in whole warps that holds most. A way that gains nothing is left
    out.
    """
    now = occupancy_of(spec, demand)
    if now.active_warps == now.max_warps:
        return ()
    found = (
        _first(spec, now, "registers", range(demand.registers - 1, 0, -1)),
        _first(spec, now, "shared_bytes", _shared_steps(spec, demand)),
        _best_block(spec, now),
    )
    return tuple(gain for gain in found if gain is not None)


def _shared_steps(spec: DeviceSpec, demand: Demand) -> range:
    """Fewer bytes, in the units in which they are given out, down to none."""
    unit = spec.shared_allocation_unit
    first = (demand.shared_bytes + spec.shared_reserved_per_block - 1) // unit * unit
    return range(first - spec.shared_reserved_per_block, -1, -unit)


def _first(spec: DeviceSpec, now: Occupancy, resource: str, values: Iterable[int]) -> Gain | None:
    """Returns the first of the values that holds more warps."""
    before = int(getattr(now.demand, resource))
    for value in values:
        then = occupancy_of(spec, replace(now.demand, **{resource: value}))
        if then.active_warps > now.active_warps:
            return Gain(resource, before, value, then)
    return None


def _best_block(spec: DeviceSpec, now: Occupancy) -> Gain | None:
    sizes = range(spec.warp_size, spec.max_threads_per_block + 1, spec.warp_size)
    tried = [occupancy_of(spec, replace(now.demand, threads=size)) for size in sizes]
    best = max(tried, key=lambda o: (o.active_warps, -abs(o.demand.threads - now.demand.threads)))
    if best.active_warps <= now.active_warps:
        return None
    return Gain("threads", now.demand.threads, best.demand.threads, best)
