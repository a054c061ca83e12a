"""Computes occupancy: the blocks of a kernel that an SM holds at once, what limits them, and what
would free more.

Sources of the rules: CUDA C Programming Guide 4.2, "Hardware Multithreading" (1.x and 2.x);
NVIDIA's cuda_occupancy.h, versions that knew 1.0 to 5.2 and 3.0 to 12.x. Where the older header
rounds the warps of a block to pairs on 1.x also for the limit of warps, the guide and NVIDIA's
calculator do so for registers alone, as is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warploom.devices.spec import DeviceSpec

RESOURCES = ("warps", "registers", "shared", "blocks", "barriers")
"""What can limit the blocks of an SM."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The resources that one block of a kernel takes: its threads, registers for each, bytes of
    shared memory (static and dynamic together) and named barriers."""

    threads: int
    registers: int = 32
    shared_bytes: int = 0
    barriers: int = 1


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The blocks of a kernel that an SM holds.

    `limits` has the most blocks that each resource allows, None where it is not needed. `limiters`
    are the resources that allow no more than `active_blocks`. `shared_carveout` is the shared
    memory that the SM must be set to, in bytes, the least that will do.
    """

    device: str
    demand: Demand
    active_blocks: int
    active_warps: int
    max_warps: int
    limits: Mapping[str, int | None]
    limiters: tuple[str, ...]
    shared_carveout: int

    @property
    def fraction(self) -> float:
        """Active warps over the most that an SM can hold."""
        return self.active_warps / self.max_warps


def occupancy_of(spec: DeviceSpec, demand: Demand) -> Occupancy:
    """Returns how many such blocks an SM of the device holds; 0 where not even one fits."""
    limits = {
        "warps": _warp_limit(spec, demand),
        "registers": _register_limit(spec, demand),
        "shared": _shared_limit(spec, demand),
        "blocks": spec.max_blocks_per_sm,
        "barriers": _barrier_limit(spec, demand),
    }
    blocks = min(limit for limit in limits.values() if limit is not None)
    needed = blocks * _shared_of_block(spec, demand)
    return Occupancy(
        device=spec.name,
        demand=demand,
        active_blocks=blocks,
        active_warps=blocks * warps_of(spec, demand.threads),
        max_warps=spec.max_warps_per_sm,
        limits=limits,
        limiters=tuple(name for name in RESOURCES if limits[name] == blocks),
        shared_carveout=next((c for c in spec.shared_capacities if c >= needed), 0),
    )


def blocks_beside(spec: DeviceSpec, demand: Demand, residents: Mapping[Demand, int]) -> int:
    """Returns how many such blocks an SM of the device holds beside `residents`: blocks of other
    kernels, so many of each demand."""

    def left(capacity: int, use: Callable[[DeviceSpec, Demand], int]) -> int:
        """Returns how many blocks find the part of a resource that each takes."""
        used = sum(count * use(spec, other) for other, count in residents.items())
        each = use(spec, demand)
        return max(0, capacity - used) // each if each else capacity

    return min(
        occupancy_of(spec, demand).active_blocks,
        left(spec.max_blocks_per_sm, lambda _, __: 1),
        left(spec.max_warps_per_sm, lambda spec, each: warps_of(spec, each.threads)),
        left(spec.registers_per_sm, registers_allocated),
        left(spec.shared_bytes_per_sm, _shared_of_block),
        left(spec.barriers_per_sm, lambda _, each: each.barriers) if spec.barriers_per_sm else 1024,
    )


def warps_of(spec: DeviceSpec, threads: int) -> int:
    """Returns the warps of a block."""
    return -(-threads // spec.warp_size)


def registers_allocated(spec: DeviceSpec, demand: Demand) -> int:
    """Returns the registers that a block is checked for: all its warps, in the units of the
    device."""
    unit = spec.register_allocation_unit
    if demand.registers in spec.double_unit_registers:
        unit *= 2
    warps = _up(warps_of(spec, demand.threads), spec.warp_check_unit)
    each = demand.registers * spec.warp_size
    if spec.register_allocation == "block":
        return _up(warps * each, unit)
    return warps * _up(each, unit)


def registers_of_warp(spec: DeviceSpec, demand: Demand) -> int:
    """Returns the registers that a warp of a block gets; on devices that give registers to whole
    blocks, its share of them."""
    return registers_allocated(spec, demand) // _up(
        warps_of(spec, demand.threads), spec.warp_check_unit
    )


def _warp_limit(spec: DeviceSpec, demand: Demand) -> int:
    if demand.threads > spec.max_threads_per_block:
        return 0
    return spec.max_warps_per_sm // warps_of(spec, demand.threads)


def _register_limit(spec: DeviceSpec, demand: Demand) -> int | None:
    """Blocks by registers: 0 where one block has too many, None where it needs none.

    From 2.0 on, each part of an SM gives registers to whole warps; a launch is checked as if all
    parts had as many of a block's warps (on 6.0, of two parts, as if it had four).
    """
    if demand.registers > spec.max_registers_per_thread:
        return 0
    block = registers_allocated(spec, demand)
    if block > spec.registers_per_block:
        return 0
    if block == 0:
        return None
    if spec.register_allocation == "block":
        return spec.registers_per_sm // block
    parts = spec.warp_allocation_unit
    warps = spec.registers_per_sm // parts // registers_of_warp(spec, demand) * parts
    return warps // warps_of(spec, demand.threads)


def _shared_limit(spec: DeviceSpec, demand: Demand) -> int | None:
    if demand.shared_bytes > spec.shared_bytes_per_block_optin:
        return 0
    block = _shared_of_block(spec, demand)
    return spec.shared_bytes_per_sm // block if block else None


def _barrier_limit(spec: DeviceSpec, demand: Demand) -> int | None:
    if demand.barriers > spec.barriers_per_block:
        return 0
    needed = spec.barriers_per_sm and demand.barriers
    return spec.barriers_per_sm // demand.barriers if needed else None


def _shared_of_block(spec: DeviceSpec, demand: Demand) -> int:
    """Shared memory that a block takes up, with what the system keeps in it."""
    whole = demand.shared_bytes + spec.shared_reserved_per_block
    return _up(whole, spec.shared_allocation_unit)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
