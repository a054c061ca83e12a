"""Emits instructions as calls of the functions that kernels share."""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.abi.environment import local_stride
from warploom.abi.nans import is_copy
from warploom.abi.pieces import frame_access
from warploom.core.types import ScalarType, unsigned
from warploom.ir.kernel_accesses import elements
from warploom.isa.routines import ordinary_results
from warploom.isa.spec import Unit
from warploom.llvm.lanes import I64, Value
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.shared_functions import SharedFunctions
from warploom.lower.baseline.accesses import AccessFunction
from warploom.lower.baseline.operations import OperationFunction, ParameterFunction
from warploom.lower.baseline.signature import FAULT_BITS, Source
from warploom.lower.baseline.tables import END, CallTable, SharedCall
from warploom.lower.frame.operands import immediate_bits
from warploom.lower.instrument.guards import Guards
from warploom.program.accesses import is_bulk_fill, space_of
from warploom.program.effects.clusters import accesses_cluster
from warploom.program.effects.completions import completion
from warploom.program.preconditions import operand_checks
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

_IN_MEMORY = (Space.GLOBAL, Space.CONST)
"""The spaces of variables whose addresses the launch tells."""


class Argument(NamedTuple):
    """A source of an instruction: its form, and the word that tells it; a value where it is known
    only when the kernel runs."""

    form: Source
    word: int | Value


class CallCode:
    """Emits instructions of one warp function as calls, where there is a function for them."""

    def __init__(
        self, memory: MemoryCode, functions: SharedFunctions, guards: Guards, *, shuffles: bool
    ) -> None:
        self.memory, self.operands, self.frame = memory, memory.operands, memory.frame
        self.lanes, self.b, self.guards = memory.lanes, memory.b, guards
        self.functions, self.shuffles = functions, shuffles
        self.table = CallTable(self.frame, functions)
        self._arguments = self.frame.prologue.alloca(ir.ArrayType(I64, MOST_WORDS))

    def emit(self, index: int, made: Instruction) -> bool:
        """Emits an instruction, perhaps later; returns False where there is no function for it:
        then all before it has been emitted."""
        found = None if any(True for _ in operand_checks(made)) else self._calls(index, made)
        if found is None:
            self.flush()
            return False
        for call in found:
            if all(isinstance(word, int) for word in call.words):
                self.table.add(index, call)
            else:
                self._emit_now(index, made, call)
        return True

    def flush(self) -> None:
        """Emits the calls that have been put off, and leaves where one of them faults."""
        fault = self.table.flush()
        if fault is not None:
            self._leave_at_fault(fault)

    def _emit_now(self, index: int, made: Instruction, call: SharedCall) -> None:
        """Emits a call with words that are known only when the kernel runs."""
        self.flush()
        guard, active = self.guards.counted(index, made), self.frame.active.bits()
        on = active if guard is None else self.b.and_(active, self.lanes.bits(guard))
        words = [self.table.number(call), *call.words, self.table.number(END)]
        for place, word in enumerate(words):
            value = I64(word) if isinstance(word, int) else word
            self.b.store(value, self.lanes.slot(self._arguments, place))
        self._leave_at_fault(self.table.call(self._arguments, on))

    def _leave_at_fault(self, fault: Value) -> None:
        """Leaves where a call has returned a fault."""
        code = self.b.and_(fault, I64((1 << FAULT_BITS) - 1))
        instruction = self.b.lshr(fault, I64(FAULT_BITS))
        self.memory.faults.leave(instruction, fault, self.b.sub(code, I64(1)))

    def _calls(self, index: int, made: Instruction) -> list[SharedCall] | None:
        """Returns the calls that do an instruction; None where there are no functions for it."""
        if made.operation.name in ("ld", "ldu", "st"):
            return self._accesses(index, made)
        call = self._operation(made)
        return None if call is None else [call]

    # ---- instructions that compute --------------------------------------------------------------

    def _operation(self, made: Instruction) -> SharedCall | None:
        operation = made.operation
        if operation.spec.semantics is None or operation.spec.unit in _OUT_OF_LINE:
            return None
        if ordinary_results(operation) is not None:  # its calls of a routine are counted
            return None
        if operation.name == "mov" and not (is_copy(made) or _moves_number(made)):
            return None
        first = len(operation.spec.destinations)
        targets = tuple(spread(made.operands[:first]))
        types = operation.source_types
        sources = list(zip(spread(made.operands[first:]), types, strict=False))
        if not all(self._is_written(target) for target in targets):
            return None
        if not all(type is None or self._is_read(source, type) for source, type in sources):
            return None
        given = [self._argument(s, type) for s, type in sources if type is not None]
        forms = iter(one.form for one in given)
        function = OperationFunction(
            operation,
            tuple(map(_bits, targets)),
            tuple(Source(0) if type is None else next(forms) for _, type in sources),
        )
        places = [self._home(t) for t in targets if isinstance(t, Register)]
        words = [*places, *(one.word for one in given)]
        return SharedCall(function.name, function.define, words)

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
                return Argument(Source(0), bits - (bits >> 63 << 64))
            case Symbol() if self._is_known(source):
                return Argument(Source(0), self._offset(source))
            case Special() if source.name.startswith("%tid"):
                return Argument(Source(32), self._thread_indices("xyz".index(source.name[-1])))
            case _:
                value = self.lanes.lane(self.operands.read(source, unsigned(64), width=1), 0)
                return Argument(Source(0), value)

    def _thread_indices(self, axis: int) -> Value:
        """Returns where the indices of the warp's threads stand, as if it were a register."""
        at = self.b.ptrtoint(self.operands.specials.thread_indices(axis), I64)
        return self.b.sub(at, self.b.ptrtoint(self.frame.homes.base(), I64))

    def _home(self, register: Register) -> int:
        """Returns the place of a register."""
        return self.frame.context_layout.by_lane[register]

    def _is_known(self, symbol: Symbol) -> bool:
        """Returns whether the address of a variable is the same in all launches."""
        return self.frame.program.slots[symbol.name].space not in _IN_MEMORY

    def _offset(self, symbol: Symbol) -> int:
        """Returns the address of such a variable; of others, its number in `Program.globals`."""
        place = self.frame.program.slots[symbol.name]
        return place.offset + (symbol.offset if self._is_known(symbol) else 0)

    # ---- loads and stores -----------------------------------------------------------------------

    def _accesses(self, index: int, made: Instruction) -> list[SharedCall] | None:
        if self.memory.observing is not None:
            return None
        if is_bulk_fill(made.operation) or completion(made) is not None:
            return None
        if frame_access(self.frame.program, made) is not None:
            return None
        load = made.operation.name != "st"
        data, address = made.operands[:2] if load else made.operands[1::-1]
        assert isinstance(address, Address)
        type = made.operation.modifiers.scalar()
        if space_of(made) is Space.PARAM:
            return self._parameters(data, address, type) if load else None
        moved, passed = elements(data), self._is_written if load else self._is_stored
        if type.bits > WIDEST or not all(map(passed, moved)):
            return None
        if self.memory.clusters.several and accesses_cluster(made):
            return None
        given = [self._target(one) if load else self._argument(one, type) for one in moved]
        access_type = self.memory.accesses.shape_of("load" if load else "store", index, made)
        return [self._access(access_type, index, address, given)]

    def _access(
        self, access_type: AccessType, index: int, address: Address, given: list[Argument]
    ) -> SharedCall:
        """Returns the call for an access of that shape."""
        form, base, offset = self._address(address)
        forms, rules = tuple(one.form for one in given), self.frame.layout.rules
        records = self.frame.variant.records
        function = AccessFunction(access_type, form, forms, rules, self.shuffles, records)
        words: list[int | Value] = [index]
        words += [base, offset, *(self.memory.places.number(index, s) for s in function.spaces)]
        if Space.LOCAL in function.spaces:
            local = self.frame.program.local_bytes
            words += [local_stride(local), local]
        words += [one.word for one in given]
        return SharedCall(function.name, function.define, words)

    def _target(self, target: Operand) -> Argument:
        """Returns the target of a load as it is passed."""
        known = isinstance(target, Register)
        return Argument(Source(_bits(target)), self._home(target) if known else 0)

    @staticmethod
    def _is_stored(source: Operand) -> bool:
        whole = isinstance(source, Register) and 1 < source.type.bits <= WIDEST
        return whole or isinstance(source, Immediate)

    def _address(self, address: Address) -> tuple[Source, int, int]:
        """Returns the form of the base of an address, its word, and the offset that is added."""
        match address.base:
            case None:
                return Source(0), 0, address.offset
            case Register():
                return Source(_bits(address.base)), self._home(address.base), address.offset
            case Symbol() if self._is_known(address.base):
                return Source(0), self._offset(address.base), address.offset
            case Symbol():
                offset = address.base.offset + address.offset
                return Source(0, variable=True), self._offset(address.base), offset

    def _parameters(
        self, data: Operand, address: Address, type: ScalarType
    ) -> list[SharedCall] | None:
        """Returns the calls that load parameters from an address that is the same for all lanes."""
        targets, base = elements(data), address.base
        if not isinstance(base, Symbol) or type.bits > WIDEST:
            return None
        if not all(map(self._is_written, targets)):
            return None
        found: list[SharedCall] = []
        for number, target in enumerate(targets):
            if isinstance(target, Register):
                function = ParameterFunction(type, target.type.bits)
                offset = self._offset(base) + address.offset + number * type.bytes
                words = [self._home(target), offset]
                found.append(SharedCall(function.name, function.define, words))
        return found


_OUT_OF_LINE = frozenset({Unit.ATOMIC, Unit.MATRIX, Unit.TEXTURE, Unit.BARRIER})
"""The units of instructions that do more than compute."""

MOST_WORDS = 32
"""Words of a call, at most: of a load of eight registers from anywhere, 16."""


def _moves_number(made: Instruction) -> bool:
    """Returns whether it is a `mov` of a special register or of an address to a register."""
    target, source = made.operands
    return isinstance(target, Register) and isinstance(source, Special | Symbol)


def _bits(operand: Operand) -> int:
    """Returns the bits of a register; 0 for what holds nothing."""
    return operand.type.bits if isinstance(operand, Register) else 0
