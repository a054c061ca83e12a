"""Lays out the buffers of a launch of compiled code, once for a kernel and its configuration.

All buffers are in one block of memory (the arena), the environment first. The nonzero start of the
arena is stored as bytes, so that a launch begins with one copy; the counts and access records,
megabytes for a long kernel, are zeros but for one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import Slot
from warploom.abi.range_cache import used_at
from warploom.asynchronous.late_copies.entries import LIST_WORDS
from warploom.compilation.jit import CompiledKernel
from warploom.cost.deferred_atomics import AccessCounts
from warploom.cost.fields import CostRecord
from warploom.isa.kinds import Needs
from warploom.isa.spec import Unit
from warploom.machine.compiled.block_times import BlockTimes
from warploom.machine.compiled.initial_contents import (
    ALIGNMENT,
    CURRENT_BLOCK_SLOTS,
    Words,
    bytes_per_slot_of,
    common_costs,
    environment_values,
    full_lane_sets_of,
    initial_arrays,
    lay_out,
)
from warploom.machine.compiled.pace import Pace
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.launch import Launch
from warploom.program.requests.tensor_memory import queue_words
from warploom.program.services import service_of
from warploom.simt.schedule_layout import EMPTY_SLOT, Plan, slot_words

Bytes = npt.NDArray[np.uint8]

REUSED_BYTES = 1 << 27
"""Buffers of up to this size are retained for the next launch: clearing the part that was used is
cheaper than new pages from the system."""

_ZEROS = memoryview(bytes(1 << 16))
"""What short ranges are cleared with: a copy between two memoryviews needs 60 ns, an assignment to
a slice of a NumPy array 300."""

REUSED_COUNT_BYTES = 1 << 20
"""The same limit for the counts that a launch used, which are copied and cleared."""


@dataclass(frozen=True)
class LaunchTemplate:
    """The initial state of every launch of a kernel in one configuration, and the layout of its
    buffers.

    - `slots`: the number of blocks that are resident at once.
    - `starts`: the offset in the arena, in bytes, of the array whose address a slot of the
      environment holds; `address_slots`: these slots, sorted. `counts_at` and `records_at`: the
      offsets of counts and access records, which have no slot.
    - `start`: the first bytes of the arena, with offsets instead of addresses; the arena has zeros
      from there up to `size`, but for `costs`, one in each access record (see `common_costs`).
    - `bytes_per_slot`: the bytes of each array that every resident block has, by environment slot.
    - `calls_host`: the kernel calls printf, malloc, assert or free. `reads_textures`: it has
      instructions on textures or surfaces. `launched_warps`: the number of
      warps. `pace`: how many instructions a launch runs per call. `full_lane_sets`: the lane sets
      that the range caches start with.
    """

    kernel: CompiledKernel
    slots: int
    starts: Mapping[Slot, int]
    counts_at: int
    records_at: int
    start: Bytes
    costs: Words
    size: int
    address_slots: npt.NDArray[np.intp]
    bytes_per_slot: Mapping[Slot, int]
    calls_host: bool
    reads_textures: bool
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
        initial = initial_arrays(kernel, launch, plan)
        words = slot_words(plan) if kernel.suspends else slots
        initial[Slot.SLOTS_AT] = np.full(words, EMPTY_SLOT, np.int64)
        bytes_per_slot = bytes_per_slot_of(kernel, launch)
        # Two words of cached bounds (16 bytes) for each access record.
        zeros = {Slot.CACHE_AT: 16 * max(1, len(kernel.layout.records))}
        if kernel.variant.has_policy_layout and Needs.COMPLETION_QUEUE in kernel.program.needs:
            zeros[Slot.QUEUE_AT] = 8 * queue_words(kernel.program.has_tensor_memory)
            zeros[Slot.HELD_AT] = 8 * LIST_WORDS
        zeros |= {base: slots * size for base, size in bytes_per_slot.items()}
        contents = (environment, *initial.values())
        count_bytes = (8 * kernel.layout.size, 8 * kernel.layout.record_words)
        sizes = (*(array.nbytes for array in contents), *count_bytes, *zeros.values())
        # In this order: environment, nonzero arrays, counts, access records, zeroed arrays. `clear`
        # and `hand_over` treat neighboring arrays as one range.
        offsets, end = lay_out(sizes)
        counts_at, records_at = offsets[len(contents) : len(contents) + 2]
        addressed_offsets = (*offsets[1 : len(contents)], *offsets[len(contents) + 2 :])
        starts = dict(zip((*initial, *zeros), addressed_offsets, strict=True))
        starts |= {slot_at: starts[base] for base, slot_at in CURRENT_BLOCK_SLOTS.items()}
        for slot, value in (*environment_values(kernel, launch).items(), *starts.items()):
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
            records_at,
            image,
            common_costs(kernel.layout),
            end,
            address_slots,
            bytes_per_slot,
            any(service_of(instruction) for instruction in kernel.program.instructions),
            any(i.operation.spec.unit is Unit.TEXTURE for i in kernel.program.instructions),
            launch.blocks * launch.warps_per_block,
            full_lane_sets_of(launch.block, kernel.layout.caches.sets),
        )

    def buffers(self) -> LaunchBuffers:
        """Returns the buffers of one launch in their initial state: those of an ended launch,
        cleared, if some are retained, else new ones."""
        try:
            buffers = self._free.pop()
        # Not a length test first: another thread may take the last buffers in between.
        except IndexError:
            return LaunchBuffers(self)
        buffers.clear()
        return buffers

    def give_back(self, buffers: LaunchBuffers) -> Bytes:
        """Returns the bytes of counts and access records of a launch that has ended, and stores its
        buffers for the next one, which `buffers` returns, if they are small enough: the arena has
        at most REUSED_BYTES, and the counts in use at most REUSED_COUNT_BYTES. The counts are then
        a copy. The caller must not use the buffers any more."""
        counted = buffers.counted
        if self.size > REUSED_BYTES or counted.nbytes > REUSED_COUNT_BYTES:
            return counted
        counted = counted.copy()
        self._free.append(buffers)
        return counted

    def drop_buffers(self) -> None:
        """Frees the buffers that are retained for later launches."""
        self._free.clear()


class LaunchBuffers:
    """The buffers of one worker's launch: `arena` holds all of them, as `LaunchTemplate` lays them
    out, and `address` is its address; the other attributes are views of its parts. What every
    launch writes (`environment`, words by `Slot`, and `parameters`, bytes) are memoryviews: a word
    is written in a third of the time of NumPy."""

    def __init__(self, launch_template: LaunchTemplate) -> None:
        """Allocates the arena, aligned to ALIGNMENT, fills it as the template states, with this
        arena's addresses in the environment, and makes views of its parts."""
        raw = np.zeros(launch_template.size + ALIGNMENT, np.uint8)
        skipped = -int(raw.ctypes.data) % ALIGNMENT
        self.arena = raw[skipped : skipped + launch_template.size]
        self.address = int(self.arena.ctypes.data)
        # The template has offsets where the environment needs addresses in this arena.
        start = launch_template.start.copy()
        start[: 8 * len(Slot)].view(np.int64)[launch_template.address_slots] += self.address
        self._bytes, self._start = self.arena.data, start.data
        self._head = self._bytes[: len(start)]
        self._launch_template = launch_template
        layout = launch_template.kernel.layout
        records = len(layout.records)
        by_record = self.words(launch_template.records_at, layout.record_words)
        self._cost_of_record = by_record.data[
            CostRecord.example_cost : layout.caches_at : AccessCounts.WORDS
        ]
        self._costs = launch_template.costs.data
        self._caches = by_record[layout.caches_at :]
        self._cache_words = self._caches.data
        self._full_lane_sets = launch_template.full_lane_sets.data
        # Bytes of the arena from the counts to the entries of range caches with number 0, and bytes
        # of the entries of one number: `RangeCacheLayout.used_words`, without calls in a launch.
        caches = layout.caches
        entries_at = launch_template.records_at + 8 * (layout.caches_at + caches.entries_at)
        self._bytes_before_entries = entries_at - launch_template.counts_at
        self._bytes_of_set, self._used_at = 8 * caches.set_words, used_at(caches.sets)
        self._fill()
        # Attributes of the template that `clear` reads at each launch.
        starts, self._counts_at = launch_template.starts, launch_template.counts_at
        self._suspends = launch_template.kernel.suspends
        bounds = starts[Slot.CACHE_AT]
        self._bounds_range = bounds, starts[Slot.STATES_BASE] - bounds
        slot_bytes = launch_template.bytes_per_slot.items()
        self._of_slots = [(starts[base], size) for base, size in slot_bytes if size]
        self.environment = self.words(0, len(Slot)).data
        self.plan = Plan(self.words(launch_template.starts[Slot.PLAN_AT], Plan.WORDS), 0)
        self._bounds = self.words(launch_template.starts[Slot.CACHE_AT], 2 * max(1, records))
        # Parameters, globals and slots follow one another, so each ends where the next starts.
        ends = launch_template.starts[Slot.GLOBALS_AT]
        self.parameters = self._bytes[launch_template.starts[Slot.PARAMETERS_AT] : ends]
        self.globals = self.words(ends, (launch_template.starts[Slot.SLOTS_AT] - ends) // 8)

    @property
    def counted(self) -> Bytes:
        """Returns a view of the bytes of counts, access records, and range caches as far as they
        are in use."""
        start = self._launch_template.counts_at
        return self.arena[start : start + self._counted_size]

    @property
    def _counted_size(self) -> int:
        """Returns the length of `counted`."""
        used = self._cache_words[self._used_at]
        return self._bytes_before_entries + used * self._bytes_of_set

    def clear(self) -> None:
        """Restores the initial state for the next launch. Of the range caches, only
        the entries that the last launch used are cleared, and of the arrays that each block slot
        has, only its slots."""
        self._clear(self._counts_at, self._counted_size)
        self._clear(*self._bounds_range)
        used = self.plan.most_resident if self._suspends else 1
        for start, size in self._of_slots:
            self._clear(start, used * size)
        self._fill()

    def _clear(self, start: int, size: int) -> None:
        """Writes zeros to `size` bytes of the arena."""
        if size <= len(_ZEROS):
            self._bytes[start : start + size] = _ZEROS[:size]
        else:
            self.arena[start : start + size] = 0

    def _fill(self) -> None:
        """Writes everything that is not zero initially: the start of the arena, the cost of each
        record's common access, and the keys (masks of full warps) that range caches start with."""
        self._head[:] = self._start
        self._cost_of_record[:] = self._costs
        self._cache_words[: len(self._full_lane_sets)] = self._full_lane_sets

    def forget_bounds(self) -> None:
        """Invalidates the bounds of allocations that access records and range caches hold, after
        allocations were made or freed; counts stay."""
        self._bounds[:] = 0
        self._launch_template.kernel.layout.caches.invalidate(self._caches)

    def words(self, start: int, count: int) -> Words:
        """Returns a view of `count` 64-bit words of the arena from byte `start` on."""
        return self.arena[start : start + 8 * count].view(np.int64)


@dataclass
class TieredTemplate:
    """Holds the code tiers of the launches of a kernel that differ from `launch` only in their
    arguments, and the launch template of the code that they choose; `block_times`: how
    long their blocks run."""

    tiers: Tiers
    launch: Launch
    block_times: BlockTimes = field(default_factory=BlockTimes)
    _template: LaunchTemplate | None = None

    def current(self) -> LaunchTemplate:
        """Returns the template for a launch in the code that the tiers choose now. It is cached.
        When the code has changed since, it is rebuilt, the buffers of the old one are freed, and
        `block_times` begins anew."""
        kernel, template = self.tiers.kernel(), self._template
        if template is not None and template.kernel is kernel:
            return template
        self.drop_buffers()
        # Launches in other code last another time.
        self.block_times = BlockTimes()
        self._template = LaunchTemplate.of(kernel, self.launch)
        return self._template

    def better(self, launch_template: LaunchTemplate) -> LaunchTemplate | None:
        """Starts a compilation that is due, or loads one that is done (`Tiers.improve_when_due`);
        returns the template of the current code, in which a launch that runs in `launch_template`
        should continue, None if there is no other code than its own. Launches whose order a policy
        chooses, and launches with clusters, finish in code of the variant that they began in."""
        self.tiers.improve_when_due()
        current = self.tiers.current
        if current is None or current is launch_template.kernel:
            return None
        variant = self.tiers.variant
        is_converted = current.variant != launch_template.kernel.variant
        if is_converted and (variant.shuffles or variant.clusters):
            return None
        return self.current()

    def drop_buffers(self) -> None:
        """Frees the buffers that are retained for later launches."""
        if self._template is not None:
            self._template.drop_buffers()
