"""Follows the registers of a program as linear forms (`forms`), up to the addresses that its
instructions reach.

What is known of a launch is its shape, its parameters, and where allocations lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar

from warploom.analysis.linear.forms import ELSEWHERE, Form, IndexVariable, evaluate, form
from warploom.core.errors import Dim3
from warploom.program.accesses import accesses, bytes_of
from warploom.program.program import Program, ProgramBlock
from warploom.ptx.ir import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Space,
    Special,
    Symbol,
    spread,
)

NOT_SHARED = (Space.SHARED, Space.LOCAL, Space.PARAM, Space.CONST)
"""Spaces that blocks do not share, or cannot write."""

TEXELS = (Space.TEXTURE, Space.SURFACE)
"""Spaces that are reached by objects, not by pointers."""

GLOBAL_SPACES = frozenset(Space) - {*NOT_SHARED, *TEXELS}
"""Spaces whose accesses lead to global memory, or may."""


@dataclass(frozen=True, slots=True)
class LaunchInputs:
    """The known facts of a launch. `allocation_of` tells the addresses of the allocation that an
    address lies in, or None."""

    grid: Dim3
    block: Dim3
    parameters: bytes
    globals: Sequence[int]
    allocation_of: Callable[[int], range | None]


@dataclass(frozen=True, slots=True)
class LinearValue:
    """The value of a register: its form, if known, and the allocations that it may point into;
    None for any."""

    form: Form | None
    origins: frozenset[int] | None


POINTER_BITS = 64

T = TypeVar("T")

NOTHING = LinearValue(form(0), frozenset())
ANYTHING = LinearValue(None, None)


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """One instruction's access to global memory."""

    instruction: int
    op: str
    size: int
    address: LinearValue


def global_accesses(program: Program, launch: LaunchInputs) -> tuple[MemoryAccess, ...]:
    """Returns every access of a program to global memory, with what is known of its address."""
    return tuple(LinearAnalysis(program, launch).memory_accesses(GLOBAL_SPACES))


class LinearAnalysis:
    """Follows the values of registers through a program until nothing new is found. `states` are
    those with which its blocks begin, by block; `allocations` those that pointers lead to, by where
    they begin."""

    def __init__(self, program: Program, launch: LaunchInputs) -> None:
        self.program, self.launch = program, launch
        self.allocations: dict[int, range] = {}
        self.states: dict[int, dict[str, LinearValue]] = {0: {}}
        self._follow()

    def _follow(self) -> None:
        waiting = [0]
        while waiting:
            block = self.program.blocks[waiting.pop(0)]
            after = self.end_of(block)
            for successor in block.successors:
                if successor != self.program.exit and self._enter(successor, after):
                    waiting.append(successor)

    def memory_accesses(self, spaces: Set[Space]) -> Iterable[MemoryAccess]:
        """Yield every access that may lead to some state spaces, with what is known of its
        address."""
        for index in self.states:
            for at, state in self.states_in(self.program.blocks[index]):
                for space, op in accesses(self.program.instructions[at]):
                    if space in spaces:
                        yield self._memory_access(at, op, state)

    def _memory_access(self, index: int, op: str, state: Mapping[str, LinearValue]) -> MemoryAccess:
        """Return an access to memory by an instruction that finds a state."""
        instruction = self.program.instructions[index]
        addresses = [o for o in instruction.operands if isinstance(o, Address)]
        # Of `cp.async` the second address is the one in global memory; matrices have descriptors.
        address = self._address(addresses[-1], state) if addresses else ANYTHING
        return MemoryAccess(index, op, bytes_of(instruction), address)

    def states_in(self, block: ProgramBlock) -> Iterable[tuple[int, Mapping[str, LinearValue]]]:
        """Yield each instruction of a block with the state that it finds."""
        state = dict(self.states[block.index])
        for index in range(block.start, block.stop):
            yield index, state
            self._step(self.program.instructions[index], state)

    def _enter(self, block: int, after: Mapping[str, LinearValue]) -> bool:
        """Join what comes to a block with what came before. Answers whether it learned anything."""
        names = (register.name for register in self.program.live_in[block])
        incoming = {name: after.get(name, NOTHING) for name in names}
        if block not in self.states:
            self.states[block] = incoming
            return True
        previous = self.states[block]
        joined = {
            name: _joined(previous.get(name, NOTHING), value, iteration_count(name, block))
            for name, value in incoming.items()
        }
        changed = joined != previous
        self.states[block] = joined
        return changed

    def end_of(self, block: ProgramBlock) -> dict[str, LinearValue]:
        """Return what registers hold at the end of a block."""
        state = dict(self.states[block.index])
        for instruction in self.program.instructions[block.start : block.stop]:
            self._step(instruction, state)
        return state

    def _step(self, instruction: Instruction, state: dict[str, LinearValue]) -> None:
        """Sets what an instruction leaves in its destinations."""
        count = len(instruction.operation.spec.destinations)
        targets = [o for o in spread(instruction.operands[:count]) if isinstance(o, Register)]
        for place, target in enumerate(targets):
            result = self._result(instruction, place, state)
            if instruction.guard is not None:
                guarded = IndexVariable(f"guarded {target.name}", None, at=frozenset((ELSEWHERE,)))
                result = _joined(state.get(target.name, NOTHING), result, guarded)
            state[target.name] = result

    def _result(
        self, instruction: Instruction, place: int, state: Mapping[str, LinearValue]
    ) -> LinearValue:
        operation, operands = instruction.operation, instruction.operands
        if operation.name == "ld":
            return self._loaded(instruction, place)
        if accesses(instruction):
            return self._unknown_from_memory(instruction)
        sources = tuple(spread(operands[len(operation.spec.destinations) :]))
        values = [self.value(source, state) for source in sources]
        origins = _united_origins(values)
        if operation.name == "cvta":
            return LinearValue(values[0].form, origins)
        semantics = operation.spec.semantics
        if semantics is None:
            return LinearValue(values[0].form if operation.name == "mov" else None, origins)
        terms = operation.terms_for(len(sources))
        arguments = argument_values(instruction, [value.form for value in values])
        return LinearValue(
            evaluate(terms[place], arguments) if place < len(terms) else None, origins
        )

    def _loaded(self, instruction: Instruction, place: int) -> LinearValue:
        """Return a parameter's value; of what else memory holds nothing is known."""
        address = instruction.operands[1]
        if not (isinstance(address, Address) and isinstance(address.base, Symbol)):
            return self._unknown_from_memory(instruction)
        slot = self.program.places.get(address.base.name)
        if slot is None or slot.space is not Space.PARAM or slot.frame:
            return self._unknown_from_memory(instruction)
        type = instruction.operation.modifiers.scalar()
        at = slot.offset + address.offset + place * type.bytes
        bits = int.from_bytes(self.launch.parameters[at : at + type.bytes], "little")
        return self._constant(bits)

    def _unknown_from_memory(self, instruction: Instruction) -> LinearValue:
        """Return a value out of memory: unknown, and a pointer only if it is as wide as one."""
        modifiers = instruction.operation.modifiers
        narrow = "type" in modifiers.values and modifiers.scalar().bits < POINTER_BITS
        return LinearValue(None, frozenset() if narrow else None)

    def _constant(self, bits: int) -> LinearValue:
        allocation = self.launch.allocation_of(bits)
        if allocation is None:
            return LinearValue(form(bits), frozenset())
        self.allocations[allocation.start] = allocation
        return LinearValue(form(bits), frozenset((allocation.start,)))

    def _address(self, address: Address, state: Mapping[str, LinearValue]) -> LinearValue:
        base = NOTHING if address.base is None else self.value(address.base, state)
        moved = None if base.form is None else base.form.plus(form(address.offset))
        # An address out of thin air may lead anywhere.
        return LinearValue(moved, base.origins or None)

    def value(self, operand: Operand, state: Mapping[str, LinearValue]) -> LinearValue:
        """Return what an operand holds in a state."""
        match operand:
            case Register(name):
                return state.get(name, NOTHING)
            case Immediate(value, float_bits):
                return LinearValue(None if float_bits else form(value), frozenset())
            case Special(name):
                return LinearValue(self._special(name), frozenset())
            case Symbol(name, offset) if name in self.program.globals:
                return self._constant(
                    self.launch.globals[self.program.globals.index(name)] + offset
                )
            case Symbol(name, offset) if self._is_shared(name):
                return LinearValue(form(self.program.places[name].offset + offset), None)
            case _:
                return ANYTHING

    def _is_shared(self, name: str) -> bool:
        slot = self.program.places.get(name)
        return slot is not None and slot.space is Space.SHARED

    def _special(self, name: str) -> Form | None:
        register, _, axis = name.partition(".")
        if axis not in ("x", "y", "z"):
            bounds = {"%laneid": 32, "%warpid": 32}
            return form(0, {IndexVariable(name, bounds[name]): 1}) if name in bounds else None
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
    """Return what belongs to those sources of an instruction that its terms have as arguments."""
    types = instruction.operation.source_types
    return [source for source, type in zip(sources, types, strict=False) if type]


def _block_index(axis: int, extent: int) -> IndexVariable:
    return IndexVariable(f"%ctaid.{'xyz'[axis]}", extent, of_block=True)


def _thread_index(axis: int, extent: int) -> IndexVariable:
    return IndexVariable(f"%tid.{'xyz'[axis]}", extent)


def thread_indices(block: Dim3) -> tuple[IndexVariable, ...]:
    """Return the thread indices by which threads of a block differ."""
    return tuple(_thread_index(axis, n) for axis, n in enumerate(block) if n > 1)


def block_indices(grid: Dim3) -> tuple[IndexVariable, ...]:
    """Return the block indices by which blocks of a grid differ."""
    return tuple(_block_index(axis, n) for axis, n in enumerate(grid) if n > 1)


def _united_origins(values: Sequence[LinearValue]) -> frozenset[int] | None:
    """Return all allocations that a value made of these may point into."""
    origins: frozenset[int] = frozenset()
    for value in values:
        if value.origins is None:
            return None
        origins |= value.origins
    return origins


def iteration_count(name: str, block: int) -> IndexVariable:
    """Return how often a register has been stepped on when a block begins."""
    return IndexVariable(f"iteration of {name} at {block}", None, at=frozenset((block,)))


def _joined(previous: LinearValue, incoming: LinearValue, iteration: IndexVariable) -> LinearValue:
    """Return a value that is one or the other. Where they differ by a constant, as a counter does
    from iteration to iteration, it is the first plus a multiple of it."""
    origins = _united_origins((previous, incoming))
    a, b = previous.form, incoming.form
    if a is None or b is None or a == b:
        return LinearValue(a if a == b else None, origins)
    stride, other = (dict(each.strides).get(iteration, 0) for each in (a, b))
    step = b.without(iteration).plus(a.without(iteration), -1)
    if not step.is_constant or not all(
        _continues_stride(each, stride) for each in (step.constant, other)
    ):
        return LinearValue(None, origins)
    return LinearValue(a if stride else a.plus(form(0, {iteration: step.constant})), origins)


def _continues_stride(step: int, stride: int) -> bool:
    """Return whether a step leads some strides further, if there is a stride."""
    return stride == 0 or (step % stride == 0 and step // stride >= 0)
