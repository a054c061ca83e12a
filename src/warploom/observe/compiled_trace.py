"""Makes a recording of what compiled code wrote into a log: the same as the reference machine's,
but for registers, which such a recording has not.

The log has a row for each basic block that a warp entered (`abi.log`); here it becomes a row
for each instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from warploom.abi import log as words
from warploom.abi.log import OPS, SPACES, TEXEL_SPACES
from warploom.cost.device_rules import AccessRules
from warploom.helpers.table import count_compiled
from warploom.machine.compiled.access_costs import ALL_LANES
from warploom.machine.compiled.logs import Log
from warploom.machine.launch import WARP_SIZE, Launch
from warploom.observe import schema
from warploom.observe.contents import NO_CHANGES
from warploom.observe.recorder import RecordedTrace, accesses_of, as_column
from warploom.observe.tables import Patterns, States
from warploom.program.program import Program
from warploom.ptx.ir import Space
from warploom.simt import warp_table
from warploom.simt.warp_table import Table

Words = npt.NDArray[np.int64]

NO_WRITES = schema.Writes(0, b"", b"", b"", b"", b"")


@dataclass(frozen=True)
class Ending:
    """The end of a recorded launch: the instruction at which a fault was found (None without one),
    and the tables of the warps that had not ended, by their number in the launch."""

    faulted: int | None
    tables: dict[int, Table]


class CompiledRecording:
    """A log, and what it is read by."""

    def __init__(
        self, program: Program, rules: AccessRules, launch: Launch, log: Log, ending: Ending
    ) -> None:
        self.program, self.launch, self.log, self.ending = program, launch, log, ending
        self._states = States()
        self._patterns = Patterns(program, rules, count_compiled)
        self._entries = log.rows(words.ENTRIES, words.ENTRIES_AT, words.ENTRY_WORDS)

    def recorded(self, live: Sequence[schema.Allocated]) -> RecordedTrace:
        """Return the recording; `live` is what was allocated."""
        order, warps = self._warps()
        state = self._entry_states()[self._entry_of_step]
        entries = self._entries
        steps = schema.Steps(
            len(self._entry_of_step),
            as_column(order[entries[self._entry_of_step, words.E_WARP]]),
            as_column(self._instructions),
            as_column(state),
            as_column(self._executing()),
            self._marks(),
        )
        accesses = self._accesses()
        data = self.log.data
        left_out = schema.LeftOut(int(data[words.LEFT_STEPS]), int(data[words.LEFT_WARPS]))
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
        """Return the instructions of each basic block that are steps."""
        hidden = self.program.hidden
        return [
            np.array([i for i in range(b.start, b.stop) if i not in hidden], np.int64)
            for b in self.program.blocks
        ]

    @cached_property
    def _entry_steps(self) -> Words:
        """Return the number of steps of each entry; the last one ends with a fault, if there was
        one."""
        sizes = np.array([len(shown) for shown in self._visible], np.int64)
        found = sizes[self._entries[:, words.E_BLOCK]]
        current = int(self.log.data[words.CURRENT])
        if self.ending.faulted is not None and current != warp_table.NONE:
            shown = self._visible[int(self._entries[current, words.E_BLOCK])]
            found[current] = int(np.searchsorted(shown, self.ending.faulted, "right"))
        return found

    @cached_property
    def _first_steps(self) -> Words:
        """Return the first step of each entry."""
        return np.concatenate(([0], np.cumsum(self._entry_steps)[:-1]))[: len(self._entry_steps)]

    @cached_property
    def _entry_of_step(self) -> Words:
        """Return the entry of each step."""
        return np.repeat(np.arange(len(self._entry_steps)), self._entry_steps)

    @cached_property
    def _instructions(self) -> Words:
        """Return the instruction of each step."""
        first = np.concatenate(([0], np.cumsum([len(shown) for shown in self._visible])[:-1]))
        every = np.concatenate([*self._visible, np.zeros(0, np.int64)])
        within = np.arange(len(self._entry_of_step)) - self._first_steps[self._entry_of_step]
        return every[first[self._entries[self._entry_of_step, words.E_BLOCK]] + within]

    @cached_property
    def _place_in_block(self) -> Words:
        """Return the number of each instruction among the steps of its basic block."""
        found = np.zeros(len(self.program.instructions), np.int64)
        for shown in self._visible:
            found[shown] = np.arange(len(shown))
        return found

    def _steps_of(self, entry: Words, instruction: Words) -> tuple[Words, npt.NDArray[np.bool_]]:
        """Return the steps of instructions in entries, and which of them there are: not those
        behind a fault."""
        place = self._place_in_block[instruction]
        return self._first_steps[entry] + place, place < self._entry_steps[entry]

    def _executing(self) -> Words:
        """Return the lanes of each step whose guard holds."""
        found = self._entries[self._entry_of_step, words.E_MASK]
        guards = self.log.rows(words.GUARDS, words.GUARDS_AT, words.GUARD_WORDS)
        step, there = self._steps_of(guards[:, words.G_ENTRY], guards[:, words.G_INSTRUCTION])
        found[step[there]] = guards[there, words.G_LANES]
        return found

    def _marks(self) -> bytes:
        """Return the marks of each step: those of an entry are its last step's."""
        found = np.zeros(len(self._entry_of_step), np.uint8)
        some = self._entry_steps > 0
        found[(self._first_steps + self._entry_steps - 1)[some]] = self._entries[
            some, words.E_MARKS
        ]
        return found.tobytes()

    # ---- states -----------------------------------------------------------------------------

    def _entry_states(self) -> Words:
        """Return the number of each entry's state. Where lanes are together, few differ."""
        columns = [words.E_WARP, words.E_MASK, words.E_LIVE, words.E_CONTROL]
        rows = self._entries[:, columns].copy()
        existing = np.array([self._existing(w) for w in self._launched], np.int64)
        rows[:, 0] = existing[rows[:, 0]] if len(existing) else 0
        found = np.zeros(len(rows), np.int64)
        converged = rows[:, 3] == warp_table.NONE
        if converged.any():
            kinds, which = np.unique(rows[converged], axis=0, return_inverse=True)
            numbers = [self._states.number(_table(k[1], k[2], None), int(k[0])) for k in kinds]
            found[converged] = np.array(numbers)[which.reshape(-1)]
        known: dict[tuple[int, int, int, bytes], int] = {}
        for entry in np.flatnonzero(~converged).tolist():
            has, mask, live, at = rows[entry].tolist()
            control = self._control(at)
            key = has, mask, live, control.tobytes()
            if key not in known:
                known[key] = self._states.number(_table(mask, live, control), has)
            found[entry] = known[key]
        return found

    def _control(self, at: int) -> Words:
        """Return the words that say how lanes have parted."""
        start = int(self.log.data[words.CONTROLS_AT]) + at
        nodes, splits = self.log.data[start : start + 2].tolist()
        length = 3 + nodes * words.NODE_ROW + splits * words.SPLIT_ROW
        return self.log.data[start : start + length]

    # ---- warps ------------------------------------------------------------------------------

    @cached_property
    def _launched(self) -> list[int]:
        """Return the number in the launch of each warp of the log."""
        numbers = self.log.numbers(self.launch)
        chosen = np.flatnonzero(numbers > 0)
        return chosen[np.argsort(numbers[chosen])].tolist()

    def _existing(self, warp: int) -> int:
        """Return the lanes of a warp that have a thread."""
        number = warp % self.launch.warps_per_block
        left = self.launch.threads_per_block - number * WARP_SIZE
        return (1 << min(left, WARP_SIZE)) - 1

    def _warps(self) -> tuple[Words, tuple[schema.Warp, ...]]:
        """Return the place in the trace of each warp of the log, and the warps in order."""
        sorted_warps = sorted(self._launched)
        place = {warp: i for i, warp in enumerate(sorted_warps)}
        order = np.array([place[warp] for warp in self._launched], np.int64)
        made: list[schema.Warp] = []
        for warp in sorted_warps:
            existing = self._existing(warp)
            table = self.ending.tables.get(warp)
            final = self._states.number(_table(0, 0, None) if table is None else table, existing)
            block, number = divmod(warp, self.launch.warps_per_block)
            made.append(schema.Warp(block, number, existing, final, False))
        return order, tuple(made)

    # ---- accesses ---------------------------------------------------------------------------

    def _accesses(self) -> schema.Accesses:
        rows = self.log.rows(words.ACCESSES, words.ACCESSES_AT, words.ACCESS_WORDS)
        by_lanes = (rows[:, words.A_KIND] >> 8 & 0xFF) < len(OPS)  # no copies of the TMA
        rows = rows[by_lanes & ((rows[:, words.A_KIND] & 0xFF) < SPACES.index(TEXEL_SPACES[0]))]
        step, there = self._steps_of(rows[:, words.A_ENTRY], rows[:, words.A_INSTRUCTION])
        if self.ending.faulted is not None and len(self._entry_of_step):
            # What a fault was found in has not happened.
            there &= step != len(self._entry_of_step) - 1
        rows, step = rows[there], step[there]
        kinds, which = np.unique(
            rows[:, [words.A_INSTRUCTION, words.A_KIND]], axis=0, return_inverse=True
        )
        site = np.array([self._site(*k) for k in kinds.tolist()], np.int64)[which.reshape(-1)]
        base = np.zeros(len(rows), np.int64)
        shape = np.zeros(len(rows), np.int64)
        local = (rows[:, words.A_KIND] & 0xFF) == SPACES.index(Space.LOCAL)
        strided = (rows[:, words.A_SCATTERED] == warp_table.NONE) & ~local
        self._add_strided(rows, site, base, shape, strided)
        self._add_scattered(rows, site, base, shape, np.flatnonzero(~strided))
        return accesses_of(step, site, shape, base)

    def _site(self, instruction: int, kind: int) -> int:
        space, op = SPACES[kind & 0xFF], OPS[kind >> 8 & 0xFF]
        return self._patterns.site(instruction, space, op, kind >> 16)

    def _add_strided(
        self, rows: Words, site: Words, base: Words, shape: Words, strided: npt.NDArray[np.bool_]
    ) -> None:
        """Accesses whose lanes are evenly apart: each kind of them once."""
        if not strided.any():
            return
        first = rows[strided, words.A_FIRST]
        base[strided] = first - first % self._patterns.unit
        columns = rows[strided, words.A_LANES], first - base[strided], rows[strided, words.A_STRIDE]
        keys = np.stack([site[strided], *columns], axis=1)
        kinds, which = np.unique(keys, axis=0, return_inverse=True)
        numbers = [self._strided_shape(*k) for k in kinds.tolist()]
        shape[strided] = np.array(numbers)[which.reshape(-1)]

    def _strided_shape(self, site: int, lanes: int, first: int, stride: int) -> int:
        inside = [lane for lane in range(WARP_SIZE) if lanes >> lane & 1]
        offsets = [first + (lane - inside[0]) * stride for lane in inside]
        return self._patterns.shape(site, lanes, offsets)

    def _add_scattered(
        self, rows: Words, site: Words, base: Words, shape: Words, which: Words
    ) -> None:
        """Accesses with an address of its own for each lane, and those to local memory."""
        if not len(which):
            return
        some = rows[which]
        masks = some[:, words.A_LANES]
        leaders = np.log2(masks & -masks).astype(np.int64)
        where = self._addresses(some, leaders)
        first = where[np.arange(len(some)), leaders]
        base[which] = first - first % self._patterns.unit
        offsets: list[list[int]] = (where - base[which][:, None]).tolist()
        lanes = {
            mask: [lane for lane in range(WARP_SIZE) if mask >> lane & 1]
            for mask in np.unique(masks).tolist()
        }
        sites: list[int] = site[which].tolist()
        for at, one, mask, row in zip(which.tolist(), sites, masks.tolist(), offsets, strict=True):
            chosen = row if mask == ALL_LANES else [row[lane] for lane in lanes[mask]]
            shape[at] = self._patterns.shape(one, mask, chosen)

    def _addresses(self, rows: Words, leaders: Words) -> Words:
        """Returns where each lane of accesses reaches; in local memory, in its layout."""
        region = self.log.rows(words.SCATTERED, words.SCATTERED_AT, words.SCATTERED_WORDS)
        numbers = np.arange(WARP_SIZE)
        strides = rows[:, words.A_STRIDE, None]
        found = rows[:, words.A_FIRST, None] + (numbers - leaders[:, None]) * strides
        scattered = rows[:, words.A_SCATTERED] != warp_table.NONE
        distances = region[rows[scattered, words.A_SCATTERED]]
        found[scattered] = rows[scattered, words.A_FIRST, None] + distances
        local = (rows[:, words.A_KIND] & 0xFF) == SPACES.index(Space.LOCAL)
        inside = found[local]
        found[local] = (inside // 4 * WARP_SIZE + numbers) * 4 + inside % 4
        return found


def _table(mask: int, live: int, control: Words | None) -> Table:
    """Return a warp's table, from what the log says of it."""
    table = np.zeros(warp_table.table_words(WARP_SIZE), np.int64)
    table[warp_table.LANES] = WARP_SIZE
    table[warp_table.MASK], table[warp_table.LIVE] = mask, live
    table[warp_table.TOP] = warp_table.NONE
    table[warp_table.FREE] = (1 << warp_table.node_count(WARP_SIZE)) - 1
    if control is None:
        return table
    nodes, splits, table[warp_table.TOP] = control[:3].tolist()
    at = 3
    for _ in range(nodes):
        node = int(control[at])
        table[warp_table.FREE] &= ~(1 << node)
        for word, value in zip(_NODE, control[at + 1 : at + words.NODE_ROW], strict=True):
            table[warp_table.node_at(node) + word] = value
        at += words.NODE_ROW
    for _ in range(splits):
        split = int(control[at])
        table[warp_table.PARKED] |= 1 << split
        for word, value in zip(_SPLIT, control[at + 1 : at + words.SPLIT_ROW], strict=True):
            table[warp_table.split_at(table, split) + word] = value
        at += words.SPLIT_ROW
    return table


_NODE = (
    warp_table.POINT,
    warp_table.EXPECTED,
    warp_table.ARRIVED,
    warp_table.OTHER_BLOCK,
    warp_table.OTHER_MASK,
    warp_table.PARENT,
)
_SPLIT = (warp_table.S_MASK, warp_table.S_BLOCK, warp_table.S_STATUS)
