"""Builds the tables of a trace during recording: warp states, access sites and access patterns,
each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from warploom.cost.device_rules import RULES, AccessRules
from warploom.cost.fields import RECORD_WIDTH, TRANSACTIONS
from warploom.cost.served import list_transactions
from warploom.isa.instruction import Space
from warploom.machine.compiled.access_costs import common_cost
from warploom.machine.lanes_off import lanes_off, parked_splits, reconvergence_points
from warploom.observe.schema import NO_COST, Shape, Site, State
from warploom.program.accesses import AccessRecord, route_of
from warploom.program.program import Program
from warploom.simt.lane_counts import Addresses, Ints
from warploom.simt.warp_table import LIVE, MASK, Table

COUNTED = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST)
"""The spaces whose accesses a trace records."""

_Key = TypeVar("_Key", bound=Hashable)
_Row = TypeVar("_Row")


class Numbered(Generic[_Key, _Row]):
    """A table of rows with unique keys, numbered in the order of insertion."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self._numbers: dict[_Key, int] = {}

    def find(self, key: _Key) -> int | None:
        """Returns the number of the row with a key, None if there is none."""
        return self._numbers.get(key)

    def add(self, key: _Key, row: _Row) -> int:
        """Adds a row and returns its number."""
        self._numbers[key] = len(self.rows)
        self.rows.append(row)
        return self._numbers[key]


class States:
    """The table of warp states."""

    def __init__(self) -> None:
        self._table: Numbered[State, State] = Numbered()

    def number(self, table: Table, existing: int) -> int:
        """Returns the number of the state that a warp's table describes; `existing` is the mask of
        lanes that have a thread."""
        splits = parked_splits(table)
        active = int(table[MASK]) & int(table[LIVE])
        for mask, _ in splits:  # the split that ran last, once it is parked
            # After the last turn, the table still names the split that ran last as active, though
            # it is parked.
            active &= ~mask
        state = State(active, lanes_off(table, existing), reconvergence_points(table), splits)
        number = self._table.find(state)
        return self._table.add(state, state) if number is None else number

    @property
    def rows(self) -> tuple[State, ...]:
        return tuple(self._table.rows)


Count = Callable[[str, Addresses, int, int, Ints], object]
"""Applies the named cost rule to addresses, mask and size; the row receives the counts."""


def count_by_rule(rule: str, addresses: Addresses, mask: int, size: int, row: Ints) -> None:
    """Applies a cost rule in plain Python."""
    RULES[rule](addresses, mask, size, row)


ShapeKey = tuple[int, int, tuple[int, ...]]
"""The key of an access pattern: the site, the lane mask, the offsets from the base."""


class Patterns:
    """The tables of access sites and of access patterns; `count` applies a cost rule."""

    def __init__(self, program: Program, rules: AccessRules, count: Count) -> None:
        self._program, self._rules, self._count = program, rules, count
        self._sites: Numbered[tuple[int, Space, str], Site] = Numbered()
        self._shapes: Numbered[ShapeKey, Shape] = Numbered()

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(self._sites.rows)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(self._shapes.rows)

    def site(self, instruction: int, space: Space, op: str, size: int) -> int:
        """Returns the number of the site of an instruction's access to a space."""
        key = instruction, space, op
        number = self._sites.find(key)
        if number is not None:
            return number
        rule, best = "", 0
        # Accesses to the call stack are not counted.
        if instruction not in self._program.private:
            route = route_of(self._program.instructions[instruction])
            rule = self._rules.cost(space.value, op, route=route)
            row = AccessRecord(instruction, space, op)
            best = int(common_cost(self._program, row, self._rules)[TRANSACTIONS])
        return self._sites.add(key, Site(instruction, space.value, op, size, rule, best))

    @property
    def unit(self) -> int:
        """Returns the alignment of bases in bytes; no cost rule depends on higher address bits
        (`AccessRules.unit`)."""
        return self._rules.unit

    def base(self, address: int) -> int:
        """Returns the base of an access whose first active lane is at `address`."""
        return address - address % self.unit

    def shape(self, site: int, mask: int, offsets: Sequence[int]) -> int:
        """Returns the number of the pattern of an access, with one offset for each lane of
        `mask`."""
        key = site, mask, tuple(offsets)
        number = self._shapes.find(key)
        return self._shapes.add(key, self._shape(*key)) if number is None else number

    def _shape(self, site: int, mask: int, offsets: tuple[int, ...]) -> Shape:
        """Builds a pattern with its transactions and costs."""
        site_row = self._sites.rows[site]
        if not site_row.rule or mask >> 32:  # rules are for warps of 32
            return Shape(mask, offsets, (), NO_COST)
        shift = -min(0, *offsets) if len(offsets) > 1 else 0
        # Offsets may be negative and the rules take unsigned addresses, so they are moved up by
        # whole units, and the transactions back down.
        shift += -shift % self._rules.unit
        lanes = [lane for lane in range(32) if mask >> lane & 1]
        addresses = np.zeros(32, np.uint64)
        addresses[lanes] = [offset + shift for offset in offsets] if shift else offsets
        row = np.zeros(RECORD_WIDTH, np.int64)
        for rule in self._counting_rules(site_row):
            self._count(rule, addresses, mask, site_row.size, row)
        transactions = list_transactions(site_row.rule, addresses.tolist(), mask, site_row.size)
        if not shift:
            return Shape(mask, offsets, transactions, tuple(row[: len(NO_COST)].tolist()))
        parts = tuple((part.start - (shift if part.size else 0), part.size, part.lanes)
                      for part in transactions)  # fmt: skip
        return Shape(mask, offsets, parts, tuple(row[: len(NO_COST)].tolist()))

    def _counting_rules(self, site: Site) -> list[str]:
        """Returns the rules that count an access of a site, as both machines apply them."""
        rules = [site.rule]
        if site.op == "atomic":
            rules.append("count_passes")
        if site.op == "store" and (writes := self._rules.writes(site.space)):
            rules.append(writes)
        return rules
