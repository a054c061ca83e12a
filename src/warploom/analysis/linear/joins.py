"""Joins the values that registers have at the ends of several basic blocks into those at the start
of the block that follows, as linear forms of variables for the path that a thread came by.

    i = tid; p = x + 4 * tid             at the entry of a loop
    i += 32; p += 128                    at its end
    i = tid + 32 * T, p = x + 4 * tid + 128 * T     at its header: T counts its iterations

Registers have a common variable where they change together: the count of a loop's iterations, or,
where paths meet, by how much the path advances them all. So a comparison of `i` also bounds `p`.
That is first assumed of all registers; those of which it turns out to be wrong have a variable each
(`irregular`), and the analysis begins again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable, form
from warploom.program.program import Program
from warploom.program.regions import natural_loops, predecessors


@dataclass(frozen=True, slots=True)
class LinearValue:
    """The value of a register: its form (None: unknown), and the start addresses of the allocations
    that it may point into (None: any)."""

    form: Form | None
    allocations: frozenset[int] | None


ZERO = LinearValue(form(0), frozenset())

MOST_VISITS = 8
"""Visits of a block after which the values of earlier ones are covered, too, so that the analysis
ends."""

Values = Mapping[str, LinearValue]
"""Values of registers by name; an absent register has 0."""


def united_allocations(values: Iterable[LinearValue]) -> frozenset[int] | None:
    """Returns the start addresses of the allocations that a value computed from `values` may point
    into; None (any) if one of these may point anywhere."""
    allocations: frozenset[int] = frozenset()
    for value in values:
        if value.allocations is None:
            return None
        allocations |= value.allocations
    return allocations


def joined(previous: LinearValue, incoming: LinearValue, variable: IndexVariable) -> LinearValue:
    """Returns a value that covers both values, with the allocations that either may point into.
    Equal forms are retained. Forms that differ by constants and multiples of counts, all of one
    sign, as those of a counter do between iterations, give the first value plus `variable` times a
    stride. The stride is the greatest common divisor of these terms, and of the stride that
    `variable` has already. For all others the form is unknown.

        i = 5 at the entry, i + 2 at the back edge      5 + 2 * variable
        and i + 4 * j + 2 at another edge               5 + 2 * variable"""
    allocations = united_allocations((previous, incoming))
    a, b = previous.form, incoming.form
    if a is None or b is None or a == b:
        return LinearValue(a if a == b else None, allocations)
    start = a.without(variable)
    change = b.without(variable).plus(start, -1)
    strides = [_stride(side, variable) for side in (a, b)]
    terms = [change.constant, *(stride for _, stride in change.strides), *strides]
    # Variables are never negative, so terms of one sign change the value in one direction. Only
    # counts of iterations are assumed not to make values wrap around (`forms.COUNTER_BITS`).
    counts = all(variable.counts for variable, _ in change.strides)
    if min(terms) < 0 < max(terms) or not counts:
        return LinearValue(None, allocations)
    # The analysis ends though values change with each visit: the next step is a divisor of this
    # one, so it changes a bounded number of times, and the form covers all values that it covered
    # before.
    step = math.gcd(*terms) * (-1 if min(terms) < 0 else 1)
    return LinearValue(start.plus(form(0, {variable: step})), allocations)


class Joins:
    """The values of live registers at the start of each basic block that has been entered
    (`states`), and at headers of loops also those with which the loop is entered (`entries`)."""

    def __init__(self, program: Program) -> None:
        """Finds the loops of a program; enters none of its blocks. `trips` has how often loops run,
        by header, where that is known."""
        self._program = program
        self.trips: dict[int, int] = {}
        self._loops = natural_loops(program, predecessors(program))
        self.irregular = set[tuple[str, int]]()
        self.entries: dict[int, Values] = {}
        self.states: dict[int, Values] = {}
        self._along: dict[int, dict[int, Values]] = {}
        self._visits = Counter[int]()

    def begin(self) -> None:
        """Drops all values, and enters the first block, with 0 in all registers."""
        self.entries, self.states = {}, {0: {}}
        self._along, self._visits = {}, Counter[int]()

    def enter(self, edge: tuple[int, int], after: Values) -> bool:
        """Joins the values `after` the first block of an edge into those at the start of the
        second, for its live-in registers. Returns whether that changes them (always at the first
        visit)."""
        # Live registers only: a dead one that differs between edges would lose its form for
        # nothing, and have the block visited again.
        block = edge[1]
        names = [register.name for register in self._program.live_in[block]]
        incoming = {name: after.get(name, ZERO) for name in names}
        self._visits[block] += 1
        if block not in self.states:
            self.states[block] = self.entries[block] = incoming
            self._along[block] = {edge[0]: incoming}
            return True
        previous = self.states[block]
        if not self._is_back(edge):
            self._along[block][edge[0]] = incoming
            self.entries[block] = self._entries_of(block)
        self.states[block] = {
            name: self._at_start(edge, name, previous[name], self.entries[block][name], value)
            for name, value in incoming.items()
        }
        return self.states[block] != previous

    def _entries_of(self, block: int) -> Values:
        """Returns the values that cover those of the last visits along each edge to a block, but
        those back to the header of a loop; after MOST_VISITS, also those of all visits before."""
        paths, (first, *others) = _paths_at(block), self._along[block].values()
        if self._visits[block] > MOST_VISITS:
            others.append(self.entries[block])
        entries = dict(first)
        for other in others:
            for name, value in other.items():
                entries[name] = joined(entries[name], value, paths)
        return entries

    def _at_start(
        self,
        edge: tuple[int, int],
        name: str,
        previous: LinearValue,
        entry: LinearValue,
        incoming: LinearValue,
    ) -> LinearValue:
        """Returns the value of a register at the start of the second block of an edge: of the
        `previous` one there, the one with which a loop is entered (`entry`), and the one that comes
        along the edge."""
        block = edge[1]
        if (name, block) in self.irregular:
            return joined(previous, incoming, _own_at(name, block))
        iterations = self.iterations(block)
        if self._is_back(edge):
            return joined(previous, incoming, iterations)
        if previous.form is None or entry.form is None:
            return LinearValue(None, united_allocations((previous, entry)))
        stride = _stride(previous.form, iterations)
        advanced = entry.form.plus(form(0, {iterations: stride}))
        return LinearValue(advanced, united_allocations((previous, entry)))

    def iterations(self, header: int) -> IndexVariable:
        """Returns the variable that counts the iterations of the loop with a header, before the one
        that begins."""
        name, at = f"iteration at {header}", frozenset((header,))
        return IndexVariable(name, self.trips.get(header), at=at, counts=True)

    def latches(self) -> Iterator[tuple[int, int]]:
        """Yields the edges back to the headers of loops that have only one."""
        for header, blocks in self._loops.items():
            back = [b for b in blocks if header in self._program.blocks[b].successors]
            if header in self.states and len(back) == 1:
                yield back[0], header

    def leaves(self, edge: tuple[int, int]) -> dict[IndexVariable, int]:
        """Returns the counts of iterations that are known after an edge which leaves loops at their
        end."""
        return {
            self.iterations(header): self.trips[header] - 1
            for latch, header in self.latches()
            if header in self.trips and latch == edge[0] and edge[1] not in self._loops[header]
        }

    def _is_back(self, edge: tuple[int, int]) -> bool:
        """Returns whether an edge leads back to the header of a loop."""
        return edge[0] in self._loops.get(edge[1], ())

    def counts_after(self, edge: tuple[int, int], after: Values) -> dict[IndexVariable, Form]:
        """Returns the values of the variables of a block's start after an edge to it, as forms of
        the variables before the edge. Missing are those whose value is not known. `after` are the
        values of registers at the end of the edge's first block."""
        block = edge[1]
        paths, iterations = _paths_at(block), self.iterations(block)
        counts = {iterations: form(0)}
        if self._is_back(edge):
            counts = {iterations: form(1, {iterations: 1}), paths: form(0, {paths: 1})}
        elif (chosen := self._path(block, after)) is not None:
            counts[paths] = chosen
        for name, value in self.states[block].items():
            own, incoming = _own_at(name, block), after.get(name)
            stride = _stride(value.form, own) if value.form else 0
            if stride and value.form and incoming and incoming.form:
                count = _divided(incoming.form.plus(value.form.without(own), -1), stride)
                if count is not None:
                    counts[own] = count
        return counts

    def _path(self, block: int, after: Values) -> Form | None:
        """Returns the value of the variable for the paths that meet at a block, which most
        registers have after one of them; None if none has that variable."""
        counted = Counter(path for _, path in self._paths_of(block, after) if path is not None)
        return counted.most_common(1)[0][0] if counted else None

    def _paths_of(self, block: int, after: Values) -> Iterator[tuple[str, Form | None]]:
        """Yields the registers of a block's start whose values have the variable for the paths that
        meet there, each with the value of that variable by which it has the value that it has
        `after` one of them; None if there is none."""
        paths = _paths_at(block)
        for name, value in self.entries[block].items():
            stride = _stride(value.form, paths) if value.form else 0
            if stride and value.form and (name, block) not in self.irregular:
                incoming = after.get(name, ZERO).form
                start = value.form.without(paths)
                yield name, _divided(incoming.plus(start, -1), stride) if incoming else None

    def find_irregular(self, ends: Iterable[tuple[tuple[int, int], Values]]) -> bool:
        """Adds the registers to `irregular` that do not change together with others, and returns
        whether there are any; `ends` are all edges, with the values at the end of the first block
        of each. Of all others, the values at the start of each block are what comes along each edge
        to it."""
        wrong = set[tuple[str, int]]()
        for edge, after in ends:
            wrong |= {(name, edge[1]) for name in self._differing(edge, after)}
        self.irregular |= wrong
        return bool(wrong)

    def _differing(self, edge: tuple[int, int], after: Values) -> Iterator[str]:
        """Yields the registers whose values `after` the first block of an edge are not those at the
        start of the second, for the values that its variables have after the edge."""
        block = edge[1]
        if self._is_back(edge):
            iterations = self.iterations(block)
            expected, advanced = self.states[block], iterations
        else:
            expected, advanced = self.entries[block], _paths_at(block)
        counts = self.counts_after(edge, after)
        for name, value in expected.items():
            if value.form is None or (name, block) in self.irregular:
                continue
            stride = _stride(value.form, advanced)
            count = counts.get(advanced)
            if stride and count is None:
                yield name
                continue
            along = value.form.without(advanced)
            if stride and count is not None:
                along = along.plus(count, stride)
            if after.get(name, ZERO).form != along:
                yield name


def _paths_at(block: int) -> IndexVariable:
    """Returns the variable for the paths that meet at the start of a block, or of the loop with
    that header."""
    return IndexVariable(f"path to {block}", None, at=frozenset((block,)), counts=True)


def _own_at(name: str, block: int) -> IndexVariable:
    """Returns the variable of one register alone at the start of a block."""
    return IndexVariable(f"{name} at {block}", None, at=frozenset((block,)), counts=True)


def _stride(value: Form, variable: IndexVariable) -> int:
    """Returns the stride of a variable in a form, 0 if it has none."""
    return dict(value.strides).get(variable, 0)


def _divided(value: Form, by: int) -> Form | None:
    """Returns a form divided by a number; None if its constant or a stride is no multiple of the
    number."""
    if any(number % by for number in (value.constant, *(stride for _, stride in value.strides))):
        return None
    return Form(value.constant // by, tuple((v, stride // by) for v, stride in value.strides))
