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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar

from warploom.analysis.linear.forms import ELSEWHERE, Form, IndexVariable, form
from warploom.analysis.linear.joins import (
    ZERO,
    Joins,
    LinearValue,
    Values,
    merged,
)
from warploom.analysis.linear.origins import allocations_of_result
from warploom.analysis.linear.term_forms import evaluate
from warploom.analysis.linear.trips import BranchComparison, last_count, replaced
from warploom.core.errors import Dim3
from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Space,
    Special,
    Symbol,
    flatten_operands,
)
from warploom.isa.kinds import OpKind
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
class LaunchInputs:
    """The known values of a launch: dimensions, the bytes of its parameters, and the addresses of
    `Program.globals`. `allocation_of` returns the addresses of the allocation that contains an
    address; None if there is none."""

    grid: Dim3
    block: Dim3
    parameters: bytes
    globals: Sequence[int]
    allocation_of: Callable[[int], range | None]


POINTER_BITS = 64

T = TypeVar("T")

ANYTHING = LinearValue(None, None)


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
    """Propagates linear forms of registers through a program to a fixed point. `ends` are the
    values of registers by name at the end of each reachable basic block; `allocations` are those
    that pointers refer to, by their start."""

    def __init__(self, program: Program, launch: LaunchInputs) -> None:
        """Runs the analysis for a program and a launch; results are in `states` afterwards."""
        self.program, self.launch = program, launch
        self.allocations: dict[int, range] = {}
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
        joins.last_counts |= counts
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
        address = self._address(addresses[-1], state) if addresses else ANYTHING
        return MemoryAccess(index, op, bytes_of(instruction), address)

    def states_in(
        self, basic_block: ProgramBlock
    ) -> Iterable[tuple[int, Mapping[str, LinearValue]]]:
        """Yields the index of each instruction of a reachable block with the state (values of
        registers by name) before it. All yields share one dictionary, updated in place."""
        state = dict(self.states[basic_block.index])
        for index in range(basic_block.start, basic_block.stop):
            yield index, state
            self._step(self.program.instructions[index], state)

    def _end_of(self, basic_block: ProgramBlock) -> Values:
        """Returns the state at the end of a reachable block: values of registers by name."""
        state = dict(self.states[basic_block.index])
        comparison = self._comparisons.get(basic_block.index)
        for index in range(basic_block.start, basic_block.stop):
            if comparison is not None and index == comparison.instruction:
                forms = [self.value(source, state).form for source in comparison.sources]
                self._compared[basic_block.index] = forms
            self._step(self.program.instructions[index], state)
        return state

    def _step(self, instruction: Instruction, state: dict[str, LinearValue]) -> None:
        """Sets in `state`, in place, the value of each register that an instruction writes. A
        guarded one joins its result with the old value (an absent register has 0): equal forms
        stay, forms that differ by a constant get a variable without bound for the choice, others
        become None (unknown). The result may point into the allocations of both values."""
        count = len(instruction.operation.spec.destinations)
        targets = [
            o for o in flatten_operands(instruction.operands[:count]) if isinstance(o, Register)
        ]
        for position, target in enumerate(targets):
            result = self._result(instruction, position, state)
            if instruction.guard is not None:
                # A guarded write leaves one of two values: a variable that may change anywhere
                # covers both.
                values = state.get(target.name, ZERO), result
                result = merged(values, f"guarded {target.name}", ELSEWHERE)
            state[target.name] = result

    def _result(
        self, instruction: Instruction, position: int, state: Mapping[str, LinearValue]
    ) -> LinearValue:
        """Returns the value of an instruction's destination number `position`, in a state: a kernel
        parameter for its load, unknown for other memory, the source for `mov` and `cvta`, the
        evaluated term for instructions that compute, unknown for all others. It may point into the
        allocations that its sources may point into (`origins`). From memory, a kernel parameter may
        point into the one that contains it, any other value into any, or none if narrower than a
        pointer."""
        operation, operands = instruction.operation, instruction.operands
        if operation.kind is OpKind.LOAD:
            return self._loaded(instruction, position)
        # Before sources are looked at: what an atomic returns comes from memory, not from its
        # operands.
        if accesses(instruction):
            return self._unknown_from_memory(instruction)
        sources = tuple(flatten_operands(operands[len(operation.spec.destinations) :]))
        values = [self.value(source, state) for source in sources]
        allocations = allocations_of_result(instruction, position, values)
        if operation.kind is OpKind.CONVERT_ADDRESS:
            return LinearValue(values[0].form, allocations)
        semantics = operation.spec.semantics
        if semantics is None:
            return LinearValue(
                values[0].form if operation.kind is OpKind.MOVE else None, allocations
            )
        terms = operation.terms_for(len(sources))
        arguments = argument_values(instruction, [value.form for value in values])
        return LinearValue(
            evaluate(terms[position], arguments) if position < len(terms) else None, allocations
        )

    def _loaded(self, instruction: Instruction, position: int) -> LinearValue:
        """Returns the value that a `ld` writes to destination number `position`: the constant of
        the launch, its bytes read as an unsigned number, if its address begins with the name of a
        kernel parameter (`_constant`); an unknown value for all other memory
        (`_unknown_from_memory`)."""
        address = instruction.operands[1]
        if not (isinstance(address, Address) and isinstance(address.base, Symbol)):
            return self._unknown_from_memory(instruction)
        slot = self.program.slots.get(address.base.name)
        if slot is None or slot.space is not Space.PARAM or slot.frame:
            return self._unknown_from_memory(instruction)
        type = instruction.operation.modifiers.scalar()
        at = slot.offset + address.offset + position * type.bytes
        bits = int.from_bytes(self.launch.parameters[at : at + type.bytes], "little")
        return self._constant(bits)

    def _unknown_from_memory(self, instruction: Instruction) -> LinearValue:
        """Returns the unknown value that a load or an atomic returns: it points into no allocation
        if the instruction's type is narrower than a pointer (64 bits), else perhaps into any."""
        modifiers = instruction.operation.modifiers
        narrow = "type" in modifiers.values and modifiers.scalar().bits < POINTER_BITS
        return LinearValue(None, frozenset() if narrow else None)

    def _constant(self, bits: int) -> LinearValue:
        """Returns the value of a constant, the unsigned integer `bits`. If an allocation contains
        that address, the value may point into it, and it is recorded in `allocations`; else the
        value points into none."""
        # A number that happens to be an address in an allocation counts as a pointer into it: where
        # it is added to a pointer, the access may be to one more allocation.
        allocation = self.launch.allocation_of(bits)
        if allocation is None:
            return LinearValue(form(bits), frozenset())
        self.allocations[allocation.start] = allocation
        return LinearValue(form(bits), frozenset((allocation.start,)))

    def _address(self, address: Address, state: Mapping[str, LinearValue]) -> LinearValue:
        """Returns the value of an address operand, its offset added; one that is computed from no
        pointer may point into any allocation."""
        base = ZERO if address.base is None else self.value(address.base, state)
        moved = None if base.form is None else base.form.plus(form(address.offset))
        # No origin also means an integer that was made into an address: it may be in any
        # allocation.
        return LinearValue(moved, base.allocations or None)

    def value(self, operand: Operand, state: Mapping[str, LinearValue]) -> LinearValue:
        """Returns the value of an operand in a state: a register's (0 if the state has none), an
        integer constant, the form of a special register, the address of a global variable, the
        offset of one in shared memory (in any allocation). A float constant or another special
        register has an unknown form and points into no allocation; all else may have any value."""
        match operand:
            case Register(name):
                return state.get(name, ZERO)
            case Immediate(value, float_bits):
                return LinearValue(None if float_bits else form(value), frozenset())
            case Special(name):
                return LinearValue(self._special(name), frozenset())
            case Symbol(name, offset) if name in self.program.globals:
                return self._constant(
                    self.launch.globals[self.program.globals.index(name)] + offset
                )
            case Symbol(name, offset) if self._is_shared(name):
                return LinearValue(form(self.program.slots[name].offset + offset), None)
            case _:
                return ANYTHING

    def _is_shared(self, name: str) -> bool:
        """Returns whether a name is that of a variable in shared memory."""
        slot = self.program.slots.get(name)
        return slot is not None and slot.space is Space.SHARED

    def _special(self, name: str) -> Form | None:
        """Returns the form of a special register: a constant for %ntid and %nctaid, a variable
        below their dimension for %tid and %ctaid, below 32 for %laneid and %warpid; None for
        others."""
        register, _, axis = name.partition(".")
        if axis not in ("x", "y", "z"):
            bounds = {"%laneid": 32, "%warpid": 32}
            return form(0, {IndexVariable(name, bounds[name]): 1}) if name in bounds else None
        # A dimension is a constant, an index a variable with the dimension as its extent.
        at = "xyz".index(axis)
        shape = {"%ntid": self.launch.block, "%nctaid": self.launch.grid}
        if register in shape:
            return form(shape[register][at])
        if register == "%tid":
            return form(0, {_thread_index(at, self.launch.block[at]): 1})
        if register == "%ctaid":
            return form(0, {_block_index(at, self.launch.grid[at]): 1})
        return None


def argument_values(instruction: Instruction, sources: Sequence[T]) -> list[T]:
    """Returns the items of `sources`, one for each source of an instruction, without those that are
    no arguments of its terms (whose source type is None)."""
    types = instruction.operation.source_types
    return [source for source, type in zip(sources, types, strict=False) if type]


def _block_index(axis: int, extent: int) -> IndexVariable:
    """Returns the variable of `%ctaid` along an axis (0 to 2: x to z), with `extent` values."""
    return IndexVariable(f"%ctaid.{'xyz'[axis]}", extent, of_block=True)


def _thread_index(axis: int, extent: int) -> IndexVariable:
    """Returns the variable of `%tid` along an axis (0 to 2: x to z), with `extent` values."""
    return IndexVariable(f"%tid.{'xyz'[axis]}", extent)


def thread_indices(block: Dim3) -> tuple[IndexVariable, ...]:
    """Returns the thread indices that differ between threads of a block."""
    return tuple(_thread_index(axis, n) for axis, n in enumerate(block) if n > 1)


def block_indices(grid: Dim3) -> tuple[IndexVariable, ...]:
    """Returns the block indices that differ between blocks of a grid."""
    return tuple(_block_index(axis, n) for axis, n in enumerate(grid) if n > 1)
