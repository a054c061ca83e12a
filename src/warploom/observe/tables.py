"""The tables of a trace while it is recorded: what many steps have in common, each thing once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from warploom.cost.device_rules import RULES, AccessRules
from warploom.cost.fields import RECORD_WIDTH, TRANSACTIONS
from warploom.cost.served import served
from warploom.machine.compiled.access_costs import common_cost
from warploom.machine.lanes_off import lanes_off, parked_splits, reconvergence_points
from warploom.observe.schema import NO_COST, Shape, Site, State
from warploom.program.accesses import AccessRecord, route_of
from warploom.program.program import Program
from warploom.ptx.ir import Space
from warploom.simt.lane_counts import Addresses, Row
from warploom.simt.warp_table import LIVE, MASK, Table

COUNTED = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST)
"""The spaces of which a trace keeps accesses."""

_Key = TypeVar("_Key", bound=Hashable)
_Row = TypeVar("_Row")


class Numbered(Generic[_Key, _Row]):
    """Rows by key, numbered as they come."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self._numbers: dict[_Key, int] = {}

    def find(self, key: _Key) -> int | None:
        """Return the number of the row with a key, None where there is none."""
        return self._numbers.get(key)

    def add(self, key: _Key, row: _Row) -> int:
        """Return a new row; gives its number."""
        self._numbers[key] = len(self.rows)
        self.rows.append(row)
        return self._numbers[key]


class States:
    """The states of warps."""

    def __init__(self) -> None:
        self._table: Numbered[State, State] = Numbered()

    def number(self, table: Table, existing: int) -> int:
        """Return the number of the state that a warp's table describes; `existing` lanes have a
        thread."""
        splits = parked_splits(table)
        active = int(table[MASK]) & int(table[LIVE])
        for mask, _ in splits:  # the split that ran last, once it is put aside
            active &= ~mask
        state = State(active, lanes_off(table, existing), reconvergence_points(table), splits)
        found = self._table.find(state)
        return self._table.add(state, state) if found is None else found

    @property
    def rows(self) -> tuple[State, ...]:
        return tuple(self._table.rows)


Count = Callable[[str, Addresses, int, int, Row], object]
"""Apply the rule of that name to addresses, mask and size; the row takes its counts."""


def count_by_rule(rule: str, addresses: Addresses, mask: int, size: int, row: Row) -> None:
    """Apply a rule as it stands, in Python."""
    RULES[rule](addresses, mask, size, row)


ShapeKey = tuple[int, int, tuple[int, ...]]
"""What a shape depends on: the site, the lanes, their offsets from the base."""


class Patterns:
    """The sites of a program's accesses, and the shapes of these; `count` applies a rule."""

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
        """Return the number of an instruction's way into a space."""
        key = instruction, space, op
        found = self._sites.find(key)
        if found is not None:
            return found
        rule, best = "", 0
        if instruction not in self._program.private:
            route = route_of(self._program.instructions[instruction])
            rule = self._rules.cost(space.value, op, route=route)
            row = AccessRecord(instruction, space, op)
            best = int(common_cost(self._program, row, self._rules)[TRANSACTIONS])
        return self._sites.add(key, Site(instruction, space.value, op, size, rule, best))

    @property
    def unit(self) -> int:
        """Bases are multiples of this: no rule looks beyond (`AccessRules.unit`)."""
        return self._rules.unit

    def base(self, address: int) -> int:
        """From where the offsets of an access are counted whose first lane is there."""
        return address - address % self.unit

    def shape(self, site: int, mask: int, offsets: Sequence[int]) -> int:
        """Return the number of the pattern in which the lanes of `mask` reach, lane by lane."""
        key = site, mask, tuple(offsets)
        found = self._shapes.find(key)
        return self._shapes.add(key, self._shape(*key)) if found is None else found

    def _shape(self, site: int, mask: int, offsets: tuple[int, ...]) -> Shape:
        """Offsets may be negative; the rules see them above an address that is aligned."""
        made = self._sites.rows[site]
        if not made.rule or mask >> 32:  # rules are for warps of 32
            return Shape(mask, offsets, (), NO_COST)
        ahead = -min(0, *offsets) if len(offsets) > 1 else 0
        ahead += -ahead % self._rules.unit
        lanes = [lane for lane in range(32) if mask >> lane & 1]
        addresses = np.zeros(32, np.uint64)
        addresses[lanes] = [offset + ahead for offset in offsets] if ahead else offsets
        row = np.zeros(RECORD_WIDTH, np.int64)
        for rule in self._counted_by(made):
            self._count(rule, addresses, mask, made.size, row)
        moved = served(made.rule, addresses.tolist(), mask, made.size)
        if not ahead:
            return Shape(mask, offsets, moved, tuple(row[: len(NO_COST)].tolist()))
        parts = tuple((one.start - (ahead if one.size else 0), one.size, one.lanes)
                      for one in moved)  # fmt: skip
        return Shape(mask, offsets, parts, tuple(row[: len(NO_COST)].tolist()))

    def _counted_by(self, site: Site) -> list[str]:
        """Return the rules that count an access of a site, as both machines use them."""
        rules = [site.rule]
        if site.op == "atomic":
            rules.append("count_passes")
        if site.op == "store" and (writes := self._rules.writes(site.space)):
            rules.append(writes)
        return rules
