"""Runs all thread blocks of a launch on the reference machine, one instruction of one warp at a
time; a turn is what a warp executes between two decisions of the scheduler.

The schedule is that of `simt.scheduling`, which compiled code follows too. A chooser (the explorer
of interleavings) or scheduler locking (the debugger) may override which warp runs next.
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
from warploom.machine.reference.turns import Choose, choice_from_list, runnable_warps
from warploom.machine.reference.warp import begin_turn, step_in_turn
from warploom.simt import block_slots, schedule_layout, scheduling
from warploom.simt.schedule_layout import (
    RUNNABLE,
    Plan,
    WarpState,
    Words,
    slot_words,
    table_of,
)

EVERYWHERE = range((1 << 63) - 1)
"""All host addresses."""


def schedule_arrays(launch: Launch, plan: Plan) -> tuple[Words, Words, Words]:
    """Returns the arrays of the schedule, of Python integers, before a launch begins: the block in
    each slot (`schedule_layout.slot_words`), and the scheduler state and the table of each warp in
    the slots, all zero."""
    # Python integers, because masks of 64 lanes do not fit a signed word.
    slots: Words = np.full(slot_words(plan), schedule_layout.EMPTY_SLOT, np.object_)
    warps = plan.slots * launch.warps_per_block
    states: Words = np.zeros(warps * WarpState.WORDS, np.object_)
    tables: Words = np.zeros(warps * plan.table_stride, np.object_)
    return slots, states, tables


class Grid:
    """The thread blocks of a launch in execution, of which one warp at a time has a turn.

    `resident` are the warps of the block in each slot for resident blocks, `clusters` the shared
    memory of each cluster by its first slot, `warp` the warp whose turn it is, else None. `choose`
    selects the next of the runnable warps (`state.Chooser`); if None, the schedule does. `digest`
    returns a number that changes with a warp's registers (`scheduling.after_run`). `locked` is the
    warp, by block and number, that alone runs while it can.
    """

    def __init__(self, run: LaunchState) -> None:
        """`run` is the state of the launch; `choose` is its listener's if that is a Chooser, else
        follows the turns of the schedule if it lists any, else is None."""
        self.run = run
        self.choose: Choose | None = None
        if isinstance(run.listener, Chooser):
            self.choose = run.listener.choose
        elif run.launch.schedule.turns:
            self.choose = choice_from_list(run.launch.schedule.turns)
        self.digest: Callable[[Warp], int] = register_digest
        self.resident: dict[int, list[Warp]] = {}
        self.clusters: dict[int, Bytes] = {}
        self.warp: Warp | None = None
        self.locked: tuple[int, int] | None = None

    def lock(self, warp: tuple[int, int] | None) -> None:
        """Restricts execution to one warp, by its block and number, while it is runnable; None
        lifts the restriction. Another warp that is running yields."""
        self.locked, running = warp, self.warp
        if (
            warp is not None
            and running is not None
            and (running.block.number, running.number) != warp
        ):
            # It may be in the middle of a basic block, where no turn can end otherwise.
            interrupt(running)
            self._handle_status(running, schedule_layout.TURN_END)

    def begin(self) -> bool:
        """Begins the turn (its instructions until the scheduler selects again) of the next runnable
        warp, selected by scheduler locking or the chooser if they can, else by the schedule, unless
        a turn is in progress; `step` executes it. Returns False after ending the launch if all
        blocks have ended. Raises DeadlockError if no warp can ever run again."""
        run = self.run
        while self.warp is None:
            chosen = locked_turn(run, self.locked) if self.locked else self._begin_chosen_turn()
            warp_number = self._begin_scheduled_turn() if chosen is None else chosen
            if warp_number == schedule_layout.DEADLOCK and self._is_to_look_again():
                continue
            if warp_number < 0:
                self._end(warp_number)
                return False
            warp = self._current(warp_number)
            self._handle_status(warp, begin_turn(warp))
        return True

    def _is_to_look_again(self) -> bool:
        """Returns whether the launch, whose threads all wait for memory, is to look at memory
        again, after waiting until launches of other streams have run (`Cancellation.await_others`).
        If so, counts a change of memory and resets the count of stuck blocks, so that each of them
        is tried again."""
        plan, launch = self.run.plan, self.run.launch
        occupied = schedule_layout.occupied_slots(plan, self.run.slots)
        if not launch.cancellation.await_others(plan.changes, occupied):
            return False
        plan.available = launch.available_slots  # others may have ended
        plan.changes += 1
        plan.stuck_blocks = 0
        return True

    def _begin_chosen_turn(self) -> int | None:
        """Begins a turn of the warp that the chooser selects among the runnable ones, and returns
        its number. Before that, begins every block that has a free slot (`runnable_warps`). Returns
        None, and the schedule has to decide, if there is no chooser or no runnable warp, or if the
        chooser selects none, or one that cannot run."""
        if self.choose is None:
            return None
        runnable = runnable_warps(self.run, self._begin_block)
        chosen = self.choose(runnable) if runnable else None
        return locked_turn(self.run, chosen) if chosen else None

    def _begin_scheduled_turn(self) -> int:
        """Begins a turn of the warp that the schedule selects, and passes it to the chooser, if
        there is one, which records it; returns its number in the current block, or DONE or
        DEADLOCK, which are negative."""
        run = self.run
        number = scheduling.next_warp(run.plan, run.slots, run.states, run.tables)
        if self.choose is not None and number >= 0:
            # The chooser records every turn, also those that it does not decide.
            self.choose([(run.plan.current_block, number)])
        return number

    def step(self) -> None:
        """Executes one instruction of the running warp, of which there must be one; it may end the
        turn."""
        assert self.warp is not None
        self._handle_status(self.warp, step_in_turn(self.warp))

    def enter_mid_turn(self, warp: Warp, used: int) -> None:
        """Makes a warp the running one, in the middle of a turn in which it has executed `used`
        instructions, at the start of the basic block where its table has it; `step` executes. The
        turn ends if its lanes have to wait there (`enter_block`)."""
        warp.used = used
        self._handle_status(warp, enter_block(warp, warp.splits.block))

    def _handle_status(self, warp: Warp, status: int) -> None:
        """Makes a warp the running one if its status is RUNNABLE, else ends its turn: adds the
        instructions that it used to its `issued`, and passes the scheduler the status and a digest
        of its registers, by which a warp that spins is recognized. If the warp has ended, reports
        the end of its block to the observer (`_observe_end`)."""
        if status == RUNNABLE:
            self.warp = warp
            return
        self.warp = None
        warp.state.issued += warp.used
        scheduling.after_run(
            self.run.plan, warp.state, warp.splits.table, status, self.digest(warp)
        )
        if self.run.observer is not None and status == schedule_layout.ENDED:
            self._observe_end(warp)

    def _observe_end(self, ended_warp: Warp) -> None:
        """Reports the end of the block of `ended_warp`, which is in the current slot
        (`plan.slot`), to the observer, which must exist, if all its warps have ended."""
        warps = self.resident[self.run.plan.slot]
        if all(warp.state.status == schedule_layout.ENDED for warp in warps):
            assert self.run.observer is not None
            self.run.observer.block_ends(ended_warp.block.number)

    def _current(self, number: int) -> Warp:
        """Returns warp `number` of the block in the current slot; if that block is new (`fresh`),
        it is begun first."""
        if self.run.plan.fresh:
            self._begin_block()
        return self.resident[self.run.plan.slot][number]

    def _begin_block(self) -> None:
        """Begins the block that has entered the current slot. Completes or drops the late copies of
        the slot's last block; creates the block's shared memory (a cluster's with its first block,
        retained for later clusters of these slots) and its warps; reports it to the observer; and
        clears `fresh`. Raises the fault of tensor memory that the last block has not freed."""
        run, plan, warps = self.run, self.run.plan, self.run.launch.warps_per_block
        slot, plan.fresh = plan.slot, 0
        # The slot's last block has ended; its asynchronous copies must not write to the new one.
        if slot in self.resident:
            ended = self.resident[slot][0].block
            tensors.check_freed(run, ended)
            tensors.retire(run, tensors.shared_range(run, ended))
        leader_slot = slot - slot % run.launch.cluster_blocks
        if leader_slot not in self.clusters:
            self.clusters[leader_slot] = new_cluster(run)
        block = new_block(run, plan.current_block, self.clusters[leader_slot])
        self.resident[slot] = [
            new_warp(block, i, WarpState(run.states, 0, row), table_of(plan, run.tables, row))
            for i, row in enumerate(range(slot * warps, (slot + 1) * warps))
        ]
        if run.observer is not None:
            run.observer.block_begins(block.number)

    def _end(self, status: int) -> None:
        """Ends the launch with a status of the schedule: raises DeadlockError for DEADLOCK, else
        completes the asynchronous operations of the last resident blocks, and raises the fault of
        tensor memory that they have not freed."""
        if status != schedule_layout.DEADLOCK:
            tensors.retire(self.run, EVERYWHERE)
            for warps in self.resident.values():
                tensors.check_freed(self.run, warps[0].block)
        if status == schedule_layout.DEADLOCK:
            slots = self.run.slots
            blocks = {slot: w[0].block for slot, w in self.resident.items() if slots[slot] >= 0}
            raise _deadlock(self.run, blocks, self.resident)


def run_blocks(run: LaunchState) -> None:
    """Runs every block to its end. Raises DeadlockError if no warp can ever run again, and the
    faults and limits that end the launch."""
    block_slots.start_blocks(run.plan, run.slots)
    grid = Grid(run)
    while grid.begin():
        while grid.warp is not None:
            grid.step()


def register_digest(warp: Warp) -> int:
    """Returns a CRC-32 of a warp's registers and of the instructions at which it was
    interrupted."""
    digest = 0
    for value in warp.registers.values():
        digest = zlib.crc32(value.tobytes(), digest)
    interrupted = warp.interrupted.values()
    return zlib.crc32(repr(sorted(interrupted)).encode(), digest) if interrupted else digest


def _deadlock(
    run: LaunchState, blocks: dict[int, ThreadBlock], resident: dict[int, list[Warp]]
) -> Exception:
    """Returns the error that lists what the lanes of all warps of `blocks` wait for; `blocks` and
    their warps (`resident`) are by slot."""
    waiting: list[WaitingLanes] = []
    for slot, block in blocks.items():
        for warp in resident[slot]:
            waiting += waiting_lanes(
                run.program, block.number, warp.number, warp.state, warp.splits.table
            )
    return deadlock_error(run.program, run.launch, waiting, _started(run))


def _started(run: LaunchState) -> int:
    """Returns the number of thread blocks that have started: the number of the next one."""
    return run.plan.next_block
