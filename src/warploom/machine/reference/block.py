"""All blocks of a launch: which warp has its turn, and what becomes of it.

The order is that of `simt.scheduling`, which the compiled engine follows too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from warploom.machine.faults.deadlock import WaitingLanes, deadlock_error, waiting_lanes
from warploom.machine.launch import Launch
from warploom.machine.reference import tensors
from warploom.machine.reference.control import enter_block
from warploom.machine.reference.interrupts import interrupt
from warploom.machine.reference.locking import locked_turn
from warploom.machine.reference.state import (
    Bytes,
    Chooser,
    LaunchState,
    ThreadBlock,
    Warp,
    new_block,
    new_cluster,
    new_warp,
)
from warploom.machine.reference.turns import Choose, listed_choice, runnable_warps
from warploom.machine.reference.warp import begin_turn, step_in_turn
from warploom.simt import schedule_layout, scheduling
from warploom.simt.schedule_layout import RUNNABLE, Words
from warploom.simt.warp_table import table_words


def schedule_arrays(launch: Launch, plan: Words) -> tuple[Words, Words, Words]:
    """Return the block in each slot, and the state and the table of each warp in the slots."""
    slots: Words = np.full((int(plan[schedule_layout.SLOTS]),), schedule_layout.DONE, np.object_)
    warps = len(slots) * launch.warps_per_block
    states: Words = np.zeros((warps, schedule_layout.STATE_WORDS), np.object_)
    tables: Words = np.zeros((warps, table_words(launch.warp_size)), np.object_)
    return slots, states, tables


class Grid:
    """The blocks of a launch, which take their turns one instruction at a time.

    `resident` are the warps of the block in each slot, `clusters` the shared memory of the blocks
    of each cluster by its first slot, `warp` the warp that has the turn: None between two turns.
    `choose` says who has the next turn, of those that can run (`state.Chooser`); None where that is
    the schedule's. `digest` stands for what the registers of a warp hold (`scheduling.after_run`).
    `locked` names the warp, by its block and number, that alone gets turns while it can run.
    """

    def __init__(self, run: LaunchState) -> None:
        self.run = run
        self.choose: Choose | None = None
        if isinstance(run.listener, Chooser):
            self.choose = run.listener.choose
        elif run.launch.schedule.turns:
            self.choose = listed_choice(run.launch.schedule.turns)
        self.digest: Callable[[Warp], int] = register_digest
        self.resident: dict[int, list[Warp]] = {}
        self.clusters: dict[int, Bytes] = {}
        self.warp: Warp | None = None
        self.locked: tuple[int, int] | None = None

    def lock(self, warp: tuple[int, int] | None) -> None:
        """Give turns to one warp alone, while it can run, by its block and number; None: to all
        again, as the schedule has them. Another warp that has the turn gives it up here."""
        self.locked, held = warp, self.warp
        if warp is not None and held is not None and (held.block.number, held.number) != warp:
            interrupt(held)
            self._handle_status(held, schedule_layout.TURN_END)

    def begin(self) -> bool:
        """Begin the turn of the next warp that can run; returns False where all have ended. Raises
        DeadlockError where none that is left ever can."""
        run = self.run
        while self.warp is None:
            locked = locked_turn(run, self.locked) if self.locked else self._begin_chosen_turn()
            number = self._begin_scheduled_turn() if locked is None else locked
            if number < 0:
                self._end(number)
                return False
            warp = self._current(number)
            self._handle_status(warp, begin_turn(warp))
        return True

    def _begin_chosen_turn(self) -> int | None:
        """Begin a turn of a warp that somebody chooses; return its number, None where nobody
        does or none is known to be able to run."""
        if self.choose is None:
            return None
        runnable = runnable_warps(self.run, self._begin_block)
        who = self.choose(runnable) if runnable else None
        return locked_turn(self.run, who) if who else None

    def _begin_scheduled_turn(self) -> int:
        """Begin a turn of the schedule's choice; return the warp's number, or why there is none."""
        run = self.run
        number = scheduling.next_warp(run.plan, run.slots, run.states, run.tables)
        if self.choose is not None and number >= 0:
            self.choose([(int(run.plan[schedule_layout.CURRENT_BLOCK]), number)])
        return number

    def step(self) -> None:
        """Execute one instruction of the warp that has the turn."""
        assert self.warp is not None
        self._handle_status(self.warp, step_in_turn(self.warp))

    def resume_at(self, warp: Warp, used: int) -> None:
        """Have a warp go on at its block, in the midst of a turn in which it has executed so many
        instructions."""
        warp.used = used
        self._handle_status(warp, enter_block(warp, warp.splits.block))

    def _handle_status(self, warp: Warp, status: int) -> None:
        """Keep the turn with a warp while it can run."""
        if status == RUNNABLE:
            self.warp = warp
            return
        self.warp = None
        warp.state[schedule_layout.ISSUED] += warp.used
        scheduling.after_run(
            self.run.plan, warp.state, warp.splits.table, status, self.digest(warp)
        )
        if self.run.observer is not None and status == schedule_layout.ENDED:
            self._observe_end(warp)

    def _observe_end(self, ended: Warp) -> None:
        """Tell the observer of a block whose last warp has ended."""
        warps = self.resident[int(self.run.plan[schedule_layout.SLOT])]
        if all(warp.state[schedule_layout.STATUS] == schedule_layout.ENDED for warp in warps):
            assert self.run.observer is not None
            self.run.observer.block_ends(ended.block.number)

    def _current(self, number: int) -> Warp:
        """Return a warp of the current block, which begins here where it is fresh."""
        if self.run.plan[schedule_layout.FRESH]:
            self._begin_block()
        return self.resident[int(self.run.plan[schedule_layout.SLOT])][number]

    def _begin_block(self) -> None:
        """Begin the block that has entered the current slot."""
        run, plan, warps = self.run, self.run.plan, self.run.launch.warps_per_block
        slot, plan[schedule_layout.FRESH] = int(plan[schedule_layout.SLOT]), 0
        if slot in self.resident:
            tensors.retire_block(run, self.resident[slot][0].block)
        leader = slot - slot % run.launch.cluster_blocks
        if leader not in self.clusters:
            self.clusters[leader] = new_cluster(run)
        block = new_block(run, int(plan[schedule_layout.CURRENT_BLOCK]), self.clusters[leader])
        first = slot * warps
        self.resident[slot] = [
            new_warp(block, i, run.states[first + i], run.tables[first + i]) for i in range(warps)
        ]
        if run.observer is not None:
            run.observer.block_begins(block.number)

    def _end(self, answer: int) -> None:
        """End the launch, by an answer of the schedule that is no warp."""
        for warps in self.resident.values():
            if answer != schedule_layout.DEADLOCK:
                tensors.retire_block(self.run, warps[0].block)
        if answer == schedule_layout.DEADLOCK:
            slots = self.run.slots
            blocks = {s: w[0].block for s, w in self.resident.items() if slots[s] >= 0}
            raise _deadlock(self.run, blocks, self.resident)


def run_blocks(run: LaunchState) -> None:
    """Run every block to its end. Raises DeadlockError where none that is left ever can."""
    scheduling.start_blocks(run.plan, run.slots)
    grid = Grid(run)
    while grid.begin():
        while grid.warp is not None:
            grid.step()


def register_digest(warp: Warp) -> int:
    """Return a number for what a warp's registers hold; equal states have equal ones."""
    digest = 0
    for value in warp.registers.values():
        digest = zlib.crc32(value.tobytes(), digest)
    places = warp.interrupted.values()
    return zlib.crc32(repr(sorted(places)).encode(), digest) if places else digest


def _deadlock(
    run: LaunchState, blocks: dict[int, ThreadBlock], resident: dict[int, list[Warp]]
) -> Exception:
    """Return the error, over every warp of the resident blocks that has not ended."""
    waiting: list[WaitingLanes] = []
    for slot, block in blocks.items():
        for warp in resident[slot]:
            waiting += waiting_lanes(
                run.program, block.number, warp.number, warp.state, warp.splits.table
            )
    return deadlock_error(run.program, run.launch, waiting, _started(run))


def _started(run: LaunchState) -> int:
    return int(run.plan[schedule_layout.NEXT_BLOCK])
