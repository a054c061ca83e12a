"""Prepares a launch of compiled code: its arrays, and the environment that names them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from warploom.codegen.environment import Slot, Status
from warploom.codegen.jit import CompiledKernel
from warploom.machine.configurations import Configuration
from warploom.machine.desk import Desk
from warploom.machine.handover import hand_over
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.machine.outfit import Outfit, Room
from warploom.machine.services import Services
from warploom.rules import plan_words

LIMIT_STEP = 1 << 20
"""At most so many warp instructions are executed between two looks at `max_instructions`."""

Words = npt.NDArray[np.int64]


@dataclass(eq=False)
class Work:
    """The arrays of a launch, or of the part of it that one worker has: the blocks from the first
    of `blocks` up to but not including its last. `kept` holds what only the environment points to.
    `configuration`: where it may find better code to go on in; None where it ends as it began.
    """

    outfit: Outfit
    launch: Launch
    memory: DeviceMemory
    blocks: range
    room: Room
    desk: Desk | None
    kept: tuple[object, ...]
    configuration: Configuration | None = None

    @classmethod
    def prepare(
        cls,
        outfit: Outfit,
        launch: Launch,
        memory: DeviceMemory,
        caches: Words,
        blocks: range,
        configuration: Configuration | None = None,
    ) -> Work:
        """Returns what a launch starts from; `caches` are the counted ones (`rules.caches`)."""
        room = outfit.room()
        plan, environment = room.plan, room.environment
        plan[plan_words.NEXT_BLOCK], plan[plan_words.BLOCKS] = blocks.start, blocks.stop
        room.parameters[: len(launch.parameters)] = np.frombuffer(launch.parameters, np.uint8)
        if launch.globals:
            room.globals[: len(launch.globals)] = launch.globals
        table, textures = memory.table(), memory.textures.table()
        environment[Slot.ALLOCATIONS_AT] = table.address
        environment[Slot.ALLOCATIONS] = table.count
        environment[Slot.TEXTURES_AT] = textures.address
        environment[Slot.BLOCKS_DONE] = blocks.start
        environment[Slot.HIERARCHY_AT] = caches.ctypes.data
        desk = None
        if outfit.serves:
            services = Services(outfit.kernel.program, launch, memory)
            desk = Desk(services, room.forget_bounds, environment)
            environment[Slot.SERVICE_AT] = desk.address
        kept = caches, table, textures
        return cls(outfit, launch, memory, blocks, room, desk, kept, configuration)

    def go_on(self) -> int:
        """Run the blocks in this thread, but not for long; gives a Status, PAUSED where there is
        more to do."""
        outfit, environment = self.outfit, self.room.environment
        kernel, pace, start = outfit.kernel, outfit.pace, self.room.address
        first, last = self.blocks.start, self.blocks.stop
        if kernel.suspends:
            environment[Slot.PAUSE_AT] = environment[Slot.BUDGET] - pace.instructions
        else:
            first = int(environment[Slot.BLOCKS_DONE])
            most = pace.instructions
            if self.launch.max_instructions is not None:
                most = min(most, LIMIT_STEP)
            last = min(last, first + max(1, most // self._instructions_per_block))
        counts, rows = start + outfit.counts_at, start + outfit.rows_at
        began = time.perf_counter()
        status = kernel.run(start, counts, rows, first, last)
        if kernel.baseline and self.configuration is not None:
            self.configuration.tiers.seconds += time.perf_counter() - began
        if not kernel.suspends and status == Status.ENDED and last < self.blocks.stop:
            status = Status.PAUSED
        if status == Status.PAUSED:
            pace.took(time.perf_counter() - began)
            if self._is_past_limit():
                return Status.LIMIT
            self._go_on_better()
        return status

    def _go_on_better(self) -> None:
        """Changes to better code of the kernel, if there is some by now."""
        after = None
        if self.configuration is not None:
            after = self.configuration.better(self.outfit)
        if after is None:
            return
        before, old = self.outfit, self.room
        self.outfit, self.room = after, hand_over(before, old, after)
        if self.desk is not None:
            stop = self.desk.stop
            self.desk = Desk(self.desk.services, self.room.forget_bounds, self.environment)
            self.desk.stop = stop
            self.environment[Slot.SERVICE_AT] = self.desk.address
        before.give_back(old)

    def _is_past_limit(self) -> bool:
        """Returns whether a kernel in which nothing repeats has executed more instructions than it
        may; others look at their budget themselves."""
        limit = self.launch.max_instructions
        if limit is None or self.kernel.suspends:
            return False
        layout, room = self.kernel.layout, self.room
        counts = room.counted[: 8 * layout.size].view(np.int64)
        return layout.executed(counts) > limit

    @property
    def kernel(self) -> CompiledKernel:
        return self.outfit.kernel

    @property
    def environment(self) -> Words:
        return self.room.environment

    @property
    def _instructions_per_block(self) -> int:
        """Return, of a kernel in which nothing repeats, as many as there can be where no lanes
        part."""
        return len(self.kernel.program.instructions) * self.launch.warps_per_block

    @property
    def started(self) -> int:
        """Return the first block that has not begun."""
        return int(self.room.plan[plan_words.NEXT_BLOCK])

    @cached_property
    def slots(self) -> Words:
        """Return the block in each slot, or -1."""
        return self._array(Slot.SLOTS_AT, self._slots)

    @cached_property
    def states(self) -> Words:
        """Return the states of all warps in the slots."""
        warps = self._slots * self.launch.warps_per_block
        words = self._array(Slot.STATES_BASE, warps * plan_words.STATE_WORDS)
        return words.reshape(warps, plan_words.STATE_WORDS)

    @cached_property
    def tables(self) -> Words:
        """Return the tables of all warps in the slots, each at the start of its context."""
        warps, size = self._slots * self.launch.warps_per_block, self.kernel.context_bytes // 8
        return self._array(Slot.CONTEXTS_BASE, warps * size).reshape(warps, size)

    @property
    def faulted(self) -> int:
        """Return the instruction at which a fault was found."""
        return int(self.environment[Slot.FAULT_INSTRUCTION])

    def unfinished(self) -> dict[int, Words]:
        """Return the tables of the warps that have not ended, by their number in the launch."""
        warps = self.launch.warps_per_block
        return {
            block * warps + warp: self.tables[slot * warps + warp]
            for slot, block in enumerate(self.slots.tolist())
            if block >= 0
            for warp in range(warps)
            if self.states[slot * warps + warp][plan_words.STATUS] != plan_words.ENDED
        }

    @property
    def _slots(self) -> int:
        return self.outfit.slots

    def _array(self, slot: Slot, words: int) -> Words:
        return self.room.words(self.outfit.starts[slot], words)
