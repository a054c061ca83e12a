"""Describes a device: its limits and sizes, and the source of each figure.

This module has facts only. `devices.occupancy` computes from them how many blocks fit and which
launches a device refuses, `cost` what a memory access costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from warploom.core.errors import Dim3


@dataclass(frozen=True, slots=True)
class FactSource:
    """Holds the source of a fact; a fact that is not `verified` was written from memory and still
    needs one."""

    text: str
    verified: bool


@dataclass(frozen=True, kw_only=True)
class DeviceSpec:
    """Holds the specification of one device. Sizes are in bytes, registers have 32 bits, "sm" is a
    streaming multiprocessor.

    `sources` has an entry for every field that states a fact.
    """

    name: str
    """The name by which users select it, such as "rtx-2080-ti"."""
    title: str
    """The name of the product."""
    compute_capability: tuple[int, int]
    sms: int
    l2_bytes: int
    memory_bytes: int
    """Its global memory, as the product is sold."""

    warp_size: int
    max_threads_per_block: int
    max_block_dims: Dim3
    """Threads of a block along x, y and z."""
    max_grid_dims: Dim3
    """Blocks of a grid along x, y and z."""

    max_warps_per_sm: int
    max_blocks_per_sm: int
    sub_partitions: int
    """Parts of an SM, each with its own scheduler and registers."""

    registers_per_sm: int
    registers_per_block: int
    max_registers_per_thread: int
    register_allocation: str
    """The unit to which registers are allocated: a "block" or a "warp"."""
    register_allocation_unit: int
    """The registers of a block or warp are rounded up to a multiple of this."""
    double_unit_registers: tuple[int, ...]
    """Registers per thread for which that unit is twice as large."""
    warp_allocation_unit: int
    """Registers are allocated for a multiple of this number of warps: on 1.x of a block, later of
    each sub-partition of an SM."""
    warp_check_unit: int
    """A launch must fit with its warps rounded up to a multiple of this."""

    barriers_per_block: int
    barriers_per_sm: int
    """The barriers of all blocks of an SM together; 0 for no limit."""

    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    """The shared memory of a block without opting in to more."""
    shared_bytes_per_block_optin: int
    """The shared memory that a block can have at most."""
    shared_allocation_unit: int
    shared_reserved_per_block: int
    """Shared memory of each block that the system reserves."""
    shared_capacities: tuple[int, ...]
    """The sizes to which an SM's shared memory can be set."""
    shared_banks: int
    constant_bytes: int

    l1_bytes: int
    """The L1 cache of an SM; 0 without one."""
    l1_holds_shared: bool
    """True if shared memory is carved out of L1."""
    l1_global: str
    """If L1 caches global loads: "never", or by a choice whose default is "off" or "on"."""
    l1_local: bool
    """True if L1 caches local memory."""
    texture_cache_bytes: int
    """The cache for textures and read-only data; 0 where that is L1."""
    constant_cache_bytes: int

    global_rule: str
    shared_rule: str
    """The families of rules that split accesses into transactions (`cost.device_rules`)."""
    constant_rule: str

    sources: Mapping[str, FactSource] = field(default_factory=dict[str, FactSource], repr=False)

    @property
    def max_threads_per_sm(self) -> int:
        return self.max_warps_per_sm * self.warp_size

    @property
    def cc(self) -> str:
        """Returns the compute capability as text, such as "7.5"."""
        return f"{self.compute_capability[0]}.{self.compute_capability[1]}"

    def with_warps_of(self, lanes: int) -> DeviceSpec:
        """Returns the same device with warps of `lanes` lanes, which holds as many threads as
        before."""
        held = self.max_threads_per_sm // lanes
        return replace(self, warp_size=lanes, max_warps_per_sm=held)
