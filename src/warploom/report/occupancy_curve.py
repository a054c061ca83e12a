"""Occupancy over a range of block sizes, registers or shared memory, as points to be drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.devices.occupancy import Demand, occupancy_of
from warploom.devices.spec import DeviceSpec

SHARED_STEPS = 128


@dataclass(frozen=True, slots=True)
class Curve:
    """Active warps (`warps`) at each of `values` of one quantity; `now` is the kernel's own."""

    title: str
    unit: str
    values: tuple[int, ...]
    warps: tuple[int, ...]
    most: int
    now: int


def sweep(spec: DeviceSpec, demand: Demand) -> tuple[Curve, ...]:
    """Returns the active warps over the block size, the registers and the shared memory of a
    demand, each varied alone."""
    warp, most_shared = spec.warp_size, spec.shared_bytes_per_block_optin
    registers = range(1, spec.max_registers_per_thread + 1)
    sizes = range(warp, spec.max_threads_per_block + 1, warp)
    shared = range(0, most_shared + 1, max(1, most_shared // SHARED_STEPS))
    return (
        _curve(spec, demand, "threads", sizes, "Block Size", "threads"),
        _curve(spec, demand, "registers", registers, "Registers Per Thread", "registers"),
        _curve(spec, demand, "shared_bytes", shared, "Shared Memory Per Block", "bytes"),
    )


def _curve(
    spec: DeviceSpec, demand: Demand, field: str, values: range, title: str, unit: str
) -> Curve:
    found = [occupancy_of(spec, replace(demand, **{field: value})) for value in values]
    warps = tuple(occupancy.active_warps for occupancy in found)
    return Curve(title, unit, tuple(values), warps, spec.max_warps_per_sm, getattr(demand, field))
