"""Computes the values of registers, as linear forms (`forms`), from those before an instruction:
what the parameters and dimensions of a launch decide, and what instructions compute.

    mad.lo.s32 %r1, %ctaid.x, 256, %tid.x;      %r1 = 256 * %ctaid.x + %tid.x
    ld.global.u32 %r2, [%rd1];                  %r2 is unknown

Not handled: values loaded from memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from warploom.analysis.linear.forms import ELSEWHERE, Form, IndexVariable, form
from warploom.analysis.linear.joins import ZERO, LinearValue, merged
from warploom.analysis.linear.origins import allocations_of_result
from warploom.analysis.linear.term_forms import evaluate
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
from warploom.program.accesses import accesses
from warploom.program.program import Program


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


class RegisterValues:
    """Computes the values of registers in one launch of a program. `allocations` are those that
    pointers among them refer to, by their start."""

    def __init__(self, program: Program, launch: LaunchInputs) -> None:
        """Computes nothing yet."""
        self.program, self.launch = program, launch
        self.allocations: dict[int, range] = {}

    def step(self, instruction: Instruction, state: dict[str, LinearValue]) -> None:
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

    def address(self, address: Address, state: Mapping[str, LinearValue]) -> LinearValue:
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
