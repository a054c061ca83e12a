"""Numbers the patterns in which warps access memory: each distinct one once, with its cost by the
device's access rules and the lines and sectors that it needs.

A pattern has all that stays equal when an access is moved by multiples of the device's access unit:
the instruction, space and operation, the active lanes, and the distances of their addresses from
the *base*. The base is the first lane's address rounded down to a multiple of the unit. For example
32 lanes that load consecutive floats from the address 1184 on, in units of 128 bytes:

    base 1152, offsets 32, 36, ..., 156   ->  line 0, sectors 0b1110; line 1, sectors 0b0001
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.abi.access_kinds import (
    lane_bytes,
    operation_number,
    space_number,
    with_lane_bytes,
    with_operation,
)
from warploom.abi.log import OPS, SPACES, TEXEL_SPACES, LogAccess
from warploom.abi.log_copies import AT_BARRIER, COPY_ADD, COPY_IN, COPY_OUT
from warploom.cost import caches
from warploom.cost.address_pattern import AddressPattern
from warploom.cost.device_rules import AccessRules
from warploom.cost.fields import CostRecord
from warploom.cost.paired_banks import count_return_cycles
from warploom.cost.served import list_transactions
from warploom.helpers.table import count_compiled
from warploom.isa.instruction import Space
from warploom.machine.compiled.logged_accesses import distinct_accesses
from warploom.machine.compiled.logs import Log
from warploom.machine.launch import WARP_SIZE
from warploom.simt.lane_counts import ALL_LANES, Addresses, count_distinct
from warploom.timing import layout as w
from warploom.timing.records import TimedPattern

Words = npt.NDArray[np.int64]

SECTOR_RULES = ("global_by_sectors",)
"""Rules whose sectors are those of the lanes' first bytes, which can be found for many accesses at
once."""

WAVEFRONT_BYTES = 128


@dataclass(frozen=True, slots=True)
class _PatternAccess:
    """An access of a pattern: its operation, bytes of a lane, active lanes, the addresses of all
    lanes, and the cost rule that counts it."""

    op: str
    size: int
    lanes: int
    addresses: Addresses
    rule: str

    def count(self, *rules: str) -> CostRecord:
        """Returns the record of the access counted by cost rules (`cost.fields`)."""
        cost = CostRecord(np.zeros(CostRecord.WORDS, np.int64), 0)
        for rule in rules:
            count_compiled(rule, self.addresses, self.lanes, self.size, cost.words)
        return cost

    def distinct_addresses(self) -> int:
        """Returns how many addresses the lanes have, of each half-warp by rules of 1.x; 1 at
        least."""
        parts = (0xFFFF, 0xFFFF << 16) if self.rule.endswith("by_halves") else (ALL_LANES,)
        return max(1, sum(count_distinct(self.addresses, self.lanes & part, 0) for part in parts))


class PatternTable:
    """Holds the patterns in which the warps of a launch access memory, numbered in the order of
    their first use.

    A key is the instruction, the kind (`abi.access_kinds`), the active lanes, and each lane's
    distance from the base. `rules` include caches, so that they have the path of each access
    through them; `route` returns the kind of path that an instruction uses
    (`program.accesses.route_of`)."""

    def __init__(self, route: Callable[[int], str], rules: AccessRules) -> None:
        """Starts without patterns. `route` returns, by the index of an instruction, the path of its
        accesses through the caches; `rules` are the device's cost rules, whose `unit` is the number
        of bytes of which all base addresses are multiples."""
        self._route, self._rules = route, rules
        self._numbers: dict[tuple[int, int, AddressPattern], int] = {}
        self._keys: list[tuple[int, int, AddressPattern]] = []
        self._rows: list[list[int]] = []
        self._lines: list[tuple[int, int]] = []

    @property
    def rows(self) -> Words:
        """Returns the patterns as a new array, shape (patterns, words of a `TimedPattern`)."""
        return np.array(self._rows, np.int64).reshape(-1, TimedPattern.WORDS)

    @property
    def lines(self) -> Words:
        """Returns the lines of all patterns as a new array, shape (lines, 2): the distance from the
        base in lines, and the mask of sectors, for stores with the counts of unwritten bytes above
        the mask."""
        return np.array(self._lines, np.int64).reshape(-1, 2)

    @property
    def unit(self) -> int:
        """Returns the number of bytes of which base addresses are multiples; those in local memory
        are 0."""
        return self._rules.unit

    def of(self, log: Log, rows: Words) -> tuple[Words, Words]:
        """Returns, for each of the `rows` of a log's accesses, the number of its pattern, and its
        base in bytes: the first lane's address rounded down to a multiple of `unit`, 0 in local
        memory. New patterns are added to the table."""
        first = rows[:, LogAccess.first_address]
        local = space_number(rows[:, LogAccess.kind]) == SPACES.index(Space.LOCAL)
        base = np.where(local, 0, first - first % self._rules.unit)
        distinct, index = distinct_accesses(log, rows, base)
        numbers = [
            self.number(instruction, kind, AddressPattern.by_lane(lanes, offsets))
            for instruction, kind, lanes, *offsets in distinct.tolist()
        ]
        return np.array(numbers, np.int64)[index], base

    def lanes_of(self, number: int) -> tuple[int, AddressPattern, Space]:
        """Returns, for pattern `number`, the bytes that a lane accesses, the active lanes with
        their distances from the base, and the state space."""
        _, kind, pattern = self._keys[number]
        return lane_bytes(kind), pattern, SPACES[space_number(kind)]

    def with_lane_bytes(self, numbers: Words, sizes: Words) -> Words:
        """Returns, for each of the patterns `numbers`, the number of the pattern that begins at the
        same bytes but whose lanes access `sizes[i]` bytes each; adds new patterns to the table."""
        distinct, index = np.unique(np.stack([numbers, sizes], axis=1), axis=0, return_inverse=True)
        resized: list[int] = []
        pairs: list[tuple[int, int]] = distinct.tolist()
        for number, size in pairs:
            instruction, kind, pattern = self._keys[number]
            resized.append(self.number(instruction, with_lane_bytes(kind, size), pattern))
        return np.array(resized, np.int64)[index.reshape(-1)]

    def of_one_lane(self, numbers: Words) -> Words:
        """Returns, for each of the patterns `numbers`, the number of the pattern in which the first
        active lane alone makes the access; adds new patterns to the table."""
        distinct, index = np.unique(numbers, return_inverse=True)
        reduced: list[int] = []
        chosen: list[int] = distinct.tolist()
        for number in chosen:
            instruction, kind, pattern = self._keys[number]
            reduced.append(self.number(instruction, kind, pattern.of_first_lane()))
        return np.array(reduced, np.int64)[index.reshape(-1)]

    def with_operation(self, numbers: Words, operation: str) -> Words:
        """Returns, for each of the patterns `numbers`, the number of the pattern in which the same
        lanes execute another operation ("load" or "store") on the same bytes; adds new patterns to
        the table."""
        distinct, index = np.unique(numbers, return_inverse=True)
        changed: list[int] = []
        chosen: list[int] = distinct.tolist()
        for number in chosen:
            instruction, kind, pattern = self._keys[number]
            changed.append(self.number(instruction, with_operation(kind, operation), pattern))
        return np.array(changed, np.int64)[index.reshape(-1)]

    def number(self, instruction: int, kind: int, pattern: AddressPattern) -> int:
        """Returns the number of the pattern in which an instruction makes an access of a kind
        (`abi.access_kinds`); adds it to the table if it is new."""
        key = instruction, kind, pattern
        if key not in self._numbers:
            self._numbers[key] = len(self._rows)
            self._keys.append(key)
            self._rows.append(self._row(*key))
        return self._numbers[key]

    def _row(self, instruction: int, kind: int, pattern: AddressPattern) -> list[int]:
        """Returns the row (`TimedPattern`) of a pattern by its space and operation. It has passes
        (of atomics, else 1) and wavefronts by the device's cost rules. Outside of shared and
        constant memory it also has its lines, which are appended to those of the table, and the
        registers that move. Copies, accesses to mbarriers and texels have rows of their own
        (`_sector_row`). Wavefronts of shared memory are multiplied by the passes; those of constant
        memory are distinct addresses; those of other accesses are its lines, or the wavefronts that
        move its registers, WAVEFRONT_BYTES each, if these are more. Loads also get `banks`."""
        space, size = SPACES[space_number(kind)], lane_bytes(kind)
        op_number = operation_number(kind)
        if op_number >= len(OPS):
            return self._copy_row(op_number, size, pattern)
        op = OPS[op_number]
        if space in TEXEL_SPACES:
            return self._sector_row(self._kind(space, op, "") | w.TEXELS, pattern.offsets)
        # Lines of local memory are counted from its beginning, all others from the access's base.
        origin = 0
        if space is Space.LOCAL:
            pattern, origin = pattern.in_local(self._rules.unit)
        route = self._route(instruction)
        rule = self._rules.cost(space.value, op, route=route)
        addresses, moved = pattern.addresses()
        access = _PatternAccess(op, size, pattern.lanes, addresses, rule)
        cost = access.count(rule, "count_passes") if op == "atomic" else access.count(rule)
        row = [0] * TimedPattern.WORDS
        row[TimedPattern.passes] = max(1, cost.passes)
        if space is Space.SHARED:
            row[TimedPattern.kind] = w.SHARED_ACCESS
            row[TimedPattern.wavefronts] = cost.wavefronts * row[TimedPattern.passes]
            halves = 2 if rule.startswith("shared_16") else 1
            # A half-warp of 1.x is a wavefront of its own, so two are no conflict.
            row[TimedPattern.conflicts] = max(0, row[TimedPattern.wavefronts] - halves)
        elif space is Space.CONST:
            row[TimedPattern.kind] = w.CONSTANT_ACCESS
            row[TimedPattern.wavefronts] = access.distinct_addresses()
        else:
            row[TimedPattern.kind] = self._kind(space, op, route)
            lines = self._lines_of(rule, addresses.tolist(), access.lanes, size, moved - origin)
            # L2 takes each sector of a local store as a whole: an H100 merges none (entropy of
            # HeCBench: 3.07 million sectors in L1 and in L2), at no more than a sector each.
            if op == "store" and space is not Space.LOCAL:
                lines = _with_unwritten_bytes(lines, np.array(pattern.offsets) + origin, size)
            self._fill_line_row(row, access, lines)
        return row

    def _fill_line_row(
        self, row: list[int], access: _PatternAccess, lines: list[tuple[int, int]]
    ) -> None:
        """Fills the row of an access that moves lines: its lines, which are appended to those of
        the table, the registers that move, its wavefronts, and for loads `banks`."""
        size, lanes = access.size, access.lanes
        registers = -(-size // 4)
        if access.op == "load" and self._rules.returns_pairs:
            registers = count_return_cycles(access.addresses, lanes, size)
        # A wavefront returns at most 128 bytes.
        moved_bytes = lanes.bit_count() * min(4, size) * registers
        register_wavefronts = -(-moved_bytes // WAVEFRONT_BYTES)
        row[TimedPattern.wavefronts] = max(register_wavefronts, len({line for line, _ in lines}))
        row[TimedPattern.lines_at], row[TimedPattern.lines] = len(self._lines), len(lines)
        row[TimedPattern.registers] = registers
        if access.op == "load":
            # The wavefronts of the load if L1's banks serve it as those of shared memory would.
            in_banks = self._rules.cost(Space.SHARED.value, access.op)
            row[TimedPattern.banks] = max(1, access.count(in_banks).wavefronts)
        self._lines += lines

    def _copy_row(self, op: int, size: int, pattern: AddressPattern) -> list[int]:
        """Returns the table's row for the operation `op` of `abi.log_copies`: COPY_IN, COPY_OUT or
        COPY_ADD, a bulk copy that moves the sectors at the offsets of `pattern` (in the row a LOAD,
        STORE or ATOMIC), or AT_BARRIER (MBARRIER_ACCESS). With `size` 0 there are no sectors."""
        kinds = {
            COPY_IN: w.LOAD,
            COPY_OUT: w.STORE,
            COPY_ADD: w.ATOMIC,
            AT_BARRIER: w.MBARRIER_ACCESS,
        }
        return self._sector_row(kinds[op], pattern.offsets if size else ())

    def _sector_row(self, kind: int, sectors: tuple[int, ...]) -> list[int]:
        """Returns the row of an access of a kind (`timing.layout`) given by the byte addresses of
        its sectors, relative to the base; appends its lines to the table's. One pass, and a
        wavefront for each line."""
        masks: dict[int, int] = {}
        for address in sectors:
            line, sector = divmod(address // w.SECTOR_BYTES, w.SECTORS)
            masks[line] = masks.get(line, 0) | 1 << sector
        row = [0] * TimedPattern.WORDS
        row[TimedPattern.kind] = kind
        row[TimedPattern.passes], row[TimedPattern.wavefronts] = 1, len(masks)
        row[TimedPattern.lines_at], row[TimedPattern.lines] = len(self._lines), len(masks)
        self._lines += sorted(masks.items())
        return row

    def _kind(self, space: Space, op: str, route: str) -> int:
        """Returns the kind of a pattern (LOAD, STORE or ATOMIC) by the operation `op` ("load",
        "store", "atomic"), with flags by the path of the access through the caches (`route`):
        THROUGH_L1 for loads that L1 or the texture cache holds, DROPS_L1 for accesses that
        invalidate lines of L1."""
        path = self._rules.path(space.value, op, route=route) or 0
        kind = {"load": w.LOAD, "store": w.STORE, "atomic": w.ATOMIC}[op]
        if path & (caches.THROUGH_L1 | caches.THROUGH_TEXTURE) and op == "load":
            kind |= w.THROUGH_L1
        return kind | (w.DROPS_L1 if path & caches.DROPS_L1 else 0)

    def _lines_of(
        self, rule: str, addresses: list[int], lanes: int, size: int, shift: int
    ) -> list[tuple[int, int]]:
        """Returns the lines that an access needs, as distances from its base in lines, each with
        the mask of its sectors; `shift` is what was added to its addresses. Sectors of one line are
        one entry, except by the rules of 1.x (in order, by half-warps), which have an entry for
        each transaction."""
        if rule in SECTOR_RULES:
            first_bytes = [addresses[lane] for lane in range(WARP_SIZE) if lanes >> lane & 1]
            sectors = {address // w.SECTOR_BYTES * w.SECTOR_BYTES for address in first_bytes}
            transactions = [(sector, w.SECTOR_BYTES) for sector in sorted(sectors)]
        else:
            transactions = [
                (part.start, part.size) for part in list_transactions(rule, addresses, lanes, size)
            ]
        lines: list[tuple[int, int]] = []
        by_rule = rule.endswith(("in_order", "by_halves"))
        masks: dict[int, int] = {}
        for start, bytes_moved in transactions:
            line, byte = divmod(start - shift, w.LINE_BYTES)
            # A transaction of 32 to 128 bytes is 1 to 4 sectors of its line.
            mask = (1 << max(1, bytes_moved // w.SECTOR_BYTES)) - 1
            mask = mask << byte // w.SECTOR_BYTES & w.SECTOR_MASK
            if by_rule:
                lines.append((line, mask))
            else:
                masks[line] = masks.get(line, 0) | mask
        return lines + sorted(masks.items())


def _with_unwritten_bytes(
    lines: list[tuple[int, int]], first_bytes: Words, size: int
) -> list[tuple[int, int]]:
    """Returns lines with, above the mask of sectors, how many bytes of each sector in it a store
    does not write (`layout.UNWRITTEN_BITS` a sector), given the first bytes of its lanes, each of
    which writes `size` bytes."""
    written = np.unique(first_bytes[:, None] + np.arange(size))
    sectors, counts = np.unique(written // w.SECTOR_BYTES, return_counts=True)
    unwritten = dict(zip(sectors.tolist(), (w.SECTOR_BYTES - counts).tolist(), strict=True))
    return [
        (
            line,
            mask
            | sum(
                unwritten.get(w.SECTORS * line + sector, 0) << w.SECTORS + w.UNWRITTEN_BITS * sector
                for sector in range(w.SECTORS)
                if mask >> sector & 1
            ),
        )
        for line, mask in lines
    ]
