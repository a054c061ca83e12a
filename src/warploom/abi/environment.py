"""The interface between compiled code and its host: the environment's slots and the layout of the
counts.

The environment of a worker is an array of 64-bit integers, `Slot` its indices. Counts are two more
arrays, so that LLVM knows that nothing else reaches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cached_property

import numpy as np
import numpy.typing as npt

from warploom.abi.range_cache import CacheLayout
from warploom.analysis.shape_transfer import WarpLayout
from warploom.analysis.vector_shape import LANES
from warploom.cost.deferred_atomics import ROW_END
from warploom.cost.device_rules import AccessRules
from warploom.isa.routines import ordinary_results
from warploom.program.accesses import AccessRecord, access_records
from warploom.program.cfg import can_diverge
from warploom.program.program import Program
from warploom.program.uses import member_mask
from warploom.ptx.ir import Space
from warploom.simt import schedule_layout


class Slot(IntEnum):
    """Slots of the environment. `*_AT` are host addresses.

    FUEL: warp instructions left in this turn; BUDGET: in the launch. PAUSE_AT: where the run comes
    back, to be gone on with, when no more of the budget is left. PLAN_AT, SLOTS_AT: the schedule
    (`simt.scheduling`). STATES_AT, CONTEXTS_AT, SHARED_AT, LOCAL_AT are those of the current
    block, the *_BASE ones of the first slot. A context, of CONTEXT_BYTES, is a warp's table
    (`simt.warp_table`), then the registers that it keeps while it waits. TIDS_AT: i32[3][warps *
    32], the thread indices of a block, then i32[warps], the layout of each warp: warps of one
    number differ in all indices by the same. CACHE_AT: u64[rows][2], the bounds of the allocation
    that each access row reached last. FAULT_*: the record of a fault. SPECIALS_AT: u32[], the
    special registers of `LAUNCH_WIDE`. SERVICE_AT: the function to call for a service
    (`machine.compiled.host_callbacks`). HIERARCHY_AT: the caches that are counted (`cost.caches`).
    LOCAL_BYTES: a block's local memory. TEXTURES_AT: the table of textures (`texture.descriptors`).
    TOGETHER: whether the warps of the block run in relay (`lower.control.warp_order`); WARP, SITE,
    START and OWN_SITE: how far it came. LOG_AT: what a recorded launch writes (`abi.log`).
    DETECTOR_AT: the state of the detector that a sanitized launch has (`detector`). QUEUE_AT,
    HELD_AT: asynchronous copies that are not complete, of tensors and of lanes
    (`asynchronous.issue.queue`, `asynchronous.late_copies`), under schedules that have any.
    WATCH_AT: the range of memory whose accesses are counted (`lower.instrument.watchpoints`). In
    code for a debugger, a turn is run in slices of SLICE warp instructions: IN_TURN is one more
    than the warp that is in the midst of its turn, else 0, TURN_LEFT what it has left of it, and
    GIVEN what its slice was given. OBSERVER_AT: the functions of an observer (`simt.event_layout`).
    FAILED_WAIT: whether lanes of the running warp have waited in vain for a phase of an mbarrier in
    this turn, which then ends at the next way back.
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
    CONTEXT_BYTES = auto()
    STATES_AT = auto()
    TIDS_AT = auto()
    CACHE_AT = auto()
    ALLOCATIONS_AT = auto()
    ALLOCATIONS = auto()
    THREADS = auto()
    WARPS = auto()
    BLOCK = auto()
    BLOCKS_DONE = auto()
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
    GIVEN = auto()
    OBSERVER_AT = auto()
    FAILED_WAIT = auto()


class Status(IntEnum):
    """The reasons for which a warp, or the whole run, comes back; the first are those of
    `simt.scheduling`."""

    RUNNABLE = schedule_layout.RUNNABLE
    ENDED = schedule_layout.ENDED
    BARRIER = schedule_layout.BARRIER_WAIT
    TURN_END = schedule_layout.TURN_END
    RECONVERGING = schedule_layout.RECONVERGING
    SYNC_WAIT = schedule_layout.SYNC_WAIT
    SPLIT_BARRIER = schedule_layout.SPLIT_BARRIER
    DIVERGED_STATUS = schedule_layout.DIVERGED_STATUS
    ARRIVED_ONLY = schedule_layout.ARRIVED_ONLY
    FAULT = auto()
    PAUSED = auto()
    LIMIT = auto()
    DEADLOCK = auto()


SPACE_CODES = {space: code for code, space in enumerate(Space)}
"""How compiled code names a space in the record of a fault."""

ROW_WIDTH = ROW_END
"""An access row in compiled code: a record, patterns (`cost.pattern_table`) and a list
(`cost.deferred_atomics`). Behind all rows stand the lane sets and caches of `abi.range_cache`."""


@dataclass(frozen=True)
class CountLayout:
    """Places each count of a program in the counts array (of i64), and by which rules its
    accesses are counted, in launches of whose warps that is the formation.

    For each basic block its executions and the lanes active then; for each guarded instruction the
    lanes whose guard held; for each branch how often it diverged and how often its lanes met again;
    for each instruction with a member mask how often that named lanes which had exited; for each
    that may call a routine how often it did.
    """

    program: Program
    rules: AccessRules
    warp_layout: WarpLayout = WarpLayout.LINE

    @cached_property
    def guarded(self) -> dict[int, int]:
        """Index in the array by guarded instruction."""
        first = 2 * len(self.program.blocks)
        found = (i for i, made in enumerate(self.program.instructions) if made.guard)
        return {instruction: first + n for n, instruction in enumerate(found)}

    @cached_property
    def branches(self) -> dict[int, int]:
        """Index of the first of its two counts, by branch instruction."""
        first = 2 * len(self.program.blocks) + len(self.guarded)
        found = (i for i, made in enumerate(self.program.instructions) if can_diverge(made))
        return {instruction: first + 2 * n for n, instruction in enumerate(found)}

    @cached_property
    def members(self) -> dict[int, int]:
        """Index in the array by instruction with a member mask."""
        first = 2 * len(self.program.blocks) + len(self.guarded) + 2 * len(self.branches)
        made = self.program.instructions
        found = (i for i, one in enumerate(made) if member_mask(one) is not None)
        return {instruction: first + n for n, instruction in enumerate(found)}

    @cached_property
    def routines(self) -> dict[int, int]:
        """Index in the array by instruction for which machine code may call a routine."""
        branches = 2 * (len(self.program.blocks) + len(self.branches))
        first = branches + len(self.guarded) + len(self.members)
        made = self.program.instructions
        found = (i for i, one in enumerate(made) if ordinary_results(one.operation) is not None)
        return {instruction: first + n for n, instruction in enumerate(found)}

    @cached_property
    def _lengths(self) -> npt.NDArray[np.int64]:
        """Return the instructions of each block that are counted."""
        hidden = self.program.hidden
        return np.array(
            [
                b.stop - b.start - sum(at in hidden for at in range(b.start, b.stop))
                for b in self.program.blocks
            ],
            np.int64,
        )

    def executed(self, counts: npt.NDArray[np.int64]) -> int:
        """Returns how many warp instructions the executions of the blocks in `counts` make."""
        return int(counts[: 2 * len(self._lengths) : 2] @ self._lengths)

    @cached_property
    def size(self) -> int:
        """Length of the array."""
        return self.unwanted + 1

    @property
    def unwanted(self) -> int:
        """Index of a count that nobody reads."""
        places = len(self.guarded) + len(self.members) + len(self.routines)
        return 2 * (len(self.program.blocks) + len(self.branches)) + places

    @cached_property
    def rows(self) -> tuple[AccessRecord, ...]:
        return access_records(self.program)

    @cached_property
    def caches(self) -> CacheLayout:
        """Returns where the access caches of the rows stand, behind the rows."""
        return CacheLayout.of(self.program, self.rows, self.rules.unit, self.warp_layout)

    @property
    def row_words(self) -> int:
        """Words of the rows and of what stands behind them."""
        return ROW_WIDTH * len(self.rows) + self.caches.size

    @cached_property
    def deferring_rows(self) -> tuple[int, ...]:
        """Return the numbers of the rows in which accesses may be put on a list
        (`cost.deferred_atomics`)."""
        atomics = ((n, row) for n, row in enumerate(self.rows) if row.op == "atomic")
        return tuple(n for n, row in atomics if row.space is Space.SHARED)


def local_stride(local_bytes: int) -> int:
    """Host bytes of one warp's local memory: whole words, all lanes."""
    return (local_bytes + 3) // 4 * 4 * LANES
