"""The description of a device: its limits and sizes, and the source of each figure.

Facts only. What follows from them is for others: `devices.occupancy` says how many blocks fit and
which launches a device refuses, `rules` what a memory access costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from warploom.core.errors import Dim3


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a fact; one that is not `verified` was remembered and waits for a source."""

    text: str
    verified: bool


@dataclass(frozen=True, kw_only=True)
class DeviceSpec:
    """One device. Sizes are in bytes, registers have 32 bits, "sm" is a streaming multiprocessor.

    `sources` has an entry for every field that states a fact.
    """

    name: str
    """What users call it, such as "rtx-2080-ti"."""
    title: str
    """What the product is called."""
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
    """What registers are given out to: a "block" or a "warp"."""
    register_allocation_unit: int
    """A block's or a warp's registers come in multiples of so many."""
    double_unit_registers: tuple[int, ...]
    """Registers a thread for which that unit is twice as large."""
    warp_allocation_unit: int
    """Registers are given out as if to warps in multiples of so many: on 1.x of a block, later one
    to each part of an SM."""
    warp_check_unit: int
    """A launch must fit with its warps rounded up to a multiple of so many."""

    barriers_per_block: int
    barriers_per_sm: int
    """The barriers of all blocks of an SM together; 0 where they set no limit."""

    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    """What a block may have without asking for more."""
    shared_bytes_per_block_optin: int
    """What a block may have at most."""
    shared_allocation_unit: int
    shared_reserved_per_block: int
    """Shared memory of each block that the system keeps for itself."""
    shared_capacities: tuple[int, ...]
    """What an SM's shared memory can be set to."""
    shared_banks: int
    constant_bytes: int

    l1_bytes: int
    """The L1 cache of an SM; 0 where there is none."""
    l1_holds_shared: bool
    """Whether shared memory is cut out of it."""
    l1_global: str
    """Whether L1 caches global loads: "never", or a choice that is "off" or "on" by default."""
    l1_local: bool
    """Whether L1 caches local memory."""
    texture_cache_bytes: int
    """The cache for textures and read-only data; 0 where that is L1."""
    constant_cache_bytes: int

    global_rule: str
    shared_rule: str
    """The families of rules by which accesses are cut up; `cost.device_rules` knows them."""
    constant_rule: str

    sources: Mapping[str, Source] = field(default_factory=dict[str, Source], repr=False)

    @property
    def max_threads_per_sm(self) -> int:
        return self.max_warps_per_sm * self.warp_size

    @property
    def cc(self) -> str:
        """Return the compute capability as text, such as "7.5"."""
        return f"{self.compute_capability[0]}.{self.compute_capability[1]}"

    def with_warps_of(self, lanes: int) -> DeviceSpec:
        """Return the same device with warps of so many lanes, which holds as many threads as
        before."""
        held = self.max_threads_per_sm // lanes
        return replace(self, warp_size=lanes, max_warps_per_sm=held)
