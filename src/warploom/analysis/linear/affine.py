"""Computes, just before a launch, the addresses that each instruction of its program accesses, as
linear forms (`forms`) of thread indices, block indices and iteration counts.

A forward data-flow analysis over the values of registers. What is known of a launch is its
dimensions, its parameters, and the addresses of allocations. Loops are handled by a variable that
counts iterations:

    mov.u32 %r1, %tid.x;
    loop: ld.global.f32 %f1, [%rd1];     %rd1 = x + 4 * %tid.x + 1024 * (iteration at loop)
    add.s64 %rd1, %rd1, 1024; ... bra loop;

Not handled: values loaded from memory (unknown), and registers that change by different amounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable
from warploom.analysis.linear.joins import Joins, LinearValue, Values
from warploom.analysis.linear.register_values import ANYTHING, LaunchInputs, RegisterValues
from warploom.analysis.linear.trips import BranchComparison, last_count, replaced
from warploom.isa.instruction import Address, Space
from warploom.program.accesses import accesses, bytes_of
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program

NOT_SHARED = (Space.SHARED, Space.LOCAL, Space.PARAM, Space.CONST)
"""Spaces that thread blocks do not share, or cannot write."""

TEXELS = (Space.TEXTURE, Space.SURFACE)
"""Spaces that are accessed through objects, not by pointers."""

GLOBAL_SPACES = frozenset(Space) - {*NOT_SHARED, *TEXELS}
"""Spaces whose accesses are, or may be, to global memory."""


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """An access to memory by instruction number `instruction`: `size` bytes of each thread from
    `address` on; `op` is load, store or atomic."""

    instruction: int
    op: str
    size: int
    address: LinearValue


def global_accesses(program: Program, launch: LaunchInputs) -> tuple[MemoryAccess, ...]:
    """Returns the accesses in reachable blocks of a program to GLOBAL_SPACES, with what is known of
    their addresses."""
    return tuple(LinearAnalysis(program, launch).memory_accesses(GLOBAL_SPACES))


class LinearAnalysis:
    """Propagates linear forms of registers through a program to a fixed point. `values` computes
    them, and `ends` are those at the end of each reachable basic block, by register name."""

    def __init__(self, program: Program, launch: LaunchInputs) -> None:
        """Runs the analysis for a program and a launch; results are in `states` afterwards."""
        self.program, self.launch = program, launch
        self.values = RegisterValues(program, launch)
        self.joins = Joins(program)
        self.ends: dict[int, Values] = {}
        comparisons = {b.index: BranchComparison.of(program, b) for b in program.blocks}
        self._comparisons = {at: one for at, one in comparisons.items() if one is not None}
        # The forms of the sources of each comparison, when it was last executed.
        self._compared: dict[int, list[Form | None]] = {}
        self._follow()
        while self.joins.find_irregular(self._edges()) or self._find_trips():
            self._follow()

    @property
    def states(self) -> Mapping[int, Values]:
        """Returns the values of live registers at the start of each reachable basic block."""
        return self.joins.states

    @property
    def reachable(self) -> Set[int]:
        """Returns the instructions that a thread may execute, by their numbers."""
        blocks = [self.program.blocks[index] for index in self.states]
        return {at for block in blocks for at in range(block.start, block.stop)}

    def _follow(self) -> None:
        """Propagates states along edges between basic blocks, from the entry, until none
        changes."""
        self.joins.begin()
        self.ends.clear()
        waiting = {0}
        while waiting:
            # In the order of the program, so that all paths through a loop are followed before it
            # is entered again: what comes along a path that is not would be of an older visit.
            waiting.remove(first := min(waiting))
            basic_block = self.program.blocks[first]
            self.ends[first] = self._end_of(basic_block)
            for successor in self.successors(basic_block):
                edge = first, successor
                if self.joins.enter(edge, self.along(edge), self._constants_along(edge)):
                    waiting.add(successor)

    def _edges(self) -> Iterator[tuple[tuple[int, int], Values]]:
        """Yields the edges that threads may follow, with the values of registers along each."""
        for index in self.ends:
            for successor in self.successors(self.program.blocks[index]):
                yield (index, successor), self.along((index, successor))

    def along(self, edge: tuple[int, int]) -> Values:
        """Returns the values of registers along an edge from a reachable block."""
        after, left = self.ends[edge[0]], self.joins.leaves(edge)
        if not left:
            return after
        return {
            name: LinearValue(value.form and replaced(value.form, left), value.allocations)
            for name, value in after.items()
        }

    def _constants_along(self, edge: tuple[int, int]) -> Mapping[IndexVariable, Form]:
        """Returns the variables that have one value wherever an edge is followed, because the
        branch at the end of its first block compares them with it."""
        block = self.program.blocks[edge[0]]
        comparison = self._comparisons.get(edge[0])
        if comparison is None or len({*block.successors}) != 2:
            return {}
        return comparison.fixed(self._compared[edge[0]], first=block.successors[0] == edge[1])

    def _find_trips(self) -> bool:
        """Finds how often loops run, and returns whether that was not known of all of them."""
        joins = self.joins
        counts = {
            (block, header): last
            for block, header in joins.exits()
            if (block, header) not in joins.last_counts
            and (last := self._last_count(block, header)) is not None
        }
        joins.add_last_counts(counts)
        return bool(counts)

    def _last_count(self, block: int, header: int) -> Form | None:
        """Returns how many iterations of the loop with a header come before the one in which a
        block leaves it (`trips.last_count`); None if that is not known, or no thread gets to the
        block."""
        comparison = self._comparisons.get(block)
        if comparison is None or block not in self.ends:
            return None
        goes_on_first = self.joins.goes_on_first(block, header)
        count, arguments = self.joins.iterations(header), self._compared[block]
        last = last_count(comparison, arguments, count, goes_on_first=goes_on_first)
        return last if last is not None and self.joins.is_constant_in(last, header) else None

    def successors(self, basic_block: ProgramBlock) -> Sequence[int]:
        """Returns the successors of a reachable block that threads may go to: one, if the guard of
        the branch at its end is the same for all threads; without the program's exit."""
        successors = basic_block.successors
        guard = self.program.instructions[basic_block.stop - 1].guard
        if guard is not None and len(successors) == 2:
            holds = self.ends[basic_block.index].get(guard.register.name, ANYTHING).form
            if holds is not None and holds.is_constant:
                successors = successors[holds.constant == guard.negated :][:1]
        return [successor for successor in successors if successor != self.program.exit]

    def memory_accesses(self, spaces: Set[Space]) -> Iterable[MemoryAccess]:
        """Yields every access in reachable blocks whose state space is one of `spaces` (generic
        accesses count as Space.GENERIC), with the value of its address."""
        for index in self.states:
            for at, state in self.states_in(self.program.blocks[index]):
                for space, op in accesses(self.program.instructions[at]):
                    if space in spaces:
                        yield self._memory_access(at, op, state)

    def _memory_access(self, index: int, op: str, state: Mapping[str, LinearValue]) -> MemoryAccess:
        """Returns the access `op` (load, store or atomic) by instruction number `index`, at the
        value that its last address operand (of `cp.async` the one in global memory) has in a state;
        at any address if it has none."""
        instruction = self.program.instructions[index]
        addresses = [o for o in instruction.operands if isinstance(o, Address)]
        # The second address of `cp.async` is the one in global memory; matrices have descriptors
        # instead.
        address = self.values.address(addresses[-1], state) if addresses else ANYTHING
        return MemoryAccess(index, op, bytes_of(instruction), address)

    def states_in(
        self, basic_block: ProgramBlock
    ) -> Iterable[tuple[int, Mapping[str, LinearValue]]]:
        """Yields the index of each instruction of a reachable block with the state (values of
        registers by name) before it. All yields share one dictionary, updated in place."""
        state = dict(self.states[basic_block.index])
        for index in range(basic_block.start, basic_block.stop):
            yield index, state
            self.values.step(self.program.instructions[index], state)

    def _end_of(self, basic_block: ProgramBlock) -> Values:
        """Returns the state at the end of a reachable block: values of registers by name."""
        state = dict(self.states[basic_block.index])
        comparison = self._comparisons.get(basic_block.index)
        for index in range(basic_block.start, basic_block.stop):
            if comparison is not None and index == comparison.instruction:
                forms = [self.values.value(source, state).form for source in comparison.sources]
                self._compared[basic_block.index] = forms
            self.values.step(self.program.instructions[index], state)
        return state
