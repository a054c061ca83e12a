"""The registers of one thread of a kernel, and what instructions compute from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warploom.core.types import TYPES, ScalarType
from warploom.isa.instruction import (
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Sink,
    Space,
    Special,
    Symbol,
    Vector,
    flatten_operands,
)
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.isa.terms import Term
from warploom.machine.launch import Launch, launch_values
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import collect
from warploom.machine.reference.operands import WINDOWS, immediate_bits
from warploom.memory_model.values import Value, deferred, mapped
from warploom.program.program import Program


class Refused(Exception):
    """An instruction does what is not explored; the text is the end of a sentence."""


@dataclass
class Registers:
    """The registers of thread `thread` of block `block`, by name; 0 before they are written."""

    program: Program
    launch: Launch
    block: int
    thread: int
    values: dict[str, Value] = field(default_factory=dict[str, Value])

    def read(self, operand: Operand, type: ScalarType) -> Value:
        """Returns an operand as an instruction of that type reads it."""
        match operand:
            case Register(name):
                return _cut(self.values.get(name, 0), type)
            case Immediate():
                return immediate_bits(operand, type)
            case Special(name):
                return _cut(self._special(name), type)
            case Negated(register):
                return self.negated(register)
            case Symbol():
                return _cut(self._address_of(operand), type)
            case _:
                raise Refused("this kind of operand is not supported")

    def write(self, operand: Operand, value: Value, type: ScalarType) -> None:
        """Writes a result to a register, extended as its type requires."""
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Register)
        if type.is_signed and operand.type.bits > type.bits:
            value = mapped(lambda v: _extended(v, type.bits, operand.type.bits), value)
        self.values[operand.name] = _cut(value, operand.type)

    def negated(self, register: Register) -> Value:
        """Returns the other value of a predicate."""
        return mapped(lambda v: 1 - v, self.values.get(register.name, 0))

    def _special(self, name: str) -> int:
        """Returns the value of a special register."""
        launch = self.launch
        known = SPECIAL_REGISTERS[name]
        if known.clock_bit is not None:
            raise Refused("the clock is not supported")
        if known.fixed is not None:
            return known.fixed
        warp, lane = divmod(self.thread, launch.warp_size)
        axes = {
            "%tid": launch.thread_index(warp, lane),
            "%ctaid": launch.block_index(self.block),
            "%ntid": launch.block,
            "%nctaid": launch.grid,
        }
        kind, _, axis = name.partition(".")
        if kind in axes:
            return axes[kind]["xyz".index(axis)]
        own = {"%laneid": lane, "%warpid": warp, "%gridid": 0}
        own["%smid"] = launch.sm_of(self.block)
        below, full = (1 << lane) - 1, (1 << launch.warp_size) - 1
        own |= {"%lanemask_eq": below + 1, "%lanemask_lt": below, "%lanemask_le": 2 * below + 1}
        own |= {"%lanemask_gt": full - 2 * below - 1, "%lanemask_ge": full - below}
        if name in own:
            return own[name]
        values = launch_values(self.program, launch)
        if name not in values:
            raise Refused(f"{name} is not supported")
        return values[name]

    def _address_of(self, symbol: Symbol) -> int:
        place = self.program.slots[symbol.name]
        if place.space in (Space.GLOBAL, Space.CONST):
            return self.launch.globals[place.offset] + symbol.offset
        return place.offset + symbol.offset

    def compute(self, instruction: Instruction) -> None:
        """Executes an instruction that is a function of registers: its terms."""
        operation = instruction.operation
        first = len(operation.spec.destinations)
        targets = tuple(flatten_operands(instruction.operands[:first]))
        sources = tuple(flatten_operands(instruction.operands[first:]))
        typed = zip(sources, operation.source_types, strict=False)
        given = [(self.read(source, type), type) for source, type in typed if type is not None]
        terms = operation.terms_for(len(sources))[: len(targets)]
        for target, term in zip(targets, terms, strict=True):
            self.write(target, term_value(term, given), term.type)

    def move_vector(self, instruction: Instruction) -> None:
        """Executes a `mov` that packs parts into a value or unpacks a value into parts."""
        destination, source = instruction.operands
        type = instruction.operation.modifiers.scalar()
        if isinstance(source, Vector):
            part = type.bits // len(source.elements)
            parts = [self.read(each, TYPES[f"b{part}"]) for each in source.elements]
            self.write(destination, deferred(_packed(part), *parts), type)
            return
        assert isinstance(destination, Vector)
        part = type.bits // len(destination.elements)
        value = self.read(source, type)
        for place, element in enumerate(destination.elements):
            self.write(element, mapped(_part(place, part), value), TYPES[f"b{part}"])

    def convert_address(self, instruction: Instruction) -> None:
        """Executes `cvta`."""
        modifiers = instruction.operation.modifiers
        type = modifiers.scalar("size")
        space = Space(modifiers.text("space", "").partition("::")[0])
        start = WINDOWS.get(space, 0) * (-1 if "to" in modifiers else 1)
        value = self.read(instruction.operands[1], type)
        self.write(instruction.operands[0], mapped(lambda v: v + start, value), type)


def _cut(value: Value, type: ScalarType) -> Value:
    """Returns the low bits of a value, as many as a type has."""
    mask = (1 << type.bits) - 1
    return mapped(lambda v: v & mask, value)


def _extended(value: int, have: int, want: int) -> int:
    """Returns `want` bits with the value of a signed integer of `have` bits."""
    negative = value >> (have - 1) & 1
    return value | ((1 << want) - (1 << have)) * negative


def _part(place: int, bits: int) -> Callable[[int], int]:
    """Returns what takes part `place` of `bits` bits out of a value."""
    return lambda v: v >> place * bits & (1 << bits) - 1


def _packed(part: int) -> Callable[..., int]:
    """Returns what puts values of `part` bits one above the other, the first lowest."""
    return lambda *values: sum(v << place * part for place, v in enumerate(values))


def term_value(term: Term, given: Sequence[tuple[Value, ScalarType]]) -> Value:
    """Returns the value of a term whose operands are given with their types."""

    def compute(*values: int) -> int:
        typed = zip(values, given, strict=True)
        arguments = [collect((value,), type) for value, (_, type) in typed]
        return int(evaluate(term, arguments, 1)[0])

    return deferred(compute, *(value for value, _ in given))
