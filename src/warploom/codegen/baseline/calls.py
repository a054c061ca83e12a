"""Emits instructions as calls of the functions that kernels share."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.accesses import is_bulk_fill, route_of, space_of
from warploom.analysis.clusters import reaches_cluster
from warploom.analysis.completions import completion
from warploom.analysis.preconditions import operand_checks
from warploom.codegen.access import STACK, Shape
from warploom.codegen.baseline.accesses import AccessFunction
from warploom.codegen.baseline.operations import FillFunction, OperationFunction, Source
from warploom.codegen.lanes import I64, Value
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.nans import is_copy
from warploom.codegen.operands import immediate_bits
from warploom.codegen.pieces import frame_access
from warploom.codegen.shared_functions import SharedFunctions
from warploom.core.types import ScalarType, unsigned
from warploom.isa.routines import ordinary_results
from warploom.isa.spec import Unit
from warploom.ptx.ir import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Sink,
    Space,
    Special,
    Symbol,
    spread,
)

WIDEST = 64
"""Bits of the widest registers and numbers that functions take."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A source of an instruction: its form, and the value that passes it."""

    form: Source
    value: Value


class CallCode:
    """Emits instructions of one warp function as calls, where there is a function for them."""

    def __init__(self, memory: MemoryCode, functions: SharedFunctions, *, shuffles: bool) -> None:
        self.memory, self.operands, self.frame = memory, memory.operands, memory.frame
        self.lanes, self.b = memory.lanes, memory.b
        self.functions, self.shuffles = functions, shuffles

    def emit(self, index: int, made: Instruction, on: Value) -> bool:
        """Emits an instruction that the lanes `on` (an i32) execute; returns False, and emits
        nothing, where there is no function for it."""
        if any(True for _ in operand_checks(made)):
            return False
        if made.operation.name in ("ld", "ldu", "st"):
            return not self.memory.is_watched and self._emit_access(index, made, on)
        return self._emit_operation(made, on)

    # ---- instructions that compute --------------------------------------------------------------

    def _emit_operation(self, made: Instruction, on: Value) -> bool:
        operation = made.operation
        if operation.spec.semantics is None or operation.spec.unit in _APART:
            return False
        if ordinary_results(operation) is not None:  # its calls of a routine are counted
            return False
        if operation.name == "mov" and not (is_copy(made) or _moves_number(made)):
            return False
        first = len(operation.spec.destinations)
        targets = tuple(spread(made.operands[:first]))
        types = operation.source_types
        sources = list(zip(spread(made.operands[first:]), types, strict=False))
        if not all(self._is_written(target) for target in targets):
            return False
        if not all(type is None or self._is_read(source, type) for source, type in sources):
            return False
        given = [self._argument(s, type) for s, type in sources if type is not None]
        forms = iter(one.form for one in given)
        function = OperationFunction(
            operation,
            tuple(map(_bits, targets)),
            tuple(Source(0) if type is None else next(forms) for _, type in sources),
        )
        places = [self._home(t) for t in targets if isinstance(t, Register)]
        called = self.functions.declare(function.name, function.type, function.define)
        self.b.call(called, [on, *places, *(one.value for one in given)])
        return True

    @staticmethod
    def _is_written(target: Operand) -> bool:
        known = isinstance(target, Register) and target.type.bits <= WIDEST
        return known or isinstance(target, Sink)

    @staticmethod
    def _is_read(source: Operand, type: ScalarType) -> bool:
        """Returns whether a source can be passed."""
        match source:
            case Register():
                return source.type.bits <= WIDEST and type.bits <= WIDEST
            case Negated() | Symbol():
                return True
            case Immediate():
                return type.bits <= WIDEST
            case Special():
                return not source.name.startswith("%lane")
            case _:
                return False

    def _argument(self, source: Operand, type: ScalarType) -> Argument:
        """Returns a source as it is passed."""
        match source:
            case Register():
                return Argument(Source(_bits(source)), self._home(source))
            case Negated():
                return Argument(Source(1, negated=True), self._home(source.operand))
            case Immediate():
                bits = immediate_bits(source, type)
                return Argument(Source(0), I64(bits - (bits >> 63 << 64)))
            case Special() if source.name.startswith("%tid"):
                place = self.operands.specials.thread_indices("xyz".index(source.name[-1]))
                return Argument(Source(32), place)
            case _:
                value = self.lanes.lane(self.operands.read(source, unsigned(64), width=1), 0)
                return Argument(Source(0), value)

    def _home(self, register: Register) -> Value:
        """Returns the place of a register."""
        return self.frame.home(register)

    # ---- loads and stores -----------------------------------------------------------------------

    def _emit_access(self, index: int, made: Instruction, on: Value) -> bool:
        if is_bulk_fill(made.operation) or completion(made) is not None:
            return False
        if frame_access(self.frame.program, made) is not None:
            return False
        load = made.operation.name != "st"
        data, address = made.operands[:2] if load else made.operands[1::-1]
        type = made.operation.modifiers.scalar()
        if space_of(made) is Space.PARAM:
            return load and self._emit_parameter(data, address, type, on)
        moved, passed = elements(data), self._is_written if load else self._is_stored
        if type.bits > WIDEST or not all(map(passed, moved)):
            return False
        if self.memory.clusters.several and reaches_cluster(made):
            return False
        given = [self._target(one) if load else self._argument(one, type) for one in moved]
        self._call_access(self._shape(index, made, len(moved)), index, address, given, on)
        return True

    def _call_access(
        self, shape: Shape, index: int, address: Operand, given: list[Argument], on: Value
    ) -> None:
        """Emits the call for an access of that shape, and leaves where it faults."""
        base, offset = self._address(address)
        forms, rules = tuple(one.form for one in given), self.frame.layout.rules
        function = AccessFunction(shape, base.form, forms, rules, self.shuffles)
        places, values = self.memory.places, [one.value for one in given]
        kept = [at(index, space) for space in function.spaces for at in (places.row, places.cache)]
        arguments = [self.frame.environment, on, base.value, offset, *kept]
        called = self.functions.declare(function.name, function.type, function.define)
        fault = self.b.call(called, [*arguments, *places.space(Space.LOCAL), *values])
        self.memory.leave_at_fault(index, fault, self.b.sub(fault, I64(1)))

    def _shape(self, index: int, made: Instruction, parts: int) -> Shape:
        """Returns what a load or a store moves."""
        load = made.operation.name != "st"
        route = route_of(made) if load else ""
        if index in self.frame.program.private:
            route = STACK
        op, type = "load" if load else "store", made.operation.modifiers.scalar()
        return Shape(op, space_of(made), type, parts, route)

    def _target(self, target: Operand) -> Argument:
        """Returns the target of a load as it is passed."""
        known = isinstance(target, Register)
        return Argument(Source(_bits(target)), self._home(target) if known else I64(0))

    @staticmethod
    def _is_stored(source: Operand) -> bool:
        whole = isinstance(source, Register) and 1 < source.type.bits <= WIDEST
        return whole or isinstance(source, Immediate)

    def _address(self, operand: Operand) -> tuple[Argument, Value]:
        """Returns the base of an address, and the offset that is added to it."""
        assert isinstance(operand, Address)
        if isinstance(operand.base, Register):
            return self._argument(operand.base, unsigned(64)), I64(operand.offset)
        whole = self.lanes.lane(self.operands.address(operand, width=1), 0)
        return Argument(Source(0), whole), I64(0)

    def _emit_parameter(self, data: Operand, address: Operand, type: ScalarType, on: Value) -> bool:
        """Emits a load of parameters at an address that is the same for all lanes."""
        targets = elements(data)
        assert isinstance(address, Address)
        known = isinstance(address.base, Symbol) and type.bits <= WIDEST
        if not (known and all(map(self._is_written, targets))):
            return False
        for number, target in enumerate(targets):
            if isinstance(target, Register):
                value = self.memory.parameter(address, type, number)
                function = FillFunction(type, target.type.bits)
                called = self.functions.declare(function.name, function.type, function.define)
                wide = self.b.zext(value, I64)
                self.b.call(called, [on, self._home(target), wide])
        return True


_APART = frozenset({Unit.ATOMIC, Unit.MATRIX, Unit.TEXTURE, Unit.BARRIER})
"""The units of instructions that do more than compute."""


def _moves_number(made: Instruction) -> bool:
    """Returns whether it is a `mov` of a special register or of an address to a register."""
    target, source = made.operands
    return isinstance(target, Register) and isinstance(source, Special | Symbol)


def _bits(operand: Operand) -> int:
    """Returns the bits of a register; 0 for what holds nothing."""
    return operand.type.bits if isinstance(operand, Register) else 0
