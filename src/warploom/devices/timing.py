"""Describes the time of a device: the parameters of its schedulers, units, latencies and
bandwidths.

This module has facts only, each with its source; "estimate" marks a fact without one. `timing`
models what follows from them. The facts are in `data/timing.json`, by compute capability and by
product.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from warploom.devices.spec import DeviceSpec, FactSource


@dataclass(frozen=True, kw_only=True)
class TimingSpec:
    """Holds the parameters of one device's modelled time. `latency_*` are cycles from the issue of
    an instruction to that of one which needs its result; `lanes_*` are results per cycle of a whole
    SM; `*_cycles` are cycles of the SM's clock.

    `sources` has an entry for every field that states a fact.
    """

    schedulers: int
    """Schedulers of an SM; warp slot s belongs to scheduler s modulo their number."""
    issue_cycles: int
    """Cycles from one issue of a scheduler to the next."""
    dispatch_width: int
    """Instructions of one warp that a scheduler can issue together."""
    policy: str
    """The default policy that selects among ready warps (`timing.engine.schedulers`)."""
    active_warps: int
    """Warps of a scheduler from which the policy "two-level" selects."""

    lanes_fp32: float
    lanes_int: float
    lanes_imul: float
    lanes_shift: float
    lanes_fp64: float
    fp64_shared: bool
    """True if the sub-partitions share one unit for double precision."""
    lanes_fp16: float
    """Results of instructions on two halves."""
    lanes_special: float
    lanes_bits: float
    """Results of instructions that count and reverse bits."""
    lanes_convert: float
    lanes_shuffle: float
    lanes_barrier: float
    lanes_texture: float
    lanes_lsu: float
    lanes_tensor_memory: float
    """Words that an SM moves between registers and tensor memory in a cycle; 0 without it."""
    tensor_fma: float
    """Multiply-adds of 16-bit floats in a cycle of an SM's tensor cores; 0 without them."""

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
    """Of a load from tensor memory, beyond the time in which its words are moved."""
    latency_special_register: int
    latency_shared: int
    latency_l1: int
    """Of a load that hits L1; 0 without an L1."""
    latency_l2: int
    """Of a load that misses L1 and hits L2; 0 without an L2."""
    latency_dram: int
    """Of a load that misses all caches."""
    latency_constant: int
    latency_texture: int
    latency_atomic: int
    """Of an atomic on global memory, which L2 executes."""
    latency_shared_atomic: int
    latency_barrier: int
    """From the arrival of a block's last warp to its next issue."""
    latency_fence_block: int
    latency_fence_device: int
    latency_fence_system: int
    latency_branch: int
    """From a branch to the next issue of the warp; in PTX, from a taken one."""
    latency_convergence: int
    """From the instruction of machine code at which lanes converge (BSYNC) to the next issue of
    the warp."""
    latency_exit: int
    """From an EXIT of machine code that ends no lane or not all of a warp, to its next issue."""
    latency_fetch: int
    """Of instructions that miss the first instruction cache."""

    imul_double: int
    """How often an integer product of 64 bits (IMAD.HI, IMAD.WIDE) occupies the multiplier as long
    as one of 32 bits."""
    constant_cycles: int
    """Cycles of the load/store unit for each different address among the lanes of a load from
    constant memory."""
    shared_wavefront_cycles: int
    l1_request_cycles: int
    """Cycles of L1 that a request takes at least."""
    l1_wavefront_cycles: int
    l1_lines: int
    """Lines of a load that L1 looks up in a cycle, where its banks then serve the load as those of
    shared memory do; 0 where L1 serves line by line."""
    l1_word_cycles: int
    """Cycles of L1 for each four bytes of a load's lanes, at least."""
    fill_cycles: float
    """Cycles of L1 that the fill of a sector takes; special functions, conversions and bit counts
    return no results for as long. 0 where fills have a path of their own."""
    lsu_queue: int
    """Memory instructions of a scheduler that wait for the load/store unit at most."""
    mshrs: int
    """Requests of an SM in flight beyond L1 at most (miss status holding registers)."""
    l2_bytes_per_cycle: float
    l2_slices: int
    l2_part_cycles: float
    """Cycles of a slice for a sector of which a store writes only a part, beyond those of a whole
    one."""
    l2_atomic_cycles: float
    """Cycles of a slice for a sector that an atomic updates, beyond those of one that is loaded."""
    l2_coalescing_sms: int
    """Neighboring SMs whose loads of the same sectors, while one is pending, are one request to L2;
    0 if each SM makes its own."""
    translation_sms: int
    """SMs that share a TLB, which translates addresses of requests to L2 and is empty at the begin
    of a launch; 0 if translation takes no time."""
    latency_translation: int
    """Of an address whose page is not in the TLB, beyond that of the request."""
    translation_cycles: float
    """Cycles between the begins of two translations, of which the device makes one at a time; 0: no
    limit."""
    sm_bytes_per_cycle: float
    """Bytes that one SM receives from beyond L1 in a cycle."""
    request_cycles: float
    """Cycles in which an SM sends a request to L2: a load of a line, or a sector of a store."""
    latency_tma: int
    """Of a copy by the Tensor Memory Accelerator, beyond that of its last line; 0 without that
    unit."""
    tma_line_cycles: float
    """Cycles of the Tensor Memory Accelerator for a line of 128 bytes."""
    latency_cluster: int
    """Of a message to another SM of a cluster; 0 without clusters."""
    atomic_cycles: float
    """Cycles of an L2 slice for each further lane at the same address."""
    atomic_sector_cycles: float
    """Cycles of an SM for each sector of an atomic on global memory; 0: as for a load."""
    blocks_in_turn: bool
    """Whether each block of an SM begins at the scheduler after the one at which the block before
    began, where its warps are a multiple of the schedulers; else at the same one."""
    block_launch_cycles: int
    """From the launch of a block into a free slot of an SM to its first issue."""
    block_cycles: float
    """Cycles of the device for each launch of a block in the place of one that has ended; 0: no
    limit. The first blocks, as many as the SMs hold, are launched at once."""
    fetch_instructions: int
    """Instructions that the first instruction cache of a scheduler holds."""

    clock_mhz: float
    """The clock of an SM, in which cycles are counted."""
    dram_gb_per_s: float
    """The peak bandwidth, in 10^9 bytes a second."""
    dram_efficiency: float
    """The share of the peak bandwidth that a long stream of only reads, or only writes,
    achieves."""
    dram_banks: int
    """Banks that share the bandwidth: a power of two."""
    dram_turn_cycles: int
    """Cycles of a bank between reading and writing."""

    launch_us: float
    """Microseconds of a launch in which no SM has a block: from its begin to that of its first
    block, and from the end of the last one to its own."""
    resident_grids: int
    """Kernels of several streams that the device runs at a time at most."""
    copy_engines: int
    """Copies between host and device that run at a time beside kernels: with 2 one in each
    direction; with 0 none, as kernels wait for copies."""
    host_gb_per_s: float
    """The bandwidth of copies of page-locked memory in one direction, in 10^9 bytes a second: over
    PCIe or, where the memory is the host's own, within that."""
    latency_copy_us: float
    """Microseconds of a copy between host and device beyond those of its bytes."""

    sources: Mapping[str, FactSource] = field(default_factory=dict[str, FactSource], repr=False)

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Returns the bytes that a long stream transfers in a cycle."""
        return self.dram_gb_per_s * 1000 / self.clock_mhz * self.dram_efficiency


def find_timing(spec: DeviceSpec) -> TimingSpec:
    """Returns the parameters of a device of the catalog."""
    tables = _tables()
    sources = {
        tag: FactSource(text, verified) for tag, (text, verified) in tables["sources"].items()
    }
    facts = {**_architecture(spec.cc), **tables["products"][spec.name]}
    return TimingSpec(
        sources={name: sources[tag] for name, (_, tag) in facts.items()},
        **{name: value for name, (value, _) in facts.items()},
    )


def _architecture(cc: str) -> dict[str, Any]:
    """Returns the facts of a compute capability; a fact that its entry does not state is that of
    the entry named by "like"."""
    stated = dict(_tables()["architectures"][cc])
    like = stated.pop("like", None)
    return stated if like is None else {**_architecture(like), **stated}


@cache
def _tables() -> dict[str, Any]:
    """Returns the contents of `data/timing.json`."""
    path = files("warploom.devices").joinpath("data", "timing.json")
    return json.loads(path.read_text("utf-8"))
