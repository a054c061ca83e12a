"""Defines the arguments of compiled kernels: the slots of the environment, by which host and code
exchange state, and the layout of the counts.

The environment of a worker is an array of 64-bit integers, indexed by `Slot`. Counts of blocks and
access records are two more arrays, passed as separate `noalias` arguments, so that LLVM knows that
no other store changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

import numpy as np
import numpy.typing as npt

from warploom.abi.range_cache import RangeCacheLayout
from warploom.core.lazy import cached_property
from warploom.cost.deferred_atomics import AccessCounts
from warploom.cost.device_rules import AccessRules
from warploom.isa.instruction import Space
from warploom.isa.routines import ordinary_results
from warploom.program.accesses import AccessRecord, access_records
from warploom.program.cfg import can_diverge
from warploom.program.program import Program
from warploom.program.uses import member_mask
from warploom.shapes.vector_shape import LANES
from warploom.shapes.warp_layout import WarpLayout
from warploom.simt import schedule_layout


class Slot(IntEnum):
    """Indexes the environment, an array of 64-bit integers. `*_AT` are host addresses unless noted
    otherwise.

    Turns: FUEL: warp instructions left in this turn; BUDGET: in the launch. PAUSE_AT: the budget
    below which `run` returns PAUSED, to be called again. PLAN_AT, SLOTS_AT: the schedule
    (`simt.scheduling`). FAILED_WAIT: 1 if lanes of the running warp have polled a phase of an
    mbarrier that is not complete in this turn, which then ends at the next back edge.

    Blocks: STATES_AT, CONTEXTS_AT, SHARED_AT, LOCAL_AT: arrays of the current block; *_BASE: of the
    first resident block. A context is described by `abi.context_layout`.
    LOCAL_BYTES: a block's local memory. TIDS_AT: i32[3][warps * 32], the thread indices of a block,
    then i32[warps], the number of each warp's layout: in warps with one number, lanes differ from
    lane 0 by the same thread indices. SPECIALS_AT: u32[], the special registers of `LAUNCH_WIDE`,
    then, if the kernel reads `%smid`, the SM of each slot.

    Memory: CACHE_AT: u64[records][2], the bounds of the allocation that each access record touched
    last. HIERARCHY_AT: the caches of the device, if they are simulated (`cost.caches`).
    TEXTURES_AT: the table of textures (`texture.descriptors`). QUEUE_AT, HELD_AT: asynchronous
    copies of tensors and of lanes that are not complete (`asynchronous.issue.queue`,
    `asynchronous.late_copies`), under schedules that delay them.
    IS_SHARED: 1 if several workers run the launch. INTERLEAVING: whether code may
    interleave warps (`Interleaving`).

    Warp order (`lower.control.warp_order`): TOGETHER: 1 if this call runs all warps of the block,
    one after the other, from barrier to barrier. WARP, SITE, START, OWN_SITE: the state in which
    such a call returned: the warp that stopped; the site that the warps before it wait at; the
    site where the others continue; the site of the warp itself.

    Instrumentation: FAULT_*: the record of a fault. SERVICE_AT: the host function that serves
    printf, malloc and the like (`machine.compiled.host_callbacks`). LOG_AT: the log of a recorded
    launch (`abi.log`). DETECTOR_AT: the state of the race detector (`detector`). OBSERVER_AT: the
    functions of an observer (`simt.event_layout`). ACCESS_SET_AT: which memory the worker has
    accessed, if blocks may conflict (`abi.access_sets`). UPDATE_LOG_AT: the log of updates whose
    order shows, if others run blocks before these (`abi.update_log`), else 0. WATCH_AT: the range
    of memory that a debugger watches (`lower.instrument.watchpoints`). Under a debugger a turn runs
    in slices of SLICE warp instructions: IN_TURN is the number of the warp in the middle of its
    turn plus 1, else 0; TURN_LEFT the instructions left of that turn; SLICE_FUEL those of the
    current slice.
    """

    FUEL = 0
    BUDGET = auto()
    PAUSE_AT = auto()
    PARAMETERS_AT = auto()
    GLOBALS_AT = auto()
    SHARED_AT = auto()
    SHARED_BYTES = auto()
    SHARED_STRIDE = auto()
    SPECIALS_AT = auto()
    LOCAL_AT = auto()
    CONTEXTS_AT = auto()
    PLAN_AT = auto()
    SLOTS_AT = auto()
    STATES_BASE = auto()
    SHARED_BASE = auto()
    LOCAL_BASE = auto()
    CONTEXTS_BASE = auto()
    STATES_AT = auto()
    TIDS_AT = auto()
    CACHE_AT = auto()
    ALLOCATIONS_AT = auto()
    ALLOCATIONS = auto()
    THREADS = auto()
    WARPS = auto()
    BLOCK = auto()
    BLOCKS_DONE = auto()
    IS_SHARED = auto()
    INTERLEAVING = auto()
    CTAID_X = auto()
    CTAID_Y = auto()
    CTAID_Z = auto()
    NTID_X = auto()
    NTID_Y = auto()
    NTID_Z = auto()
    NCTAID_X = auto()
    NCTAID_Y = auto()
    NCTAID_Z = auto()
    FAULT_KIND = auto()
    FAULT_INSTRUCTION = auto()
    FAULT_WARP = auto()
    FAULT_LANE = auto()
    FAULT_ADDRESS = auto()
    FAULT_SIZE = auto()
    FAULT_SPACE = auto()
    SERVICE_AT = auto()
    HIERARCHY_AT = auto()
    LOCAL_BYTES = auto()
    TEXTURES_AT = auto()
    TOGETHER = auto()
    WARP = auto()
    SITE = auto()
    START = auto()
    OWN_SITE = auto()
    LOG_AT = auto()
    DETECTOR_AT = auto()
    QUEUE_AT = auto()
    HELD_AT = auto()
    WATCH_AT = auto()
    SLICE = auto()
    IN_TURN = auto()
    TURN_LEFT = auto()
    SLICE_FUEL = auto()
    OBSERVER_AT = auto()
    FAILED_WAIT = auto()
    ACCESS_SET_AT = auto()
    UPDATE_LOG_AT = auto()


class Interleaving(IntEnum):
    """States whether code may interleave warps in a loop (`lower.loops.interleaved_batches`): those
    of a block if the order of its threads is not observable (`analysis.linear.thread_order`), and
    those of a team of blocks (`simt.teams`) if that of blocks is not observable, either
    (`analysis.linear.footprints`). Code changes UNKNOWN to WANTED where interleaving would save
    time."""

    UNKNOWN = 0
    WANTED = auto()
    WITHIN_BLOCKS = auto()
    ACROSS_BLOCKS = auto()


class Status(IntEnum):
    """Names the values that `warp` and `run` return. Those up to ARRIVED_ONLY are of
    `simt.scheduling`: why a warp returned to the scheduler. FAULT and the later ones end a call of
    `run`, which returns ENDED after all blocks; `GridFunction` relies on their greater values."""

    RUNNABLE = schedule_layout.RUNNABLE
    ENDED = schedule_layout.ENDED
    BARRIER = schedule_layout.BARRIER_WAIT
    TURN_END = schedule_layout.TURN_END
    RECONVERGING = schedule_layout.RECONVERGING
    SYNC_WAIT = schedule_layout.SYNC_WAIT
    SPLIT_BARRIER = schedule_layout.SPLIT_BARRIER
    DIVERGED = schedule_layout.DIVERGED
    ARRIVED_ONLY = schedule_layout.ARRIVED_ONLY
    FAULT = auto()
    PAUSED = auto()
    LIMIT = auto()
    DEADLOCK = auto()


SPACE_CODES = {space: code for code, space in enumerate(Space)}
"""The numbers of state spaces in the record of a fault."""


@dataclass(frozen=True)
class CountLayout:
    """Assigns indices in the array of counts (i64) to a program's counters.

    The counts are, in order: for each basic block, its executions, and the sum of the lanes active
    in these. For each guarded instruction, the sum of the lanes whose guard held. For each branch,
    how often it diverged, and how often its lanes reconverged. For each instruction with a member
    mask, how often the mask named lanes that had exited. For each instruction that may call a
    routine (`isa.routines`), how often it did. The last count is not read.

    `rules` count accesses; `warp_layout` is the layout of threads in the warps of the launch.
    """

    program: Program
    rules: AccessRules
    warp_layout: WarpLayout = WarpLayout.LINE

    @cached_property
    def guarded(self) -> dict[int, int]:
        """Returns, by index of a guarded instruction, the index of the count of lanes whose guard
        held."""
        first_count = 2 * len(self.program.blocks)
        indices = (
            i
            for i, instruction_here in enumerate(self.program.instructions)
            if instruction_here.guard
        )
        return {instruction: first_count + n for n, instruction in enumerate(indices)}

    @cached_property
    def branches(self) -> dict[int, int]:
        """Returns, by index of an instruction that can diverge, the index of the first of its two
        counts: divergences, then reconvergences."""
        first_count = 2 * len(self.program.blocks) + len(self.guarded)
        indices = (
            i
            for i, instruction_here in enumerate(self.program.instructions)
            if can_diverge(instruction_here)
        )
        return {instruction: first_count + 2 * n for n, instruction in enumerate(indices)}

    @cached_property
    def members(self) -> dict[int, int]:
        """Returns, by index of an instruction with a member mask, the index of the count of masks
        that named lanes which had exited."""
        first_count = 2 * len(self.program.blocks) + len(self.guarded) + 2 * len(self.branches)
        instructions = self.program.instructions
        indices = (
            i
            for i, instruction_here in enumerate(instructions)
            if member_mask(instruction_here) is not None
        )
        return {instruction: first_count + n for n, instruction in enumerate(indices)}

    @cached_property
    def routines(self) -> dict[int, int]:
        """Returns, by index of an instruction for which machine code may call a routine (its
        operation has `ordinary_results`), the index of the count of such calls."""
        branches = 2 * (len(self.program.blocks) + len(self.branches))
        first_count = branches + len(self.guarded) + len(self.members)
        instructions = self.program.instructions
        indices = (
            i
            for i, instruction_here in enumerate(instructions)
            if ordinary_results(instruction_here.operation) is not None
        )
        return {instruction: first_count + n for n, instruction in enumerate(indices)}

    @cached_property
    def _lengths(self) -> npt.NDArray[np.int64]:
        """Returns the number of counted instructions of each basic block: all but hidden ones."""
        hidden = self.program.hidden
        return np.array(
            [
                b.stop - b.start - sum(at in hidden for at in range(b.start, b.stop))
                for b in self.program.blocks
            ],
            np.int64,
        )

    def executed(self, counts: npt.NDArray[np.int64]) -> int:
        """Returns the number of warp instructions, without hidden ones, that an array of counts
        amounts to: each block's executions times its instructions, summed."""
        # Every other count is the executions of a block; those between are of active lanes.
        return int(counts[: 2 * len(self._lengths) : 2] @ self._lengths)

    @cached_property
    def size(self) -> int:
        """Returns the length of the array of counts in elements, with the discarded count at its
        end."""
        return self.discarded_count + 1

    @property
    def discarded_count(self) -> int:
        """Returns the index of a count that is not read, for code that adds to a count anyway."""
        single = len(self.guarded) + len(self.members) + len(self.routines)
        return 2 * (len(self.program.blocks) + len(self.branches)) + single

    @cached_property
    def records(self) -> tuple[AccessRecord, ...]:
        """Returns the access records of the program, in the order of their records."""
        return access_records(self.program)

    @cached_property
    def caches(self) -> RangeCacheLayout:
        """Returns the layout of the range caches, which follow the records."""
        return RangeCacheLayout.of(self.program, self.records, self.rules.unit, self.warp_layout)

    @property
    def caches_at(self) -> int:
        """Returns the number of words of all access records: where the range caches begin."""
        return AccessCounts.WORDS * len(self.records)

    @property
    def record_words(self) -> int:
        """Returns the number of words of all access records and of the range caches after them."""
        return self.caches_at + self.caches.size

    @cached_property
    def deferring_records(self) -> tuple[int, ...]:
        """Returns the numbers of the records whose accesses may be counted in batches
        (`cost.deferred_atomics`): atomics on shared memory."""
        atomics = ((n, record) for n, record in enumerate(self.records) if record.op == "atomic")
        return tuple(n for n, record in atomics if record.space is Space.SHARED)


def local_stride(local_bytes: int) -> int:
    """Returns the host bytes of one warp's local memory: for 32 lanes, the bytes of a thread's,
    rounded up to whole words of four."""
    return (local_bytes + 3) // 4 * 4 * LANES
