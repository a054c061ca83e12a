"""Runs one worker's part of a launch: prepares its buffers, and calls the machine code slice by
slice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import Interleaving, Slot, Status
from warploom.compilation.jit import CompiledKernel
from warploom.core.interrupts import interrupts_held, let_interrupts_through
from warploom.core.lazy import cached_property
from warploom.isa.special import LAUNCH_WIDE
from warploom.machine.caches import NO_CACHES
from warploom.machine.compiled.handover import hand_over
from warploom.machine.compiled.host_callbacks import HostCallbacks
from warploom.machine.compiled.launch_template import LaunchBuffers, LaunchTemplate, TieredTemplate
from warploom.machine.late_updates import PartLog
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.services import Services
from warploom.simt import schedule_layout
from warploom.simt.schedule_layout import (
    Plan,
    WarpState,
    occupied_slots,
    slot_words,
    table_of,
)
from warploom.simt.warp_table import WarpTable

LIMIT_STEP = 1 << 20
"""The most warp instructions that run between two checks of `max_instructions`."""

Words = npt.NDArray[np.int64]

_NO_CACHES_AT = int(NO_CACHES.ctypes.data)

_FIRST, _END = Plan.next_block, Plan.blocks
"""The words of the schedule that hold the range of a part's blocks."""


@dataclass(eq=False)
class WorkerLaunch:
    """One worker's part of a launch, with its buffers: `blocks` is the range of its thread blocks.

    `referenced` holds arrays that only the environment points to. `tiered` offers better
    code while the launch runs; None if the launch ends in the code in which it began. Errors,
    traces and the debugger read the warps' states from it afterwards. `seconds` is the time that it
    has run in compiled code. `is_stopped`: it is to end at its next pause, for a part of earlier
    blocks has failed. `update_log`: the log of updates whose order shows; None if it performs them.
    """

    launch_template: LaunchTemplate
    launch: Launch
    memory: DeviceMemory
    blocks: range
    buffers: LaunchBuffers
    host_callbacks: HostCallbacks | None
    referenced: tuple[object, ...]
    tiered: TieredTemplate | None = None
    seconds: float = 0.0
    is_stopped: bool = False
    withheld: range = range(0)
    update_log: PartLog | None = None

    @classmethod
    def prepare(
        cls,
        launch_template: LaunchTemplate,
        launch: Launch,
        memory: DeviceMemory,
        caches: Words,
        blocks: range,
        tiered: TieredTemplate | None = None,
    ) -> WorkerLaunch:
        """Returns a part that is ready to run: buffers from the template, with its range of blocks,
        parameters, module globals, the table of allocations, that of textures if the kernel reads
        some, and host callbacks if it calls the host; `caches` is the array of the counted memory
        caches (`cost.caches`). Without `tiered` the part ends in the code in which it began, and
        its seconds are not counted."""
        buffers = launch_template.buffers()
        plan, environment = buffers.plan.words, buffers.environment
        plan[_FIRST], plan[_END] = blocks.start, blocks.stop
        buffers.parameters[: len(launch.parameters)] = launch.parameters
        if launch.globals:
            buffers.globals[: len(launch.globals)] = launch.globals
        table = memory.table()
        environment[Slot.ALLOCATIONS_AT] = table.address
        environment[Slot.ALLOCATIONS] = table.count
        textures = memory.textures.table() if launch_template.reads_textures else None
        if textures is not None:
            environment[Slot.TEXTURES_AT] = textures.address
        # The number of the next block, from which the progress of this part is computed.
        environment[Slot.BLOCKS_DONE] = blocks.start
        environment[Slot.INTERLEAVING] = Interleaving.UNKNOWN
        environment[Slot.HIERARCHY_AT] = (
            _NO_CACHES_AT if caches is NO_CACHES else int(caches.ctypes.data)
        )
        host_callbacks = None
        if launch_template.calls_host:
            services = Services(launch_template.kernel.program, launch, memory)
            host_callbacks = HostCallbacks(
                services, buffers.forget_bounds, environment, launch.cancellation
            )
            environment[Slot.SERVICE_AT] = host_callbacks.address
        referenced = caches, table, textures
        part = cls(
            launch_template,
            launch,
            memory,
            blocks,
            buffers,
            host_callbacks,
            referenced,
            tiered,
        )
        if launch.placement is not None:
            part.write_slots()
        return part

    def write_slots(self) -> None:
        """Writes which slots other kernels leave to the launch, and on which SMs these are."""
        available, start = self.launch.available_slots, self.launch_template.starts
        self.buffers.plan.available = available
        if self.kernel.program.shows_multiprocessor:
            specials = self.buffers.arena[start[Slot.SPECIALS_AT] :].view(np.uint32)
            specials[len(LAUNCH_WIDE) :][:available] = self.launch.sms_of_slots()

    def run(self, report: Callable[[], None] | None = None) -> int:
        """Runs the part slice by slice until it ends, it is stopped or its launch is cancelled;
        calls `report` at each pause. Returns its last Status."""
        status = self.run_slice()
        if status != Status.PAUSED:
            return status
        with interrupts_held():  # short launches need not be interrupted
            while status == Status.PAUSED and not self.is_cancelled:
                let_interrupts_through()
                if report is not None:
                    report()
                status = self.run_slice()
        return status

    def run_slice(self) -> int:
        """Runs the part for about as many instructions as the pace states (whole blocks, at least
        one, of a kernel without loops), in this thread; returns the Status of the code: PAUSED if
        there is more to do, LIMIT if the part has exceeded `max_instructions`. At a pause it
        adjusts the pace and may switch to better code; the time is added to the tiers'
        seconds."""
        launch_template, environment = self.launch_template, self.buffers.environment
        kernel, pace, start = launch_template.kernel, launch_template.pace, self.buffers.address
        first_block, last_block = self.blocks.start, self.blocks.stop
        # A kernel that suspends checks its budget, which counts down, at back edges and barriers.
        # One that cannot has no loop: its slices are whole blocks.
        if kernel.suspends:
            environment[Slot.PAUSE_AT] = environment[Slot.BUDGET] - pace.instructions
        else:
            first_block = environment[Slot.BLOCKS_DONE]
            instructions = pace.instructions
            if self.launch.max_instructions is not None:
                instructions = min(instructions, LIMIT_STEP)
            last_block = min(
                last_block, first_block + max(1, instructions // self._instructions_per_block)
            )
            if self.update_log is not None:
                last_block = min(last_block, first_block + self.update_log.sizes.blocks)
        counts, records = start + launch_template.counts_at, start + launch_template.records_at
        started = time.perf_counter()
        status = kernel.run(start, counts, records, first_block, last_block)
        seconds = time.perf_counter() - started
        self.seconds += seconds
        if self.tiered is not None:
            self.tiered.tiers.add_seconds(kernel, seconds)
            if environment[Slot.INTERLEAVING] == Interleaving.WANTED:
                self.tiered.block_times.miss_interleaving(seconds)
        # The code ended the blocks of this slice, not the whole part.
        if not kernel.suspends and status == Status.ENDED and last_block < self.blocks.stop:
            status = Status.PAUSED
        if status == Status.DEADLOCK and (self._reclaims_withheld() or self._is_to_look_again()):
            status = Status.PAUSED
        elif status == Status.PAUSED:
            if self.update_log is None or not self.update_log.is_full:  # else it paused early
                pace.adjust(seconds)
            if self._is_past_limit():
                return Status.LIMIT
            self._switch_to_better_code()
        return status

    def _reclaims_withheld(self) -> bool:
        """Returns whether blocks are withheld, for which the threads may wait; these blocks follow
        in this part again."""
        if not self.withheld:
            return False
        self._end_at(self.withheld.stop)
        self.withheld = range(0)
        self.expect_changes()
        self.buffers.plan.stuck_blocks = 0
        return True

    def _is_to_look_again(self) -> bool:
        """Returns whether the launch, whose threads all wait for memory, is to look at memory
        again, after waiting until launches of other streams have run (`Cancellation.await_others`).
        If so, counts a change of memory and resets the count of stuck blocks, so that each of them
        is tried again. False for a part that is not the whole launch."""
        whole = len(self.blocks) == self.launch.blocks
        # Not `slots`, which better code may have replaced since.
        slots = self._array(Slot.SLOTS_AT, self._slots)
        occupied = occupied_slots(self.buffers.plan, slots)
        if not whole or not self.launch.cancellation.await_others(self.changes, occupied):
            return False
        if self.launch.placement is not None:
            self.write_slots()  # others may have ended
        self.expect_changes()
        self.buffers.plan.stuck_blocks = 0
        return True

    def _switch_to_better_code(self) -> None:
        """Moves a paused launch to better code if there is some. From code of another variant
        (baseline code, sanitized code for any order) it converts its buffers, gives the old ones
        back, and sets up the host callbacks for the new environment; code of one variant has the
        same layout."""
        if self.tiered is None:
            return
        new_template = self.tiered.better(self.launch_template)
        if new_template is None:
            return
        old_template, old_buffers = self.launch_template, self.buffers
        self.launch_template = new_template
        if old_template.kernel.variant == new_template.kernel.variant:
            return
        self.buffers = hand_over(old_template, old_buffers, new_template)
        if self.host_callbacks is not None:
            self.host_callbacks = HostCallbacks(
                self.host_callbacks.services,
                self.buffers.forget_bounds,
                self.environment,
                self.launch.cancellation,
            )
            # The old callback object writes to the old environment.
            self.environment[Slot.SERVICE_AT] = self.host_callbacks.address
        old_template.give_back(old_buffers)

    def _is_past_limit(self) -> bool:
        """Returns true if a kernel without loops has executed more instructions than its limit;
        other kernels check their budget in compiled code."""
        limit = self.launch.max_instructions
        if limit is None or self.kernel.suspends:
            return False
        layout, buffers = self.kernel.layout, self.buffers
        counts = buffers.counted[: 8 * layout.size].view(np.int64)
        return layout.executed(counts) > limit

    @property
    def kernel(self) -> CompiledKernel:
        """Returns the code that the part runs in now."""
        return self.launch_template.kernel

    @property
    def environment(self) -> memoryview[int]:
        """Returns the environment in the part's buffers (words by `Slot`)."""
        return self.buffers.environment

    @property
    def _instructions_per_block(self) -> int:
        """Returns how many warp instructions a block executes, estimated for a kernel without
        loops: each instruction once in each warp."""
        return len(self.kernel.program.instructions) * self.launch.warps_per_block

    @property
    def following(self) -> int:
        """Returns the number of the first block that has not begun."""
        if self.kernel.suspends:
            return self.buffers.plan.next_block
        return self.environment[Slot.BLOCKS_DONE]

    @property
    def blocks_done(self) -> int:
        """Returns the number of the part's blocks that have ended, or that have begun if several
        are resident."""
        return self.environment[Slot.BLOCKS_DONE] - self.blocks.start

    @property
    def is_cancelled(self) -> bool:
        """Returns whether the part is to end at its next pause."""
        return self.launch.cancellation.requested or self.is_stopped

    @property
    def changes(self) -> int:
        """Returns how often the part has changed memory."""
        return int(self.buffers.plan.changes)

    def expect_changes(self) -> int:
        """Adds 1 to the part's count of memory changes, and returns it. Other workers may have
        changed memory: warps that wait for a change then look at it again."""
        self.buffers.plan.changes += 1
        return self.changes

    def interleave(self, allowed: Interleaving) -> None:
        """Lets code interleave warps from now on, as far as that is `allowed`; changes nothing if
        that is UNKNOWN."""
        if allowed is not Interleaving.UNKNOWN:
            self.environment[Slot.INTERLEAVING] = allowed

    def share(self, update_log: PartLog | None = None) -> None:
        """Has atomics on global memory performed as atomic operations of the host: other workers
        run other parts. Those whose order shows go to a log, if there is one."""
        self.environment[Slot.IS_SHARED] = 1
        self.log_updates(update_log)

    def log_updates(self, log: PartLog | None) -> None:
        """Has updates whose order shows appended to a log from now on; performed if it is None."""
        self.update_log = log
        self.environment[Slot.UPDATE_LOG_AT] = 0 if log is None else log.address

    def leave_following(self) -> range:
        """Leaves the blocks that have not begun to other parts, and returns them; for a part that
        pauses."""
        left = range(self.following, self.blocks.stop)
        self._end_at(left.start)
        self.share()
        return left

    def withhold_following(self) -> None:
        """Withholds the blocks that have not begun (`withheld`), for several workers to run them
        once this part has ended; for a part that pauses. If its threads wait for withheld blocks,
        the part runs these itself."""
        self.withheld = range(self.following, self.blocks.stop)
        self._end_at(self.withheld.start)

    def _end_at(self, stop: int) -> None:
        self.blocks = range(self.blocks.start, stop)
        self.buffers.plan.blocks = stop

    @cached_property
    def slots(self) -> Words:
        """Returns a view of the number of the block in each slot, negative if none runs there."""
        return self._array(Slot.SLOTS_AT, self._slots)

    def slots_of_blocks(self) -> Words:
        """Returns the slot that each block of a launch has had, if its kernel reads `%smid`; of
        blocks without a schedule, which end in order, by their numbers."""
        plan = self.buffers.plan
        if not self.kernel.suspends:
            return np.arange(self.launch.blocks) % plan.available
        return self._array(Slot.SLOTS_AT, slot_words(plan))[plan.slots :].copy()

    @cached_property
    def states(self) -> Words:
        """Returns the scheduler states of all warps in the slots (`WarpState`)."""
        warps = self._slots * self.launch.warps_per_block
        return self._array(Slot.STATES_BASE, warps * WarpState.WORDS)

    @cached_property
    def tables(self) -> Words:
        """Returns the contexts of all warps in the slots, one after the other in 64-bit words;
        each begins with the warp's state table."""
        warps, size = self._slots * self.launch.warps_per_block, self.kernel.context_bytes // 8
        return self._array(Slot.CONTEXTS_BASE, warps * size)

    @property
    def faulted(self) -> int:
        """Returns the index of the instruction at which a fault was found."""
        return self.environment[Slot.FAULT_INSTRUCTION]

    def unfinished(self) -> dict[int, WarpTable]:
        """Returns the state tables of the resident blocks' warps that have not ended, by their
        number in the launch (block * warps per block + warp)."""
        warps = self.launch.warps_per_block
        return {
            block * warps + warp: table_of(self.buffers.plan, self.tables, slot * warps + warp)
            for slot, block in enumerate(self.slots.tolist())
            if block >= 0
            for warp in range(warps)
            if WarpState(self.states, 0, slot * warps + warp).status != schedule_layout.ENDED
        }

    @property
    def _slots(self) -> int:
        """Returns the number of slots for resident blocks."""
        return self.launch_template.slots

    def _array(self, slot: Slot, words: int) -> Words:
        """Returns a view of the first `words` 64-bit words of the array whose address environment
        slot `slot` holds."""
        return self.buffers.words(self.launch_template.starts[slot], words)
