"""Lays out the buffers of a launch of compiled code, once for a kernel and its configuration.

All buffers are in one block of memory (the arena), the environment first. The nonzero start of the
arena is kept as bytes, so that a launch begins with one copy; the counts and access records,
megabytes for a long kernel, are zeros but for one column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import ROW_WIDTH, CountLayout, Slot, local_stride
from warploom.abi.range_cache import LAYOUT_SHIFT
from warploom.asynchronous.late_copies.entries import LIST_WORDS
from warploom.compilation.jit import CompiledKernel
from warploom.cost.fields import EXAMPLE_COST, TRANSACTIONS
from warploom.helpers.range_cache_filling import find_or_insert_set
from warploom.isa.kinds import Needs
from warploom.isa.special import LAUNCH_WIDE
from warploom.machine.compiled.access_costs import common_cost
from warploom.machine.compiled.pace import Pace
from warploom.machine.launch import Launch, all_shared_bytes, launch_values, shared_stride
from warploom.machine.warp_layouts import thread_indices, warp_layouts
from warploom.program.requests.tensor_memory import queue_words
from warploom.program.services import service_of
from warploom.shapes.operand_shapes import RUNS, warp_layout_of
from warploom.simt.lane_counts import ALL_LANES
from warploom.simt.schedule_layout import Plan, WarpState

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NO_LIMIT = 1 << 62

ALIGNMENT = 128
"""The alignment of every array, in bytes."""


REUSED_BYTES = 1 << 27
"""Buffers of up to this size are kept for the next launch: clearing the part that was used is
cheaper than new pages from the system."""

REUSED_COUNT_BYTES = 1 << 20
"""The same limit for the counts alone, all of which are cleared."""


@dataclass(frozen=True)
class LaunchTemplate:
    """The initial state of every launch of a kernel in one configuration, and the layout of its
    buffers.

    - `slots`: the number of blocks that are resident at once.
    - `starts`: the offset in the arena, in bytes, of the array whose address a slot of the
      environment holds; `address_slots`: these slots, sorted. `counts_at` and `rows_at`: the
      offsets of counts and access records, which have no slot.
    - `start`: the first bytes of the arena, with offsets in place of addresses; the arena has zeros
      from there up to `size`, but for `costs`, one in each access record (see `_common_costs`).
    - `bytes_per_slot`: the bytes of each array that every resident block has, by environment slot.
    - `calls_host`: the kernel calls printf, malloc, assert or free. `launched_warps`: the number of
      warps. `pace`: how many instructions a launch runs per call. `full_lane_sets`: the lane sets
      that the range caches start with.
    """

    kernel: CompiledKernel
    slots: int
    starts: Mapping[Slot, int]
    counts_at: int
    rows_at: int
    start: Bytes
    costs: Words
    size: int
    address_slots: npt.NDArray[np.intp]
    bytes_per_slot: Mapping[Slot, int]
    calls_host: bool
    launched_warps: int
    full_lane_sets: Words
    pace: Pace = field(default_factory=Pace)
    _free: list[LaunchBuffers] = field(default_factory=list["LaunchBuffers"])

    @classmethod
    def of(cls, kernel: CompiledKernel, launch: Launch) -> LaunchTemplate:
        """Returns the template for launches of a kernel in the configuration of `launch`, whatever
        their arguments: lays out the arena, and builds its initial contents. A kernel that never
        suspends runs in one slot. Queues of late copies are only there if the kernel has such
        copies and an order policy may delay them."""
        plan = launch.schedule.plan(launch, kernel.program)
        plan.table_stride = kernel.context_bytes // 8
        # Code that never suspends runs its blocks one after the other in a single slot.
        slots = plan.slots if kernel.suspends else 1
        environment = np.zeros(len(Slot), np.int64)
        initial = _initial_arrays(kernel, launch, plan)
        initial[Slot.SLOTS_AT] = np.full(slots, -1, np.int64)  # no block is in any slot
        bytes_per_slot = _bytes_per_slot(kernel, launch)
        # Two words of cached bounds (16 bytes) for each access record.
        zeros = {Slot.CACHE_AT: 16 * max(1, len(kernel.layout.rows))}
        if launch.schedule.shuffles and Needs.COMPLETION_QUEUE in kernel.program.needs:
            zeros[Slot.QUEUE_AT] = 8 * queue_words(kernel.program.has_tensor_memory)
            zeros[Slot.HELD_AT] = 8 * LIST_WORDS
        zeros |= {base: slots * size for base, size in bytes_per_slot.items()}
        contents = (environment, *initial.values())
        count_bytes = (8 * kernel.layout.size, 8 * kernel.layout.row_words)
        sizes = (*(array.nbytes for array in contents), *count_bytes, *zeros.values())
        # In this order: environment, nonzero arrays, counts, access records, zeroed arrays. `clear`
        # and `hand_over` treat neighbouring arrays as one range.
        offsets, end = _lay_out(sizes)
        counts_at, rows_at = offsets[len(contents) : len(contents) + 2]
        addressed_offsets = (*offsets[1 : len(contents)], *offsets[len(contents) + 2 :])
        starts = dict(zip((*initial, *zeros), addressed_offsets, strict=True))
        starts |= {slot_at: starts[base] for base, slot_at in CURRENT_BLOCK_SLOTS.items()}
        for slot, value in (*_values(kernel, launch).items(), *starts.items()):
            environment[slot] = value
        image = np.zeros(counts_at, np.uint8)
        for array, offset in zip(contents, offsets, strict=False):
            image[offset : offset + array.nbytes] = array.view(np.uint8).reshape(-1)
        address_slots = np.array(sorted(starts), np.intp)
        return cls(
            kernel,
            slots,
            starts,
            counts_at,
            rows_at,
            image,
            _common_costs(kernel.layout),
            end,
            address_slots,
            bytes_per_slot,
            any(service_of(instruction) for instruction in kernel.program.instructions),
            launch.blocks * launch.warps_per_block,
            _full_lane_sets(launch.block, kernel.layout.caches.sets),
        )

    def buffers(self) -> LaunchBuffers:
        """Returns the buffers of one launch in their initial state: those of an ended launch,
        cleared, if some are kept, else new ones."""
        try:
            buffers = self._free.pop()
        # Not a length test first: another thread may take the last buffers in between.
        except IndexError:
            return LaunchBuffers(self)
        buffers.clear()
        return buffers

    def give_back(self, buffers: LaunchBuffers) -> None:
        """Keeps the buffers of an ended launch for the next one, which `buffers` returns, if they
        are small enough (`is_reusable`); the caller must not use them any more."""
        if self.is_reusable:
            self._free.append(buffers)

    def drop_buffers(self) -> None:
        """Frees the buffers that are kept for later launches."""
        self._free.clear()

    @property
    def is_reusable(self) -> bool:
        """Returns true if buffers are kept for the next launch: the arena has at most REUSED_BYTES
        and its counts at most REUSED_COUNT_BYTES."""
        # Counts and access records lie between these two offsets.
        counted = self.starts[Slot.CACHE_AT] - self.counts_at
        return self.size <= REUSED_BYTES and counted <= REUSED_COUNT_BYTES


class LaunchBuffers:
    """The buffers of one worker's launch: `arena` holds all of them, as `LaunchTemplate` lays them
    out, and `address` is its address; the other attributes are views of its parts."""

    def __init__(self, launch_template: LaunchTemplate) -> None:
        """Allocates the arena, aligned to ALIGNMENT, fills it as the template says, with this
        arena's addresses in the environment, and makes views of its parts."""
        raw = np.zeros(launch_template.size + ALIGNMENT, np.uint8)
        skipped = -int(raw.ctypes.data) % ALIGNMENT
        self.arena = raw[skipped : skipped + launch_template.size]
        self.address = int(self.arena.ctypes.data)
        # The template has offsets where the environment needs addresses in this arena.
        self._start = launch_template.start.copy()
        self._start[: 8 * len(Slot)].view(np.int64)[launch_template.address_slots] += self.address
        self._head = self.arena[: len(self._start)]
        self._launch_template = launch_template
        layout = launch_template.kernel.layout
        rows = len(layout.rows)
        by_row = self.words(launch_template.rows_at, layout.row_words)
        self._cost_of_row = by_row[EXAMPLE_COST : rows * ROW_WIDTH : ROW_WIDTH]
        self._caches = by_row[rows * ROW_WIDTH :]
        self._fill()
        self.environment = self.words(0, len(Slot))
        self.plan = Plan(self.words(launch_template.starts[Slot.PLAN_AT], Plan.WORDS), 0)
        self._bounds = self.words(launch_template.starts[Slot.CACHE_AT], 2 * max(1, rows))
        # Parameters, globals and slots follow one another, so each ends where the next starts.
        ends = launch_template.starts[Slot.GLOBALS_AT]
        self.parameters = self.arena[launch_template.starts[Slot.PARAMETERS_AT] : ends]
        self.globals = self.words(ends, (launch_template.starts[Slot.SLOTS_AT] - ends) // 8)
        self.counted = self.arena[launch_template.counts_at : launch_template.starts[Slot.CACHE_AT]]

    def counts(self) -> Bytes:
        """Returns the bytes of counts and access records, for use after the buffers are given back:
        a copy if another launch may reuse the buffers."""
        return self.counted.copy() if self._launch_template.is_reusable else self.counted

    def clear(self) -> None:
        """Restores the initial state for the next launch. Of the arrays that each block slot has,
        only the slots that the last launch used are cleared."""
        launch_template = self._launch_template
        used = self.plan.most_resident if launch_template.kernel.suspends else 1
        self.arena[launch_template.counts_at : launch_template.starts[Slot.STATES_BASE]] = 0
        for base, size in launch_template.bytes_per_slot.items():
            self.arena[launch_template.starts[base] :][: used * size] = 0
        self._fill()

    def _fill(self) -> None:
        """Writes everything that is not zero initially: the start of the arena, the cost of each
        record's common access, and the keys (masks of full warps) that range caches start with."""
        self._head[:] = self._start
        self._cost_of_row[:] = self._launch_template.costs
        self._caches[: len(self._launch_template.full_lane_sets)] = (
            self._launch_template.full_lane_sets
        )

    def forget_bounds(self) -> None:
        """Invalidates the bounds of allocations that access records and range caches hold, after
        allocations were made or freed; counts stay."""
        self._bounds[:] = 0
        # An entry without capacity matches no address; its counts remain valid.
        self._caches[self._launch_template.kernel.layout.caches.entry_capacities()] = 0

    def words(self, start: int, count: int) -> Words:
        """Returns a view of `count` 64-bit words of the arena from byte `start` on."""
        return self.arena[start : start + 8 * count].view(np.int64)


def _lay_out(sizes: Iterable[int]) -> tuple[list[int], int]:
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


def _initial_arrays(
    kernel: CompiledKernel, launch: Launch, plan: Plan
) -> dict[Slot, npt.NDArray[Any]]:
    """Returns, by the environment slot of their address, the arrays that do not begin as zeros
    (schedule layout, special registers, thread indices), and those that each launch fills in
    (parameters, module globals)."""
    specials = launch_values(kernel.program, launch)
    return {
        Slot.PLAN_AT: plan.words,
        Slot.SPECIALS_AT: np.array([specials[name] for name in LAUNCH_WIDE], np.uint32),
        Slot.TIDS_AT: _thread_indices(launch.block),
        Slot.PARAMETERS_AT: np.zeros(len(launch.parameters), np.uint8),
        Slot.GLOBALS_AT: np.array(launch.globals, np.uint64),
    }


def _bytes_per_slot(kernel: CompiledKernel, launch: Launch) -> dict[Slot, int]:
    """Returns, by the environment slot of its address, the size in bytes of each array that a
    resident block has (states, contexts, shared and local memory); all begin as zeros."""
    warps = launch.warps_per_block
    return {
        Slot.STATES_BASE: 8 * warps * WarpState.WORDS,
        Slot.CONTEXTS_BASE: kernel.context_bytes * warps,
        Slot.SHARED_BASE: shared_stride(kernel.program, launch),
        Slot.LOCAL_BASE: local_stride(kernel.program.local_bytes) * warps,
    }


def _values(kernel: CompiledKernel, launch: Launch) -> Mapping[Slot, int]:
    """Returns the initial values of environment slots that hold no address: the instruction budget
    (NO_LIMIT without `max_instructions`), -1 as the current block, a block's bytes of shared
    memory, the distance between two blocks', a block's bytes of local memory, threads and warps of
    a block, block and grid dimensions."""
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


def _common_costs(layout: CountLayout) -> Words:
    """Returns the transactions of the common access (`common_cost`) of each access record, its
    initial EXAMPLE_COST: only a costlier access is kept as the record's example."""
    costs = (common_cost(layout.program, row, layout.rules) for row in layout.rows)
    return np.fromiter((cost[TRANSACTIONS] for cost in costs), np.int64, len(layout.rows))


def _full_lane_sets(block: tuple[int, int, int], sets: int) -> Words:
    """Returns the table of `sets` keys (mask and layout) with which range caches begin: full warps
    of the first warp layouts of the block, at most half of `sets`, each at its hashed place, else
    zeros; of layout 0 alone if a warp is one run of lanes. So masks at the edge of a grid, which
    may come first, cannot fill the table (`abi.range_cache`)."""
    has_runs = RUNS[warp_layout_of(block)] > 1
    layouts = min(1 + max(warp_layouts(block)), sets // 2) if has_runs else 1
    keys = np.zeros(sets, np.int64)
    keys[0] = ALL_LANES
    for layout in range(1, layouts):
        find_or_insert_set(keys, ALL_LANES | layout << LAYOUT_SHIFT, sets)
    return keys


def _thread_indices(block: tuple[int, int, int]) -> npt.NDArray[np.uint32]:
    """Returns the thread indices of a block (x of all warps' lanes, then y, then z), followed by
    the layout number of each warp (`Slot.TIDS_AT`)."""
    layouts = np.array(warp_layouts(block), np.uint32)
    return np.concatenate((thread_indices(block).reshape(-1), layouts))
