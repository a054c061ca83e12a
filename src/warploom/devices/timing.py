"""The parameters of a device's modelled time: its schedulers, units, latencies and bandwidths.

Facts only, and each with its source; "estimate" says that there is none. What follows from them is
for `timing`. The facts are in `data/timing.json`, by compute capability and by product.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from warploom.devices.spec import DeviceSpec, Source


@dataclass(frozen=True, kw_only=True)
class TimingSpec:
    """The time of one device. Latencies are in cycles from the issue of an instruction to that of
    one which needs its result; `lanes_*` are results of a cycle of a whole SM.

    `sources` has an entry for every field that states a fact.
    """

    schedulers: int
    """Schedulers of an SM; warp slot s belongs to scheduler s modulo their number."""
    issue_cycles: int
    """Cycles from one issue of a scheduler to the next."""
    dispatch_width: int
    """Instructions of one warp that a scheduler can issue together."""
    policy: str
    """Which ready warp goes first, where nobody chooses (`timing.engine.schedulers`)."""
    active_warps: int
    """Warps of a scheduler that the policy "two-level" chooses from."""

    lanes_fp32: float
    lanes_int: float
    lanes_imul: float
    lanes_shift: float
    lanes_fp64: float
    fp64_shared: bool
    """Whether the sub-partitions share one unit for double precision."""
    lanes_fp16: float
    """Of instructions on two halves."""
    lanes_special: float
    lanes_bits: float
    """Counting and reversing bits."""
    lanes_convert: float
    lanes_shuffle: float
    lanes_barrier: float
    lanes_texture: float
    lanes_lsu: float
    lanes_tensor_memory: float
    """Words that an SM moves between registers and tensor memory in a cycle; 0 without it."""
    tensor_fma: float
    """Multiply-adds of 16-bit floats in a cycle of an SM's tensor cores; 0 where it has none."""

    latency_fp32: int
    latency_int: int
    latency_imul: int
    latency_shift: int
    latency_fp64: int
    latency_fp16: int
    latency_special: int
    latency_bits: int
    latency_convert: int
    latency_predicate: int
    """Of a comparison that writes a predicate."""
    latency_shuffle: int
    latency_tensor: int
    latency_tensor_memory: int
    """Of a load of tensor memory, beyond the time in which its words are moved."""
    latency_special_register: int
    latency_shared: int
    latency_l1: int
    """Of a load that hits L1; 0 where there is none."""
    latency_l2: int
    """Of a load that misses L1 and hits L2; 0 where there is none."""
    latency_dram: int
    """Of a load that misses all caches."""
    latency_constant: int
    latency_texture: int
    latency_atomic: int
    """Of an atomic on global memory, which L2 carries out."""
    latency_shared_atomic: int
    latency_barrier: int
    """From the arrival of a block's last warp to its next issue."""
    latency_fence_block: int
    latency_fence_device: int
    latency_fence_system: int
    latency_branch: int
    """From a branch that is taken to the next issue of the warp."""
    latency_fetch: int
    """Of instructions that the first instruction cache has not."""

    constant_cycles: int
    """What each address that lanes of a load from constant memory differ in takes of the load/store
    unit."""
    shared_wavefront_cycles: int
    l1_request_cycles: int
    """The least that a request takes of L1."""
    l1_wavefront_cycles: int
    l1_lines: int
    """Lines of a load that L1 looks up in a cycle, where its banks then serve as those of shared
    memory do; 0 where it serves line by line."""
    l1_word_cycles: int
    """The least that each four bytes of a load's lanes take of L1."""
    fill_cycles: float
    """Of L1's time that a sector takes which it gets; for as long special functions, conversions
    and bit counts return no results. 0 where fills have a way of their own."""
    lsu_queue: int
    """Memory instructions of a scheduler that wait for the load/store unit at most."""
    mshrs: int
    """Requests of an SM that are on their way beyond L1 at most."""
    l2_bytes_per_cycle: float
    l2_slices: int
    l2_part_cycles: float
    """A slice's cycles for a sector of which a store writes a part, beyond those of a whole one."""
    sm_bytes_per_cycle: float
    """What one SM gets from beyond L1."""
    latency_tma: int
    """Of a copy by the Tensor Memory Accelerator, beyond that of its last line; 0 without one."""
    tma_line_cycles: float
    """Of that unit, for a line of 128 bytes."""
    latency_cluster: int
    """Of a message to another SM of a cluster; 0 without clusters."""
    atomic_cycles: int
    """An L2 slice's cycles for one more lane on the same address."""
    block_launch_cycles: int
    """From a free place in an SM to the first issue of the block that gets it."""
    fetch_instructions: int
    """Instructions that the first instruction cache of a scheduler holds."""

    clock_mhz: float
    """Of an SM; what cycles are counted in."""
    dram_gb_per_s: float
    """The peak, in 10^9 bytes a second."""
    dram_efficiency: float
    """What a long stream of reads alone, or of writes, reaches of the peak."""
    dram_banks: int
    """Banks that share the bandwidth: a power of two."""
    dram_turn_cycles: int
    """A bank's cycles from reading to writing or back."""

    sources: Mapping[str, Source] = field(default_factory=dict[str, Source], repr=False)

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Returns what a long copy moves in a cycle."""
        return self.dram_gb_per_s * 1000 / self.clock_mhz * self.dram_efficiency


def find_timing(spec: DeviceSpec) -> TimingSpec:
    """Return the time of a device of the catalog."""
    tables = _tables()
    sources = {tag: Source(text, verified) for tag, (text, verified) in tables["sources"].items()}
    facts = {**_architecture(spec.cc), **tables["products"][spec.name]}
    return TimingSpec(
        sources={name: sources[tag] for name, (_, tag) in facts.items()},
        **{name: value for name, (value, _) in facts.items()},
    )


def _architecture(cc: str) -> dict[str, Any]:
    """Return the facts of a compute capability; those that it does not state are those of
    another."""
    stated = dict(_tables()["architectures"][cc])
    like = stated.pop("like", None)
    return stated if like is None else {**_architecture(like), **stated}


@cache
def _tables() -> dict[str, Any]:
    path = files("warploom.devices").joinpath("data", "timing.json")
    return json.loads(path.read_text("utf-8"))
