"""Compiled code that runs a launch part by part, for a debugger.

`BlockEngine` runs the code that a launch has without a debugger, some blocks at a time. That is as
fast as the kernel is, and the state between two blocks is memory alone. `TurnEngine` stops between
any two turns of warps (`simt.scheduling`): its code keeps every register in the contexts of warps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import Slot, Status
from warploom.compilation.jit import CompiledKernel
from warploom.core.lazy import cached_property
from warploom.debug.target import Target
from warploom.ir.variant import Debugging
from warploom.lower.instrument.watchpoints import WatchedRange
from warploom.machine.caches import NO_CACHES
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.initial_contents import CURRENT_BLOCK_SLOTS
from warploom.machine.compiled.launch_template import LaunchTemplate, TieredTemplate
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.compiled.work import WorkerLaunch
from warploom.program.program import Program
from warploom.simt.schedule_layout import Plan
from warploom.simt.scheduling import WHOLE_TURN

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


SLICE = 128
"""The least warp instructions that `TurnEngine` runs at a time: what it can go nearer to."""


@dataclass(frozen=True)
class BetweenBlocks:
    """The state of a launch of which the blocks before `following` have ended, no other begun."""

    following: int

    @property
    def bytes(self) -> int:
        """Returns the memory that it takes up."""
        return 0

    @property
    def blocks(self) -> range:
        """Returns the blocks that run: up to the one that follows."""
        return range(self.following, self.following)


@dataclass(frozen=True)
class BetweenTurns:
    """The state of a launch between two turns: the arrays of a `TurnEngine`, those of blocks for as
    many slots as were in use, and numbers of its environment. `blocks` are those from the first
    that is resident up to the next to begin, None where they begin in another order."""

    numbers: dict[Slot, int]
    arrays: dict[Slot, Bytes]
    resident: int
    blocks: range | None

    @property
    def bytes(self) -> int:
        """Returns the memory that it takes up."""
        return sum(array.nbytes for array in self.arrays.values())


State = BetweenBlocks | BetweenTurns


class Engine(Protocol):
    """Runs a launch part by part."""

    executed: int
    """Warp instructions since `load`."""
    failed: bool
    """True where the launch has stopped with an error."""

    def load(self, state: State) -> None:
        """Starts from a state; memory is as it was then."""
        ...

    def save(self) -> State: ...

    def advance(self, instructions: int) -> bool:
        """Runs about so many warp instructions; returns False where the launch has stopped, by its
        end or by an error."""
        ...

    @property
    def counts(self) -> Words:
        """Returns what was executed since `load`, as `CountLayout` has it; after that, accesses to
        what is watched."""
        ...


LONGEST = 4.0
"""Seconds that blocks may take together before they are run turn by turn instead."""


class BlockEngine:
    """Runs whole blocks. `interleaved` says that blocks have not run one after the other, or do not
    come to an end: what it did since `load` is then of no use. `look_up` is called now and then.
    `watch` are the words of `lower.instrument.watchpoints`, if accesses are counted; `last` is
    where it stops at the latest."""

    def __init__(
        self, target: Target, look_up: Callable[[], None], watch: Words | None = None
    ) -> None:
        self._target, self._look_up, self._watch = target, look_up, watch
        self.last = target.launch.blocks
        self._compiled = CompiledEngine(target.spec, target.options)
        self.executed, self.failed, self.interleaved = 0, False, False
        self._following, self._rate = 0, 0.0

    @cached_property
    def _template(self) -> TieredTemplate:
        launch = self._target.compiled_launch
        debugging = None if self._watch is None else Debugging(steps=False, watches=True)
        tiers = self._compiled.tiers(self._target.program, launch, debugging=debugging)
        return TieredTemplate(tiers, launch)

    @property
    def kernel(self) -> CompiledKernel:
        """Returns the machine code."""
        return self._template.current().kernel

    def load(self, state: State) -> None:
        assert isinstance(state, BetweenBlocks)
        self._following = state.following
        self.executed, self.failed, self.interleaved = 0, False, False
        self._counts = np.zeros(self.kernel.layout.size + 1, np.int64)

    def save(self) -> State:
        return BetweenBlocks(self._following)

    @property
    def counts(self) -> Words:
        return self._counts.copy()

    def advance(self, instructions: int) -> bool:
        count = int(instructions / self._rate) if self._rate else 1
        last = min(self.last, self._following + max(1, count))
        part = range(self._following, last)
        work = WorkerLaunch.prepare(
            self._template.current(),
            self._target.compiled_launch,
            self._target.memory,
            NO_CACHES,
            part,
            self._template,
        )
        hits = 0
        if self._watch is not None:
            work.environment[Slot.WATCH_AT] = int(self._watch.ctypes.data)
            hits = int(self._watch[WatchedRange.hits])
        status, began = Status.PAUSED, time.monotonic()
        while status == Status.PAUSED and time.monotonic() - began < LONGEST:
            self._look_up()
            status = Status(work.run_slice())
        layout = self.kernel.layout
        counted = work.buffers.counted[: 8 * layout.size].view(np.int64)
        executed = layout.executed(counted)
        self._counts[:-1] += counted
        self._counts[-1] += 0 if self._watch is None else int(self._watch[WatchedRange.hits]) - hits
        self.executed += executed
        self._rate = executed / len(part)
        resident = work.buffers.plan.most_resident
        self.interleaved |= bool(resident > 1) or status in (Status.DEADLOCK, Status.PAUSED)
        self._following, self.failed = last, status != Status.ENDED
        work.launch_template.give_back(work.buffers)
        return not self.failed and last < self._target.launch.blocks


class TurnEngine:
    """Runs turn by turn; a kernel in which nothing repeats, block by block. `watch` are the words
    of `lower.instrument.watchpoints`, if accesses are counted."""

    def __init__(self, target: Target, watch: Words | None = None) -> None:
        self._target, self._watch = target, watch
        self._compiled = CompiledEngine(target.spec, target.options)
        self.executed, self.failed = 0, False

    @cached_property
    def _tiers(self) -> Tiers:
        """Returns the code tiers of a program in which all registers are live."""
        program, launch = self._target.program, self._target.compiled_launch
        whole = program.cache.get("all live")
        if whole is None:
            whole = program.cache["all live"] = program.with_all_live()
        debugging = Debugging(steps=True, watches=self._watch is not None)
        return self._compiled.tiers(cast(Program, whole), launch, debugging=debugging)

    @property
    def kernel(self) -> CompiledKernel:
        """Returns the machine code; all of a variant has one layout."""
        return self._tiers.kernel()

    @cached_property
    def work(self) -> WorkerLaunch:
        """Returns the arrays of the launch."""
        target = self._target
        launch_template = LaunchTemplate.of(self.kernel, target.compiled_launch)
        blocks = range(target.launch.blocks)
        work = WorkerLaunch.prepare(
            launch_template, target.compiled_launch, target.memory, NO_CACHES, blocks
        )
        if self._watch is not None:
            work.environment[Slot.WATCH_AT] = int(self._watch.ctypes.data)
        return work

    @cached_property
    def _fresh(self) -> BetweenTurns:
        """Returns the arrays before the launch begins."""
        return self._saved(0)

    def load(self, state: State) -> None:
        work, fresh = self.work, self._fresh
        for slot, part in self._arrays(work.buffers.plan.most_resident or 1):
            if slot in work.launch_template.bytes_per_slot:
                part[:] = 0
        self._put(fresh)
        if isinstance(state, BetweenTurns):
            self._put(state)
        else:
            work.buffers.plan.next_block = state.following
            work.environment[Slot.BLOCKS_DONE] = state.following
        work.buffers.forget_bounds()
        if work.host_callbacks is not None:
            work.host_callbacks.error = None
            work.host_callbacks.publish_allocations(anew=True)
        self._start = work.environment[Slot.BUDGET]
        self.executed, self.failed = 0, False
        self._before = self._counted()

    def save(self) -> State:
        if not self.kernel.suspends:
            return BetweenBlocks(self.work.environment[Slot.BLOCKS_DONE])
        return self._saved(self.work.buffers.plan.most_resident)

    def advance(self, instructions: int) -> bool:
        work, environment = self.work, self.work.environment
        launch_template, address = work.launch_template, work.buffers.address
        first, last = 0, self._target.launch.blocks
        if self.kernel.suspends:
            environment[Slot.PAUSE_AT] = environment[Slot.BUDGET] - instructions
            environment[Slot.SLICE] = min(max(instructions // 16, SLICE), WHOLE_TURN)
        else:
            first = environment[Slot.BLOCKS_DONE]
            each = len(self._target.program.instructions) * self._target.launch.warps_per_block
            last = min(last, first + max(1, instructions // each))
        places = address, address + launch_template.counts_at, address + launch_template.records_at
        kernel, began = self.kernel, time.perf_counter()
        status = kernel.run(*places, first, last)
        self._tiers.add_seconds(kernel, time.perf_counter() - began)
        if self.kernel.suspends:
            self.executed = self._start - environment[Slot.BUDGET]
            more = status == Status.PAUSED
        else:
            self.executed = self.kernel.layout.executed(self.counts[:-1])
            more = status == Status.ENDED and last < self._target.launch.blocks
        self.failed = status not in (Status.PAUSED, Status.ENDED)
        return more

    @property
    def counts(self) -> Words:
        return self._counted() - self._before

    def _counted(self) -> Words:
        size = self.kernel.layout.size
        made = np.empty(size + 1, np.int64)
        made[:-1] = self.work.buffers.counted[: 8 * size].view(np.int64)
        made[-1] = 0 if self._watch is None else self._watch[WatchedRange.hits]
        return made

    def _saved(self, resident: int) -> BetweenTurns:
        """Returns the arrays that change, of as many slots as were in use."""
        environment = self.work.environment
        own = {slot: environment[slot] for slot in _NUMBERS}
        own |= {at: environment[at] - environment[base] for base, at in CURRENT_BLOCK_SLOTS.items()}
        arrays = {slot: part.copy() for slot, part in self._arrays(resident)}
        return BetweenTurns(own, arrays, resident, self._running())

    def _running(self) -> range | None:
        """Returns the blocks from the first that is resident up to the next to begin."""
        if self._target.launch.schedule.shuffles or self._target.launch.cluster_blocks > 1:
            return None
        following = self.work.buffers.plan.next_block
        resident = [block for block in self.work.slots.tolist() if block >= 0]
        return range(min(resident, default=following), following)

    def _put(self, state: BetweenTurns) -> None:
        environment = self.work.environment
        for slot in _NUMBERS:
            environment[slot] = state.numbers[slot]
        for base, at in CURRENT_BLOCK_SLOTS.items():
            environment[at] = environment[base] + state.numbers[at]
        for slot, part in self._arrays(state.resident):
            part[:] = state.arrays[slot]

    def _arrays(self, resident: int) -> Iterator[tuple[Slot, Bytes]]:
        """Yields the arrays that change while a launch runs, of so many slots."""
        work = self.work
        launch_template, arena = work.launch_template, work.buffers.arena
        sizes = {Slot.PLAN_AT: 8 * Plan.WORDS, Slot.SLOTS_AT: work.slots.nbytes}
        sizes |= {slot: resident * size for slot, size in launch_template.bytes_per_slot.items()}
        for slot, size in sizes.items():
            yield slot, arena[launch_template.starts[slot] :][:size]


_NUMBERS = (
    *(Slot.BUDGET, Slot.BLOCK, Slot.BLOCKS_DONE, Slot.IN_TURN, Slot.TURN_LEFT),
    *(Slot.CTAID_X, Slot.CTAID_Y, Slot.CTAID_Z),
)
"""Lists the words of an environment that change while a launch runs, beside addresses."""
