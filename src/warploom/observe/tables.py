"""Builds the tables of a trace during recording: warp states, access sites and access patterns,
each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np

from warploom.cost.address_pattern import AddressPattern
from warploom.cost.device_rules import RULES, AccessRules
from warploom.cost.fields import CostRecord
from warploom.cost.served import list_transactions
from warploom.isa.instruction import Space
from warploom.machine.access_costs import common_cost
from warploom.machine.lanes_off import lanes_off, parked_splits, reconvergence_points
from warploom.observe.schema import NO_COST, Shape, Site, State
from warploom.program.accesses import AccessRecord, route_of
from warploom.program.program import Program
from warploom.simt.lane_counts import Addresses, Ints
from warploom.simt.warp_table import WarpTable

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

    def number(self, table: WarpTable, existing: int) -> int:
        """Returns the number of the state that a warp's table describes; `existing` is the mask of
        lanes that have a thread."""
        splits = parked_splits(table)
        active = table.mask & table.live
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


class Patterns:
    """The tables of access sites and of access patterns; `count` applies a cost rule."""

    def __init__(self, program: Program, rules: AccessRules, count: Count) -> None:
        self._program, self._rules, self._count = program, rules, count
        self._sites: Numbered[tuple[int, Space, str], Site] = Numbered()
        self._shapes: Numbered[tuple[int, AddressPattern], Shape] = Numbered()

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
            best = int(common_cost(self._program, row, self._rules)[CostRecord.transactions])
        return self._sites.add(key, Site(instruction, space.value, op, size, rule, best))

    @property
    def unit(self) -> int:
        """Returns the alignment of bases in bytes; no cost rule depends on higher address bits
        (`AccessRules.unit`)."""
        return self._rules.unit

    def shape(self, site: int, pattern: AddressPattern) -> int:
        """Returns the number of an access pattern of a site."""
        key = site, pattern
        number = self._shapes.find(key)
        return self._shapes.add(key, self._shape(*key)) if number is None else number

    def _shape(self, site: int, pattern: AddressPattern) -> Shape:
        """Builds the row of a pattern, with its transactions and costs."""
        site_row, lanes = self._sites.rows[site], pattern.lanes
        if not site_row.rule or lanes >> 32:  # rules are for warps of 32
            return Shape(lanes, pattern.offsets, (), NO_COST)
        addresses, moved = pattern.addresses()
        row = np.zeros(CostRecord.WORDS, np.int64)
        for rule in self._counting_rules(site_row):
            self._count(rule, addresses, lanes, site_row.size, row)
        parts = list_transactions(site_row.rule, addresses.tolist(), lanes, site_row.size)
        # A pass over banks moves no bytes, and has no first one.
        served = tuple([(one.start - moved if one.size else 0, *one[1:]) for one in parts])
        return Shape(lanes, pattern.offsets, served, tuple(row[: len(NO_COST)].tolist()))

    def _counting_rules(self, site: Site) -> list[str]:
        """Returns the rules that count an access of a site, as both machines apply them."""
        rules = [site.rule]
        if site.op == "atomic":
            rules.append("count_passes")
        if site.op == "store" and (writes := self._rules.writes(site.space)):
            rules.append(writes)
        return rules
