"""Computes what the buffers of a launch of compiled code hold before it runs: the values of the
environment, and the arrays that do not begin as zeros.

    lay_out([8, 200, 16])   ->   [0, 128, 384], 512
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import CountLayout, Slot, local_stride
from warploom.abi.range_cache import FIRST_SET, LAYOUT_SHIFT, used_at
from warploom.compilation.jit import CompiledKernel
from warploom.cost.fields import CostRecord
from warploom.helpers.range_cache_filling import find_or_insert_set
from warploom.isa.special import LAUNCH_WIDE
from warploom.machine.access_costs import common_cost
from warploom.machine.launch import Launch, all_shared_bytes, launch_values, shared_stride
from warploom.machine.warp_layouts import thread_indices, warp_layouts
from warploom.shapes.warp_layout import RUNS, warp_layout_of
from warploom.simt.lane_counts import ALL_LANES
from warploom.simt.placement import sm_of
from warploom.simt.schedule_layout import Plan, WarpState

Words = npt.NDArray[np.int64]

NO_LIMIT = 1 << 62

ALIGNMENT = 128
"""The alignment of every array, in bytes."""


def lay_out(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Returns the offsets of arrays of these sizes, in bytes, one after the other at multiples of
    ALIGNMENT, and the end of the last, rounded up."""
    offsets: list[int] = []
    end = 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, end


CURRENT_BLOCK_SLOTS = {
    Slot.SHARED_BASE: Slot.SHARED_AT,
    Slot.LOCAL_BASE: Slot.LOCAL_AT,
    Slot.CONTEXTS_BASE: Slot.CONTEXTS_AT,
    Slot.STATES_BASE: Slot.STATES_AT,
}
"""The environment slot with the address of the current block's array, by the slot with that of the
first block slot; initially they are equal."""


def initial_arrays(
    kernel: CompiledKernel, launch: Launch, plan: Plan
) -> dict[Slot, npt.NDArray[Any]]:
    """Returns, by the environment slot of their address, the arrays that do not begin as zeros
    (schedule layout, special registers, thread indices), and those that each launch fills in
    (parameters, module globals)."""
    specials, sms = launch_values(kernel.program, launch), list[int]()
    if kernel.program.shows_multiprocessor:
        # As for a launch that runs alone; others replace them (`WorkerLaunch.write_slots`).
        size, count = launch.cluster_blocks, launch.schedule.sms
        sms = [sm_of(slot, size, count) for slot in range(plan.slots)]
    return {
        Slot.PLAN_AT: plan.words,
        Slot.SPECIALS_AT: np.array([specials[name] for name in LAUNCH_WIDE] + sms, np.uint32),
        Slot.TIDS_AT: _thread_indices(launch.block),
        Slot.PARAMETERS_AT: np.zeros(len(launch.parameters), np.uint8),
        Slot.GLOBALS_AT: np.array(launch.globals, np.uint64),
    }


def bytes_per_slot_of(kernel: CompiledKernel, launch: Launch) -> dict[Slot, int]:
    """Returns, by the environment slot of its address, the size in bytes of each array that a
    resident block has (states, contexts, shared and local memory); all begin as zeros."""
    warps = launch.warps_per_block
    return {
        Slot.STATES_BASE: 8 * warps * WarpState.WORDS,
        Slot.CONTEXTS_BASE: kernel.context_bytes * warps,
        Slot.SHARED_BASE: shared_stride(kernel.program, launch),
        Slot.LOCAL_BASE: local_stride(kernel.program.local_bytes) * warps,
    }


def environment_values(kernel: CompiledKernel, launch: Launch) -> Mapping[Slot, int]:
    """Returns the initial values of environment slots that hold no address: the instruction budget
    (NO_LIMIT without `max_instructions`); -1 as the current block; the bytes of a block's shared
    memory, and the distance between the shared memories of two blocks; the bytes of a block's local
    memory; threads and warps of a block; block and grid dimensions."""
    warps = launch.warps_per_block
    return {
        Slot.BUDGET: NO_LIMIT if launch.max_instructions is None else launch.max_instructions,
        Slot.BLOCK: -1,
        Slot.SHARED_STRIDE: shared_stride(kernel.program, launch),
        Slot.SHARED_BYTES: all_shared_bytes(kernel.program, launch),
        Slot.THREADS: launch.threads_per_block,
        Slot.WARPS: warps,
        Slot.LOCAL_BYTES: local_stride(kernel.program.local_bytes) * warps,
        **dict(zip((Slot.NTID_X, Slot.NTID_Y, Slot.NTID_Z), launch.block, strict=True)),
        **dict(zip((Slot.NCTAID_X, Slot.NCTAID_Y, Slot.NCTAID_Z), launch.grid, strict=True)),
    }


def common_costs(layout: CountLayout) -> Words:
    """Returns the transactions of the common access (`common_cost`) of each access record, its
    initial `example_cost`: only a costlier access is stored as the record's example."""
    costs = (common_cost(layout.program, record, layout.rules) for record in layout.records)
    return np.fromiter(
        (cost[CostRecord.transactions] for cost in costs), np.int64, len(layout.records)
    )


def full_lane_sets_of(block: tuple[int, int, int], sets: int) -> Words:
    """Returns the words with which range caches begin: `sets` keys (mask and layout), as many
    numbers of these, and the number of entries in use (`abi.range_cache`). Keys are those of full
    warps in the first warp layouts of the block, at most half of `sets`, each at its hashed
    position; of layout 0 alone if a warp is one run of lanes. So masks at the edge of a grid, which
    may come first, cannot fill the table."""
    has_runs = RUNS[warp_layout_of(block)] > 1
    layouts = min(1 + max(warp_layouts(block)), sets // 2) if has_runs else 1
    table = np.zeros(used_at(sets) + 1, np.int64)
    table[0], table[used_at(sets)] = ALL_LANES, FIRST_SET
    for layout in range(1, layouts):
        find_or_insert_set(table, ALL_LANES | layout << LAYOUT_SHIFT, sets)
    return table


def _thread_indices(block: tuple[int, int, int]) -> npt.NDArray[np.uint32]:
    """Returns the thread indices of a block (x of all warps' lanes, then y, then z), followed by
    the layout number of each warp (`Slot.TIDS_AT`)."""
    layouts = np.array(warp_layouts(block), np.uint32)
    return np.concatenate((thread_indices(block).reshape(-1), layouts))
