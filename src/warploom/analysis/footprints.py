"""Finds where the blocks of a launch reach in global memory, and whether they stay apart.

Blocks that do can run at the same time on several workers, and whatever the order, the result is
the same. What is known of a launch — its shape, its parameters, where allocations begin — is
followed through the program as linear forms (`forms`) up to the addresses of loads and stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from warploom.analysis.accesses import accesses, bytes_of
from warploom.analysis.forms import Form, Variable, evaluate, form
from warploom.analysis.program import Block, Program
from warploom.core.errors import Dim3
from warploom.isa.ops.tensors import is_tensor_operation
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

TOLD_BY_ORDER = ("%clock", "%globaltimer", "%gridid")
"""Special registers (by how their names begin) whose values tell of the order of blocks."""


@dataclass(frozen=True, slots=True)
class Given:
    """The known facts of a launch. `allocation_of` tells where the allocation begins that an
    address lies in, or None."""

    grid: Dim3
    block: Dim3
    parameters: bytes
    globals: Sequence[int]
    allocation_of: Callable[[int], int | None]


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a register: its form, if known, and the allocations that it may point into;
    None for any."""

    form: Form | None
    origins: frozenset[int] | None


POINTER_BITS = 64

NOTHING = Value(form(0), frozenset())
ANYTHING = Value(None, None)


@dataclass(frozen=True, slots=True)
class Reach:
    """One instruction's access to global memory."""

    instruction: int
    op: str
    size: int
    where: Value


def why_blocks_meet(program: Program, given: Given) -> str:
    """Return why the blocks of a launch may get in each other's way: a sentence, empty where they
    cannot.

    An access is taken to stay in the allocation that its pointer came from; one that strays into
    another is a fault of the kernel that no schedule promises anything about.
    """
    for index, instruction in enumerate(program.instructions):
        reason = _objection(instruction)
        if reason:
            return f"{reason} at {program.line(index)}"
    reaches = global_reaches(program, given)
    stores = [reach for reach in reaches if reach.op == "store"]
    if any(reach.where.origins is None for reach in reaches) and stores:
        unknown = next(r for r in reaches if r.where.origins is None)
        return f"nothing is known of the address at {program.line(unknown.instruction)}"
    for allocation in {origin for store in stores for origin in store.where.origins or ()}:
        there = [reach for reach in reaches if allocation in (reach.where.origins or ())]
        if not stay_apart(there, given.grid):
            line = next(r for r in there if r.op == "store").instruction
            return f"blocks may reach the same addresses as the store at {program.line(line)}"
    return ""


def global_reaches(program: Program, given: Given) -> tuple[Reach, ...]:
    """Returns every access of a program to global memory, with what is known of its address."""
    return tuple(_Flow(program, given).reaches())


def _objection(instruction: Instruction) -> str:
    """Returns what makes an instruction depend on other blocks, whatever its operands."""
    if instruction.operation.name == "call":
        return "the kernel calls printf, malloc or assert"
    told = [o.name for o in spread(instruction.operands) if isinstance(o, Special)]
    if any(name.startswith(TOLD_BY_ORDER) for name in told):
        return "the kernel reads a value that depends on block order"
    if is_tensor_operation(instruction.operation):
        return "nothing is known of where a tensor map leads"
    for space, op in accesses(instruction):
        if space in NOT_SHARED:
            continue
        if op == "atomic":
            return "the order of atomics shows"
        if instruction.operation.name not in ("ld", "ldu", "st", "cp"):
            return "an access of a whole warp"
    return ""


# ---- what registers hold ------------------------------------------------------------------------


class _Flow:
    """Follows the values of registers through a program until nothing new is found."""

    def __init__(self, program: Program, given: Given) -> None:
        self.program, self.given = program, given
        self.states: dict[int, dict[str, Value]] = {0: {}}

    def reaches(self) -> Iterable[Reach]:
        """Yield every access to global memory, with what is known of its address."""
        waiting = [0]
        while waiting:
            block = self.program.blocks[waiting.pop(0)]
            after = self._through(block, dict(self.states[block.index]))
            for successor in block.successors:
                if successor != self.program.exit and self._enter(successor, after):
                    waiting.append(successor)
        for index, state in self.states.items():
            yield from self._accesses(self.program.blocks[index], dict(state))

    def _enter(self, block: int, after: Mapping[str, Value]) -> bool:
        """Join what comes to a block with what came before. Answers whether it learned anything."""
        names = (register.name for register in self.program.live_in[block])
        coming = {name: after.get(name, NOTHING) for name in names}
        if block not in self.states:
            self.states[block] = coming
            return True
        known = self.states[block]
        joined = {
            name: _joined(known.get(name, NOTHING), value, f"lap of {name} at {block}")
            for name, value in coming.items()
        }
        changed = joined != known
        self.states[block] = joined
        return changed

    def _through(self, block: Block, state: dict[str, Value]) -> dict[str, Value]:
        for instruction in self.program.instructions[block.start : block.stop]:
            self._step(instruction, state)
        return state

    def _accesses(self, block: Block, state: dict[str, Value]) -> Iterable[Reach]:
        for index in range(block.start, block.stop):
            instruction = self.program.instructions[index]
            for space, op in accesses(instruction):
                if space in NOT_SHARED or space in TEXELS:
                    continue
                addresses = [o for o in instruction.operands if isinstance(o, Address)]
                # Of `cp.async` the second address is the one in global memory.
                where = self._address(addresses[-1], state)
                yield Reach(index, op, bytes_of(instruction), where)
            self._step(instruction, state)

    def _step(self, instruction: Instruction, state: dict[str, Value]) -> None:
        """Sets what an instruction leaves in its destinations."""
        count = len(instruction.operation.spec.destinations)
        targets = [o for o in spread(instruction.operands[:count]) if isinstance(o, Register)]
        for place, target in enumerate(targets):
            made = self._result(instruction, place, state)
            if instruction.guard is not None:
                made = _joined(state.get(target.name, NOTHING), made, f"guarded {target.name}")
            state[target.name] = made

    def _result(self, instruction: Instruction, place: int, state: dict[str, Value]) -> Value:
        operation, operands = instruction.operation, instruction.operands
        if operation.name == "ld":
            return self._loaded(instruction, place)
        if accesses(instruction):
            return self._found(instruction)
        sources = tuple(spread(operands[len(operation.spec.destinations) :]))
        values = [self._value(source, state) for source in sources]
        origins = _united(values)
        if operation.name == "cvta":
            return Value(values[0].form, origins)
        semantics = operation.spec.semantics
        if semantics is None:
            return Value(values[0].form if operation.name == "mov" else None, origins)
        typed = [v.form for v, t in zip(values, operation.source_types, strict=False) if t]
        terms = operation.terms_for(len(sources))
        return Value(evaluate(terms[place], typed) if place < len(terms) else None, origins)

    def _loaded(self, instruction: Instruction, place: int) -> Value:
        """Return a parameter's value; of what else memory holds nothing is known."""
        address = instruction.operands[1]
        if not (isinstance(address, Address) and isinstance(address.base, Symbol)):
            return self._found(instruction)
        found = self.program.places.get(address.base.name)
        if found is None or found.space is not Space.PARAM or found.frame:
            return self._found(instruction)
        type = instruction.operation.modifiers.scalar()
        at = found.offset + address.offset + place * type.bytes
        bits = int.from_bytes(self.given.parameters[at : at + type.bytes], "little")
        return self._constant(bits)

    def _found(self, instruction: Instruction) -> Value:
        """Return a value out of memory: unknown, and a pointer only if it is as wide as one."""
        modifiers = instruction.operation.modifiers
        narrow = "type" in modifiers.values and modifiers.scalar().bits < POINTER_BITS
        return Value(None, frozenset() if narrow else None)

    def _constant(self, bits: int) -> Value:
        allocation = self.given.allocation_of(bits)
        return Value(form(bits), frozenset() if allocation is None else frozenset((allocation,)))

    def _address(self, address: Address, state: dict[str, Value]) -> Value:
        base = NOTHING if address.base is None else self._value(address.base, state)
        moved = None if base.form is None else base.form.plus(form(address.offset))
        # An address out of thin air may lead anywhere.
        return Value(moved, base.origins or None)

    def _value(self, operand: Operand, state: dict[str, Value]) -> Value:
        match operand:
            case Register(name):
                return state.get(name, NOTHING)
            case Immediate(value, float_bits):
                return Value(None if float_bits else form(value), frozenset())
            case Special(name):
                return Value(self._special(name), frozenset())
            case Symbol(name, offset) if name in self.program.globals:
                return self._constant(self.given.globals[self.program.globals.index(name)] + offset)
            case _:
                return ANYTHING

    def _special(self, name: str) -> Form | None:
        register, _, axis = name.partition(".")
        if axis not in ("x", "y", "z"):
            bounds = {"%laneid": 32, "%warpid": 32}
            return form(0, {Variable(name, bounds[name]): 1}) if name in bounds else None
        at = "xyz".index(axis)
        shape = {"%ntid": self.given.block, "%nctaid": self.given.grid}
        if register in shape:
            return form(shape[register][at])
        if register == "%tid":
            return form(0, {Variable(name, self.given.block[at]): 1})
        if register == "%ctaid":
            return form(0, {_block_index(at, self.given.grid[at]): 1})
        return None


def _block_index(axis: int, extent: int) -> Variable:
    return Variable(f"%ctaid.{'xyz'[axis]}", extent, of_block=True)


def block_indices(grid: Dim3) -> tuple[Variable, ...]:
    """Return the block indices by which blocks of a grid differ."""
    return tuple(_block_index(axis, n) for axis, n in enumerate(grid) if n > 1)


def _united(values: Sequence[Value]) -> frozenset[int] | None:
    """Return all allocations that a value made of these may point into."""
    found: frozenset[int] = frozenset()
    for value in values:
        if value.origins is None:
            return None
        found |= value.origins
    return found


def _joined(known: Value, coming: Value, name: str) -> Value:
    """Return a value that is one or the other. Where they differ by a constant, as a counter does
    from lap to lap, it is the first plus a multiple of it."""
    origins = _united((known, coming))
    a, b = known.form, coming.form
    if a is None or b is None or a == b:
        return Value(a if a == b else None, origins)
    lap = Variable(name, None)
    stride = dict(a.strides).get(lap, 0)
    step = b.without(lap).plus(a.without(lap), -1)
    if not step.is_constant or (stride and step.constant % stride):
        return Value(None, origins)
    return Value(a if stride else a.plus(form(0, {lap: step.constant})), origins)


# ---- whether blocks stay apart ------------------------------------------------------------------


def stay_apart(reaches: Sequence[Reach], grid: Dim3) -> bool:
    """Returns whether no two blocks reach the same byte by any of these accesses of one
    allocation."""
    forms = [reach.where.form for reach in reaches]
    known = [f for f in forms if f is not None]
    if len(known) < len(forms) or len({f.strides for f in known}) > 1:
        return False
    first = min(f.constant for f in known)
    offsets = [f.constant - first for f in known]
    unit = math.gcd(*offsets)
    strides = dict(known[0].strides)
    if any(block not in strides for block in block_indices(grid)):
        return False
    digits = [(v.extent, abs(s), v.of_block) for v, s in strides.items()]
    if unit:
        digits.append((max(offsets) // unit + 1, unit, False))
    return _digits_apart(digits, max(reach.size for reach in reaches))


def _digits_apart(digits: Sequence[tuple[int | None, int, bool]], size: int) -> bool:
    """Returns whether numbers made of digits, each with an extent and a stride, `size` long, do not
    overlap where a digit of the block differs.

    Digits are taken by rising stride; a stride beyond all that is below it keeps its values apart.
    One that is not may only mix with digits that blocks share.
    """
    span, of_blocks = size, False
    unbounded = False
    for extent, stride, of_block in sorted(digits, key=lambda digit: digit[1]):
        if unbounded:
            return False
        if stride < span and (of_block or of_blocks):
            return False
        of_blocks |= of_block
        unbounded = extent is None
        span += stride * ((extent or 1) - 1)
    return True
