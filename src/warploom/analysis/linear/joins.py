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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from warploom.analysis.linear.forms import (
    ELSEWHERE,
    Form,
    IndexVariable,
    divided,
    form,
    is_never_negative,
    replaced,
)
from warploom.program.dominance import does_dominate, dominators
from warploom.program.program import Program
from warploom.program.regions import dominated_loops


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
    # counts of iterations are assumed not to make values wrap around (`term_forms.COUNTER_BITS`).
    counts = all(variable.counts for variable, _ in change.strides)
    if min(terms) < 0 < max(terms) or not counts:
        return LinearValue(None, allocations)
    # The analysis ends though values change with each visit: the next step is a divisor of this
    # one, so it changes a bounded number of times, and the form covers all values that it covered
    # before.
    step = math.gcd(*terms) * (-1 if min(terms) < 0 else 1)
    return LinearValue(start.plus(form(0, {variable: step})), allocations)


def merged(values: Sequence[LinearValue], name: str, at: int) -> LinearValue:
    """Returns a value that covers each of several, of which a thread has one: a common one plus a
    stride times a variable with a name, for which of them it is, which may change at the start of
    block `at`. The variable is bounded unless values differ by unbounded ones."""
    unbounded = IndexVariable(name, None, at=frozenset((at,)), counts=True)
    value = reduce(lambda one, other: joined(one, other, unbounded), values)
    stride = _stride(value.form, unbounded) if value.form else 0
    if not stride or value.form is None:
        return value
    start = value.form.without(unbounded)
    counts = [_count_of(one.form, start, stride) for one in values]
    bounds = [count.high for count in counts if count is not None and count.is_bounded]
    if len(bounds) < len(counts):
        return value
    bounded = replace(unbounded, extent=max(bounds) + 1)
    return LinearValue(start.plus(form(0, {bounded: stride})), value.allocations)


def _count_of(value: Form | None, start: Form, stride: int) -> Form | None:
    """Returns the form that is never negative by which `start` plus `stride` times it is a value;
    None if there is none."""
    count = None if value is None else divided(value.plus(start, -1), stride)
    return count if count is not None and is_never_negative(count) else None


def _covering(
    values: Sequence[LinearValue], constants: Sequence[Mapping[IndexVariable, Form]]
) -> LinearValue | None:
    """Returns the one of some values that each is, if the variables that are `constants` along its
    path have their values; None if there is none."""
    for value in values if any(constants) else ():
        if value.form is not None and all(
            other.form in (value.form, replaced(value.form, along))
            for other, along in zip(values, constants, strict=True)
        ):
            return LinearValue(value.form, united_allocations(values))
    return None


class Joins:
    """The values of live registers at the start of each basic block that has been entered
    (`states`), and at headers of loops also those with which the loop is entered (`entries`)."""

    def __init__(self, program: Program) -> None:
        """Finds the loops of a program; enters none of its blocks. `last_counts` has how many
        iterations come before the one in which a loop is left, where that is known, by the block
        that decides it and the loop's header (`exits`)."""
        self._program = program
        self.last_counts: dict[tuple[int, int], Form] = {}
        self._extents: dict[int, int] = {}
        self._loops = dominated_loops(program)
        self._deciding = list(self._deciding_blocks())
        self.irregular = set[tuple[str, int]]()
        self.irregular_paths = set[tuple[str, int]]()
        self.unknown = set[tuple[str, int]]()
        self.entries: dict[int, Values] = {}
        self.states: dict[int, Values] = {}
        self._along: dict[int, dict[int, Values]] = {}
        self._constants: dict[tuple[int, int], Mapping[IndexVariable, Form]] = {}
        self._visits = Counter[int]()

    def begin(self) -> None:
        """Drops all values, and enters the first block, with 0 in all registers."""
        self.entries, self.states = {}, {0: {}}
        self._along, self._constants, self._visits = {}, {}, Counter[int]()

    def enter(
        self, edge: tuple[int, int], after: Values, constants: Mapping[IndexVariable, Form]
    ) -> bool:
        """Joins the values `after` the first block of an edge into those at the start of the
        second, for its live-in registers. Returns whether that changes them (always at the first
        visit). `constants` are variables that have one value wherever the edge is followed."""
        self._constants[edge] = constants
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
        those back to the header of a loop. After MOST_VISITS, values that still change are unknown,
        so that the analysis ends."""
        along = self._along[block]
        constants = [self._constants[before, block] for before in along]
        entries = dict[str, LinearValue]()
        for name, previous in self.entries[block].items():
            values = [side[name] for side in along.values()]
            value = _covering(values, constants) or merged(values, self._path(name, block), block)
            changes = self._visits[block] > MOST_VISITS and value.form != previous.form
            if changes or (name, block) in self.unknown:
                value = LinearValue(None, value.allocations)
            entries[name] = value
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
        iterations = self._iterations_of(name, edge[1])
        if (name, edge[1]) in self.unknown:
            return LinearValue(None, united_allocations((previous, entry, incoming)))
        if self._is_back(edge):
            return joined(previous, incoming, iterations)
        if previous.form is None or entry.form is None:
            return LinearValue(None, united_allocations((previous, entry)))
        stride = _stride(previous.form, iterations)
        advanced = entry.form.plus(form(0, {iterations: stride}))
        return LinearValue(advanced, united_allocations((previous, entry)))

    def _path(self, name: str, block: int) -> str:
        """Returns the name of the variable of a register for the paths that meet at a block, or at
        the entry of the loop with that header: a common one, or one of its own if the register
        differs from others."""
        of_register = f" of {name}" if (name, block) in self.irregular_paths else ""
        return f"path{of_register} to {block}"

    def _iterations_of(self, name: str, header: int) -> IndexVariable:
        """Returns the variable that counts how often a register has been advanced when an iteration
        begins: the number of iterations of the loop, if it is advanced in each."""
        if (name, header) not in self.irregular:
            return self.iterations(header)
        at = frozenset((header,))
        return IndexVariable(f"iteration of {name} at {header}", None, at=at, counts=True)

    def iterations(self, header: int) -> IndexVariable:
        """Returns the variable that counts the iterations of the loop with a header, before the one
        that begins."""
        name, extent = f"iteration at {header}", self._extents.get(header)
        return IndexVariable(name, extent, at=frozenset((header,)), counts=True)

    def add_last_counts(self, counts: Mapping[tuple[int, int], Form]) -> None:
        """Adds to `last_counts`, which bound the variables of the loops."""
        self.last_counts |= counts
        for (_, header), last in counts.items():
            extent = last.high + 1
            self._extents[header] = min(extent, self._extents.get(header, extent))

    def exits(self) -> Iterator[tuple[int, int]]:
        """Yields the blocks that decide in each iteration of a loop whether it goes on, each with
        the loop's header."""
        return ((block, header) for block, header in self._deciding if header in self.states)

    def _deciding_blocks(self) -> Iterator[tuple[int, int]]:
        """Yields the same of all loops, entered or not: blocks on all paths through a loop from
        which one edge leaves it."""
        blocks = self._program.blocks
        immediate = dominators([*(list(block.successors) for block in blocks), []])
        for header, inside in self._loops.items():
            back = [at for at in inside if header in blocks[at].successors]
            for at in sorted(inside & immediate.keys()):
                stays = [to in inside for to in blocks[at].successors]
                if sorted(stays) == [False, True] and all(
                    does_dominate(immediate, at, latch) for latch in back if latch in immediate
                ):
                    yield at, header

    def goes_on_first(self, block: int, header: int) -> bool:
        """Returns whether the first successor of a block is in the loop with a header."""
        return self._program.blocks[block].successors[0] in self._loops[header]

    def leaves(self, edge: tuple[int, int]) -> dict[IndexVariable, Form]:
        """Returns the counts of iterations that are known after an edge which leaves loops at their
        end."""
        return {
            self.iterations(header): last
            for (block, header), last in self.last_counts.items()
            if block == edge[0] and edge[1] not in self._loops[header]
        }

    def is_constant_in(self, value: Form, header: int) -> bool:
        """Returns whether no variable of a form changes while the loop with a header runs, from its
        first iteration on."""
        inside = {*self._loops[header], ELSEWHERE} - {header}
        return all(inside.isdisjoint(variable.at) for variable, _ in value.strides)

    def _is_back(self, edge: tuple[int, int]) -> bool:
        """Returns whether an edge leads back to the header of a loop."""
        return edge[0] in self._loops.get(edge[1], ())

    def counts_after(self, edge: tuple[int, int], after: Values) -> dict[IndexVariable, Form]:
        """Returns the values of the variables of a block's start after an edge to it, as forms of
        the variables before the edge. Missing are those whose value is not known. `after` are the
        values of registers at the end of the edge's first block."""
        block, is_back = edge[1], self._is_back(edge)
        iterations, counts = self.iterations(block), dict[IndexVariable, Form]()
        if not is_back:
            counts = self._paths_after(block, after)
        for name, value in self.states[block].items():
            for variable, stride in value.form.strides if value.form else ():
                if is_back and variable.name == self._path(name, block):
                    counts[variable] = form(0, {variable: 1})
                elif variable == self._iterations_of(name, block) != iterations and value.form:
                    start = value.form.without(variable)
                    count = _count_of(after.get(name, ZERO).form, start, stride)
                    if is_back and count is not None:
                        counts[variable] = count
                    elif not is_back:
                        counts[variable] = form(0)
        return counts | {iterations: form(1, {iterations: 1}) if is_back else form(0)}

    def _paths_after(self, block: int, after: Values) -> dict[IndexVariable, Form]:
        """Returns the value of each variable for the paths that meet at a block, which most
        registers have after one of them."""
        counted = defaultdict[IndexVariable, Counter[Form]](Counter)
        for name, value in self.entries[block].items():
            for variable, stride in value.form.strides if value.form else ():
                if variable.name == self._path(name, block) and value.form:
                    start = value.form.without(variable)
                    count = _count_of(after.get(name, ZERO).form, start, stride)
                    if count is not None:
                        counted[variable][count] += 1
        return {variable: counts.most_common(1)[0][0] for variable, counts in counted.items()}

    def find_irregular(self, ends: Iterable[tuple[tuple[int, int], Values]]) -> bool:
        """Adds the registers that do not change together with others to `irregular` (in a loop) or
        to `irregular_paths`, or if they are there, to `unknown`. Returns whether there are any;
        `ends` are all edges, with the values at the end of the first block of each. Of all others,
        the values at the start of each block are what comes along each edge to it."""
        in_loops, on_paths = set[tuple[str, int]](), set[tuple[str, int]]()
        for edge, after in ends:
            differing = {(name, edge[1]) for name in self._differing(edge, after)}
            if self._is_back(edge):
                in_loops |= differing
            else:
                on_paths |= differing
        self.unknown |= in_loops & self.irregular | on_paths & self.irregular_paths
        self.irregular |= in_loops
        self.irregular_paths |= on_paths
        return bool(in_loops or on_paths)

    def _differing(self, edge: tuple[int, int], after: Values) -> Iterator[str]:
        """Yields the registers whose values `after` the first block of an edge are not those at the
        start of the second, for the values that its variables have after the edge."""
        block, is_back = edge[1], self._is_back(edge)
        expected = self.states[block] if is_back else self.entries[block]
        counts = self.counts_after(edge, after) if is_back else self._paths_after(block, after)
        constants = self._constants.get(edge, {})
        for name, value in expected.items():
            if value.form is not None:
                along = replaced(value.form, counts)
                if after.get(name, ZERO).form not in (along, replaced(along, constants)):
                    yield name


def _stride(value: Form, variable: IndexVariable) -> int:
    """Returns the stride of a variable in a form, 0 if it has none."""
    return dict(value.strides).get(variable, 0)
