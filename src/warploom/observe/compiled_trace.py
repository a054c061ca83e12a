"""Converts the log of a recorded launch of compiled code into a trace, equal to that of the
reference machine but without registers.

The log has an entry for each basic block that a warp executed (`abi.log`); here it becomes one step
per instruction, with its active lanes, state and accesses. Log entries are processed as NumPy
columns, and equal states and access patterns once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.abi.access_kinds import lane_bytes, operation_number, space_number
from warploom.abi.log import (
    OPS,
    SPACES,
    TEXEL_SPACES,
    LogAccess,
    LogControl,
    LogEntry,
    LogGuard,
    LogNode,
    LogSplit,
)
from warploom.core.lazy import cached_property
from warploom.cost.address_pattern import AddressPattern
from warploom.cost.device_rules import AccessRules
from warploom.helpers.table import count_compiled
from warploom.isa.instruction import Space
from warploom.machine.compiled.logged_accesses import distinct_accesses
from warploom.machine.compiled.logs import Log
from warploom.machine.launch import WARP_SIZE, Launch
from warploom.observe import schema
from warploom.observe.contents import NO_CHANGES
from warploom.observe.recorder import RecordedTrace, accesses_of, as_column
from warploom.observe.tables import Patterns, States
from warploom.program.program import Program
from warploom.simt import warp_table
from warploom.simt.warp_table import WarpTable

Words = npt.NDArray[np.int64]

NO_WRITES = schema.Writes(0, b"", b"", b"", b"", b"")


@dataclass(frozen=True)
class Ending:
    """The end of a recorded launch: the instruction at which a fault was found (None without a
    fault), and the state tables of the unfinished warps, by their number in the launch."""

    faulted: int | None
    tables: dict[int, WarpTable]


class CompiledRecording:
    """Builds the trace of one log."""

    def __init__(
        self, program: Program, rules: AccessRules, launch: Launch, log: Log, ending: Ending
    ) -> None:
        self.program, self.launch, self.log, self.ending = program, launch, log, ending
        self._states = States()
        self._patterns = Patterns(program, rules, count_compiled)
        self._entries = log.rows(log.head.entries, LogEntry.WORDS)

    def recorded(self, live: Sequence[schema.Allocated]) -> RecordedTrace:
        """Returns the trace's parts; `live` are the allocations."""
        order, warps = self._warps()
        state = self._entry_states()[self._entry_of_step]
        entries = self._entries
        steps = schema.Steps(
            len(self._entry_of_step),
            as_column(order[entries[self._entry_of_step, LogEntry.warp]]),
            as_column(self._instructions),
            as_column(state),
            as_column(self._executing()),
            self._marks(),
        )
        accesses = self._accesses()
        head = self.log.head
        left_out = schema.LeftOut(head.left_steps, head.left_warps)
        return RecordedTrace(
            warps,
            self._states.rows,
            steps,
            self._patterns.sites,
            self._patterns.shapes,
            accesses,
            NO_WRITES,
            NO_CHANGES,
            tuple(live),
            left_out,
        )

    # ---- steps ------------------------------------------------------------------------------

    @cached_property
    def _visible(self) -> list[Words]:
        """Returns the instructions of each basic block that are steps of the trace."""
        hidden = self.program.hidden
        return [
            np.array(
                [index for index in range(block.start, block.stop) if index not in hidden], np.int64
            )
            for block in self.program.blocks
        ]

    @cached_property
    def _entry_steps(self) -> Words:
        """Returns the number of steps of each log entry; the current entry ends at the fault, if
        there was one."""
        sizes = np.array([len(visible) for visible in self._visible], np.int64)
        steps = sizes[self._entries[:, LogEntry.block]]
        current = self.log.head.current
        if self.ending.faulted is not None and current != warp_table.NONE:
            visible = self._visible[int(self._entries[current, LogEntry.block])]
            steps[current] = int(np.searchsorted(visible, self.ending.faulted, "right"))
        return steps

    @cached_property
    def _first_steps(self) -> Words:
        """Returns the first step of each log entry."""
        return np.concatenate(([0], np.cumsum(self._entry_steps)[:-1]))[: len(self._entry_steps)]

    @cached_property
    def _entry_of_step(self) -> Words:
        """Returns the log entry of each step."""
        return np.repeat(np.arange(len(self._entry_steps)), self._entry_steps)

    @cached_property
    def _instructions(self) -> Words:
        """Returns the instruction of each step."""
        first_of_block = np.concatenate(
            ([0], np.cumsum([len(shown) for shown in self._visible])[:-1])
        )
        every = np.concatenate([*self._visible, np.zeros(0, np.int64)])
        within = np.arange(len(self._entry_of_step)) - self._first_steps[self._entry_of_step]
        return every[first_of_block[self._entries[self._entry_of_step, LogEntry.block]] + within]

    @cached_property
    def _place_in_block(self) -> Words:
        """Returns the index of each instruction among the steps of its basic block."""
        positions = np.zeros(len(self.program.instructions), np.int64)
        for visible in self._visible:
            positions[visible] = np.arange(len(visible))
        return positions

    def _steps_of(self, entry: Words, instruction: Words) -> tuple[Words, npt.NDArray[np.bool_]]:
        """Returns the steps of instructions in log entries, and which of them were executed: those
        after a fault were not."""
        position = self._place_in_block[instruction]
        return self._first_steps[entry] + position, position < self._entry_steps[entry]

    def _executing(self) -> Words:
        """Returns the lanes of each step whose guard is true."""
        lanes = self._entries[self._entry_of_step, LogEntry.mask]
        guards = self.log.rows(self.log.head.guards, LogGuard.WORDS)
        step, is_recorded = self._steps_of(
            guards[:, LogGuard.entry], guards[:, LogGuard.instruction]
        )
        lanes[step[is_recorded]] = guards[is_recorded, LogGuard.lanes]
        return lanes

    def _marks(self) -> bytes:
        """Returns the marks of each step: those of an entry belong to its last step."""
        marks = np.zeros(len(self._entry_of_step), np.uint8)
        has_steps = self._entry_steps > 0
        marks[(self._first_steps + self._entry_steps - 1)[has_steps]] = self._entries[
            has_steps, LogEntry.marks
        ]
        return marks.tobytes()

    # ---- states -----------------------------------------------------------------------------

    def _entry_states(self) -> Words:
        """Returns the number of each entry's warp state."""
        columns = [LogEntry.warp, LogEntry.mask, LogEntry.live, LogEntry.control]
        rows = self._entries[:, columns].copy()
        existing = np.array([self._existing(w) for w in self._launched], np.int64)
        rows[:, 0] = existing[rows[:, 0]] if len(existing) else 0
        states = np.zeros(len(rows), np.int64)
        # Converged warps have few different states, so these are found by columns; diverged ones
        # are built one by one.
        converged = rows[:, 3] == warp_table.NONE
        if converged.any():
            kinds, which = np.unique(rows[converged], axis=0, return_inverse=True)
            numbers = [
                self._states.number(_table(kind[1], kind[2], None), int(kind[0])) for kind in kinds
            ]
            states[converged] = np.array(numbers)[which.reshape(-1)]
        state_of_key: dict[tuple[int, int, int, bytes], int] = {}
        for entry in np.flatnonzero(~converged).tolist():
            existing_lanes, mask, live, offset = rows[entry].tolist()
            control = self._control(offset)
            key = existing_lanes, mask, live, control.tobytes()
            if key not in state_of_key:
                state_of_key[key] = self._states.number(_table(mask, live, control), existing_lanes)
            states[entry] = state_of_key[key]
        return states

    def _control(self, offset: int) -> Words:
        """Returns the words of the log that describe the SIMT stack and the parked splits at
        `offset`."""
        start = self.log.head.controls.start + offset
        head = LogControl(self.log.data, start)
        length = head.nodes * LogNode.WORDS + head.splits * LogSplit.WORDS
        return self.log.data[start : start + LogControl.WORDS + length]

    # ---- warps ------------------------------------------------------------------------------

    @cached_property
    def _launched(self) -> list[int]:
        """Returns the number in the launch of each warp of the log."""
        numbers = self.log.numbers(self.launch)
        chosen = np.flatnonzero(numbers > 0)
        return chosen[np.argsort(numbers[chosen])].tolist()

    def _existing(self, warp: int) -> int:
        """Returns the mask of a warp's lanes that have a thread."""
        number = warp % self.launch.warps_per_block
        remaining = self.launch.threads_per_block - number * WARP_SIZE
        return (1 << min(remaining, WARP_SIZE)) - 1

    def _warps(self) -> tuple[Words, tuple[schema.Warp, ...]]:
        """Returns the position in the trace of each warp of the log, and the warps in that
        order."""
        sorted_warps = sorted(self._launched)
        position_of = {warp: i for i, warp in enumerate(sorted_warps)}
        order = np.array([position_of[warp] for warp in self._launched], np.int64)
        warps: list[schema.Warp] = []
        for warp in sorted_warps:
            existing = self._existing(warp)
            table = self.ending.tables.get(warp)
            final = self._states.number(_table(0, 0, None) if table is None else table, existing)
            block, number = divmod(warp, self.launch.warps_per_block)
            warps.append(schema.Warp(block, number, existing, final, False))
        return order, tuple(warps)

    # ---- accesses ---------------------------------------------------------------------------

    def _accesses(self) -> schema.Accesses:
        """Returns the columns of the accesses."""
        rows = self.log.rows(self.log.head.accesses, LogAccess.WORDS)
        # Bulk copies of the TMA have no lane addresses, and a trace has no texture accesses.
        by_lanes = operation_number(rows[:, LogAccess.kind]) < len(OPS)  # no copies of the TMA
        in_memory = space_number(rows[:, LogAccess.kind]) < SPACES.index(TEXEL_SPACES[0])
        rows = rows[by_lanes & in_memory]
        step, is_recorded = self._steps_of(rows[:, LogAccess.entry], rows[:, LogAccess.instruction])
        if self.ending.faulted is not None and len(self._entry_of_step):
            # What a fault was found in has not happened.
            is_recorded &= step != len(self._entry_of_step) - 1
        rows, step = rows[is_recorded], step[is_recorded]
        # The log has the places of local accesses in a thread's memory: their bases follow.
        local = space_number(rows[:, LogAccess.kind]) == SPACES.index(Space.LOCAL)
        first = rows[:, LogAccess.first_address]
        base = np.where(local, 0, first - first % self._patterns.unit)
        distinct, which = distinct_accesses(self.log, rows, base)
        numbers = [self._number(*row) for row in distinct.tolist()]
        site, shape, local_base = np.array(numbers, np.int64).reshape(-1, 3)[which].T
        return accesses_of(step, site, shape, base + local_base)

    def _number(
        self, instruction: int, kind: int, lanes: int, *offsets: int
    ) -> tuple[int, int, int]:
        """Returns the numbers of the site and of the pattern of an access of the log, and the base
        of an access to local memory, in the interleaved layout; 0 for other spaces."""
        space, op = SPACES[space_number(kind)], OPS[operation_number(kind)]
        site = self._patterns.site(instruction, space, op, lane_bytes(kind))
        pattern, base = AddressPattern.by_lane(lanes, offsets), 0
        if space is Space.LOCAL:
            pattern, base = pattern.in_local(self._patterns.unit)
        return site, self._patterns.shape(site, pattern), base


def _table(mask: int, live: int, control: Words | None) -> WarpTable:
    """Returns a warp's state table from the words of the log (None: a converged warp)."""
    table = WarpTable(np.zeros(warp_table.table_words(WARP_SIZE), np.int64), 0)
    table.lanes = WARP_SIZE
    table.mask, table.live = mask, live
    table.top = warp_table.NONE
    table.free = (1 << warp_table.node_count(WARP_SIZE)) - 1
    if control is None:
        return table
    head, at = LogControl(control, 0), LogControl.WORDS
    table.top = head.top
    for number in range(head.nodes):
        logged = LogNode(control, at, number)
        table.free &= ~(1 << logged.number)
        node = warp_table.node_of(table, logged.number)
        node.point, node.expected, node.arrived = logged.point, logged.expected, logged.arrived
        node.other_block, node.other_mask = logged.other_block, logged.other_mask
        node.parent = logged.parent
    at += head.nodes * LogNode.WORDS
    for number in range(head.splits):
        logged = LogSplit(control, at, number)
        table.parked |= 1 << logged.number
        split = warp_table.split_of(table, logged.number)
        split.mask, split.block, split.status = logged.mask, logged.block, logged.status
    return table
