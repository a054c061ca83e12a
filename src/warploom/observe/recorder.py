"""Records a trace on the reference machine: listens to a launch and stores what each warp does.

A recording is bounded: warps and steps beyond its limits still run, and their number is recorded.
Instructions that implement the calls of a program (`Program.hidden`) are not steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warploom.cost.device_rules import AccessRules
from warploom.isa.instruction import Register
from warploom.machine.reference.lanes import Values
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.observe import schema
from warploom.observe.contents import ChangeLog, allocations_at
from warploom.observe.in_flight import FlightLog
from warploom.observe.limits import TraceLimits
from warploom.observe.tables import COUNTED, Numbered, Patterns, States, count_by_rule
from warploom.program.program import Program
from warploom.program.uses import writes
from warploom.simt.warp_table import WarpTable, table_words


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """The content of a recording; see `observe.schema` for each part."""

    warps: tuple[schema.Warp, ...]
    states: tuple[schema.State, ...]
    steps: schema.Steps
    sites: tuple[schema.Site, ...]
    shapes: tuple[schema.Shape, ...]
    accesses: schema.Accesses
    writes: schema.Writes
    changes: schema.Changes
    allocations: tuple[schema.Allocated, ...]
    left_out: schema.LeftOut
    asynchronous: schema.Asynchronous | None = None


@dataclass
class _RecordedWarp:
    """A warp that is recorded: its number, the lanes that have a thread, the number of its steps,
    whether its registers are recorded, and the table words and number of its last state."""

    warp: Warp
    number: int
    existing: int
    registers: bool
    steps: int = 0
    table: tuple[list[int], list[int]] = ([], [])
    state: int = 0


class Recorder:
    """A listener that records the events of a launch."""

    def __init__(self, program: Program, rules: AccessRules, limits: TraceLimits) -> None:
        self._program, self._limits = program, limits
        self._states = States()
        self._patterns = Patterns(program, rules, count_by_rule)
        self._registers = {register.name: index for index, register in enumerate(program.registers)}
        self._written = [tuple(dict.fromkeys(writes(index))) for index in program.instructions]
        self._warps: dict[tuple[int, int], _RecordedWarp] = {}
        self._skipped: set[tuple[int, int]] = set()
        self._left_out = 0
        self._steps: list[tuple[int, int, int, int]] = []
        self._marks = bytearray()
        self._accesses: list[tuple[int, int, int, int]] = []
        self._writes: list[tuple[int, int, int]] = []
        self._vectors: dict[int, Numbered[bytes, bytes]] = {32: Numbered(), 64: Numbered()}
        self._last: _RecordedWarp | None = None
        self._lanes = 32
        self._allocations: tuple[schema.Allocated, ...] | None = None
        self._changes = ChangeLog()
        self._flights = FlightLog(program)
        self._divergences = self._reconvergences = 0

    # ---- listening ------------------------------------------------------------------------------

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        """Records a step, after completing the step before."""
        if self._allocations is None:
            memory = warp.run.memory
            self._allocations = allocations_at(memory, memory.live(), self._limits.contents)
            self._lanes = warp.run.launch.warp_size
        self._finish_step(warp)
        self._last = None
        if instruction in self._program.hidden:
            return
        record = self._find_warp(warp)
        if record is None or record.steps >= self._limits.steps:
            self._left_out += 1
            return
        record.steps += 1
        self._last = record
        self._steps.append((record.number, instruction, self._state(record), mask))
        self._marks.append(0)
        self._flights.begin(len(self._steps) - 1, warp, instruction, mask)

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        """Records an access of the current step."""
        if self._last is None or access.space not in COUNTED:
            return
        self._flights.accessed(access)
        site = self._patterns.site(access.instruction, access.space, access.op, access.size)
        pattern, base = access.pattern(self._patterns.unit)
        shape = self._patterns.shape(site, pattern)
        if self._last.registers:
            self._changes.expect(len(self._accesses), access)
        self._accesses.append((len(self._steps) - 1, site, shape, base))

    def _find_warp(self, warp: Warp) -> _RecordedWarp | None:
        """Returns the record of a warp, which begins with its first instruction if the limit of
        warps allows it; else None."""
        key = warp.block.number, warp.number
        limits = self._limits
        if key not in self._warps and key not in self._skipped:
            chosen = limits.blocks is None or key[0] in limits.blocks
            if chosen and len(self._warps) < limits.warps:
                number = len(self._warps)
                registers = number < limits.registers
                self._warps[key] = _RecordedWarp(warp, number, warp.existing, registers)
            else:
                self._skipped.add(key)
        return self._warps.get(key)

    def _state(self, record: _RecordedWarp) -> int:
        """Returns the number of a warp's current state."""
        table = record.warp.splits.table
        key = _state_key(table)
        # Building a state is slow, and most instructions leave it as it was.
        if key != record.table:
            record.table = key
            record.state = self._states.number(table, record.existing)
        return record.state

    def _finish_step(self, warp: Warp) -> None:
        """Records the effects of the last step, after it was executed: divergence, written
        registers and memory."""
        tally = warp.run.tally
        # The counts have risen if the last step's branch diverged, or if entering its successor
        # reconverged lanes.
        divergences, reconvergences = int(tally.divergent.sum()), int(tally.reconvergences.sum())
        if self._last is not None:
            marks = schema.DIVERGED * (divergences > self._divergences)
            step = len(self._steps) - 1
            _, instruction, _, mask = self._steps[step]
            self._flights.settle(step, self._last.warp, instruction, mask)
            self._marks[-1] = marks | schema.MET * (reconvergences > self._reconvergences)
            if self._last.registers:
                self._note_writes(self._last.warp)
                self._changes.settle(self._last.warp)
        self._divergences, self._reconvergences = divergences, reconvergences

    def _note_writes(self, warp: Warp) -> None:
        """Records the registers that the last step has written."""
        time = len(self._steps) - 1
        for register in self._written[self._steps[time][1]]:
            number = self._vector(register, warp.registers[register.name])
            if number is not None:
                self._writes.append((time, self._registers[register.name], number))

    def _vector(self, register: Register, value: Values) -> int | None:
        """Returns the number of a register's contents in the table for its width; None for 128
        bits, which have none."""
        if register.type.bits > 64:
            return None
        bits = 64 if register.type.bits == 64 else 32
        row = value.astype(f"<u{bits // 8}").tobytes()
        number = self._vectors[bits].find(row)
        return self._vectors[bits].add(row, row) if number is None else number

    # ---- results --------------------------------------------------------------------------------

    def recorded(self) -> RecordedTrace:
        """Returns the recording, after the launch has ended."""
        if self._last is not None:
            self._finish_step(self._last.warp)
        warps = sorted(self._warps.items())
        # A trace has warps sorted by block and number; they were numbered in the order in which
        # they began.
        order = np.empty(len(warps), np.uint32)
        for position, (_, record) in enumerate(warps):
            order[record.number] = position
        finals = [
            self._states.number(record.warp.splits.table, record.existing) for _, record in warps
        ]
        warp_records = tuple(
            schema.Warp(*key, record.existing, final, record.registers)
            for (key, record), final in zip(warps, finals, strict=True)
        )
        warp, instruction, state, executing = _columns(self._steps, 4)
        return RecordedTrace(
            warp_records,
            self._states.rows,
            schema.Steps(
                len(self._steps),
                order[warp].tobytes(),
                as_column(instruction),
                as_column(state),
                executing.astype(f"<u{self._lanes // 8}").tobytes(),
                bytes(self._marks),
            ),
            self._patterns.sites,
            self._patterns.shapes,
            accesses_of(*_columns(self._accesses, 4)),
            self._write_columns(),
            self._changes.recorded(),
            self._allocations or (),
            schema.LeftOut(self._left_out, len(self._skipped)),
            self._flights.recorded(len(self._steps)),
        )

    def _write_columns(self) -> schema.Writes:
        """Returns the columns of register writes."""
        step, register, value = (as_column(c) for c in _columns(self._writes, 3))
        narrow, wide = (b"".join(self._vectors[bits].rows) for bits in (32, 64))
        return schema.Writes(len(self._writes), step, register, value, narrow, wide)


def _state_key(table: WarpTable) -> tuple[list[int], list[int]]:
    """Returns the words of a warp's table on which its state depends."""
    words = table.words[table.at : table.at + table_words(table.lanes)]
    # Of the head, the words up to the parked splits.
    return words[: WarpTable.parked + 1].tolist(), words[WarpTable.WORDS :].tolist()


def accesses_of(step: Values, site: Values, shape: Values, base: Values) -> schema.Accesses:
    """Returns the accesses as columns of the trace."""
    columns = as_column(step), as_column(site), as_column(shape)
    return schema.Accesses(len(step), *columns, base.astype("<u8").tobytes())


def as_column(numbers: Values) -> bytes:
    """Returns numbers as a column of little-endian u32."""
    return numbers.astype("<u4").tobytes()


def _columns(rows: list[tuple[int, ...]], width: int) -> Iterator[Values]:
    """Yields the columns of rows of `width` numbers."""
    yield from np.array(rows, np.uint64).reshape(-1, width).T
