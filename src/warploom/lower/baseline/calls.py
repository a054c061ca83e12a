"""Lowers instructions of baseline code, which is compiled fast and runs a kernel until optimized
code is ready, to calls of shared functions.

A call whose operands are all constants is appended to the call table (`lower.baseline.tables`); one
with words that are known only at run time, such as special registers or addresses of global
variables, is emitted as code, after the table so far. Instructions without a shared function
(atomics, shuffles, votes, matrices, textures, ...) are left to `lower.instructions`.
"""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.abi.environment import local_stride
from warploom.abi.nans import is_copy
from warploom.abi.pieces import frame_access
from warploom.core.types import ScalarType, unsigned
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import (
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
    flatten_operands,
)
from warploom.isa.kinds import OpKind
from warploom.isa.routines import ordinary_results
from warploom.isa.spec import Unit
from warploom.llvm.lanes import I64, Value
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.shared_functions import SharedFunctions
from warploom.lower.baseline.accesses import AccessFunction
from warploom.lower.baseline.operations import OperationFunction, ParameterFunction
from warploom.lower.baseline.signature import FAULT_BITS, SourceForm
from warploom.lower.baseline.tables import END, CallTable, SharedCall
from warploom.lower.frame.operands import immediate_bits
from warploom.lower.instrument.guards import Guards
from warploom.program.accesses import space_of
from warploom.program.effects.clusters import accesses_cluster
from warploom.program.preconditions import operand_checks

WIDEST = 64
"""The bits of the widest registers and literals that shared functions handle."""

_IN_MEMORY = (Space.GLOBAL, Space.CONST)
"""The spaces of variables whose addresses are known at the launch only."""


class CallArgument(NamedTuple):
    """Holds an argument of a call: its form, and its operand: a constant, or an LLVM value if it is
    known only at run time."""

    form: SourceForm
    operand: int | Value


class CallCode:
    """Emits the instructions of one warp function in baseline code that have shared functions: as
    data in the call table, or as a call if an operand is known only at run time."""

    def __init__(
        self, memory: MemoryCode, functions: SharedFunctions, guards: Guards, *, shuffles: bool
    ) -> None:
        """Creates the call table and the buffer for operands that are known only at run time.
        `shuffles`: an order policy may choose among lanes.
        """
        self.memory, self.operands, self.frame = memory, memory.operands, memory.frame
        self.lanes, self.b, self.guards = memory.lanes, memory.b, guards
        self.functions, self.shuffles = functions, shuffles
        self.table = CallTable(self.frame, functions)
        self._arguments = self.frame.prologue.alloca(ir.ArrayType(I64, MOST_WORDS))

    def emit(self, index: int, instruction: Instruction) -> bool:
        """Appends an instruction's calls to the call table, or emits them, after those of the
        table, if an operand is known only at run time; returns True. Returns False if it has no
        shared function or needs checks of operands; then all calls before it have been emitted, and
        the caller emits it."""
        calls = (
            None
            if any(True for _ in operand_checks(instruction))
            else self._calls(index, instruction)
        )
        if calls is None:
            # The caller emits code, which runs where it stands: after those calls.
            self.flush()
            return False
        for call in calls:
            if all(isinstance(operand, int) for operand in call.operands):
                self.table.add(index, call)
            else:
                self._emit_call(index, instruction, call)
        return True

    def flush(self) -> None:
        """Emits the call that runs the table's pending calls, if there are any, and the exit that
        is taken if one of them faults.
        """
        fault = self.table.flush()
        if fault is not None:
            self._leave_at_fault(fault)

    def _emit_call(self, index: int, instruction: Instruction, call: SharedCall) -> None:
        """Emits a call with operands that are known only at run time, after the table's pending
        ones, in the lanes in which its guard holds, which are counted; the words are stored in a
        buffer on the stack. Its fault leaves the warp function."""
        # Calls in the table come earlier in the program, and may write what this one reads.
        self.flush()
        guard, active = self.guards.counted(index, instruction), self.frame.active.bits()
        on = active if guard is None else self.b.and_(active, self.lanes.bits(guard))
        # A table of this call alone, on the stack: a shared function calls the next one in its
        # table itself, so END has to follow.
        operands = [self.table.number(call), *call.operands, self.table.number(END)]
        for slot, operand in enumerate(operands):
            value = I64(operand) if isinstance(operand, int) else operand
            self.b.store(value, self.lanes.slot(self._arguments, slot))
        self._leave_at_fault(self.table.call(self._arguments, on))

    def _leave_at_fault(self, fault: Value) -> None:
        """Emits the exit that is taken if `fault` is not 0: the result of a call, with the
        instruction's number above FAULT_BITS bits, and below the code of the state space plus 1."""
        code = self.b.and_(fault, I64((1 << FAULT_BITS) - 1))
        instruction = self.b.lshr(fault, I64(FAULT_BITS))
        self.memory.faults.leave(instruction, fault, self.b.sub(code, I64(1)))

    def _calls(self, index: int, instruction: Instruction) -> list[SharedCall] | None:
        """Returns the calls that perform an instruction (of a load of parameters, one for each
        register; else one), None if there are no functions for it."""
        if instruction.operation.kind in (OpKind.LOAD, OpKind.STORE):
            return self._accesses(index, instruction)
        call = self._operation(instruction)
        return None if call is None else [call]

    # ---- instructions that compute --------------------------------------------------------------

    def _operation(self, instruction: Instruction) -> SharedCall | None:
        """Returns the call of an instruction that computes; None if there is no shared function for
        it: it does more than compute (atomics, matrices, textures, barriers, no terms), its calls
        of a routine (slow-path division) are counted, it is a `mov` that packs or unpacks, or it
        has operands that cannot be passed."""
        operation = instruction.operation
        if operation.spec.semantics is None or operation.spec.unit in _OUT_OF_LINE:
            return None
        if ordinary_results(operation) is not None:  # its calls of a routine are counted
            return None
        if operation.kind is OpKind.MOVE and not (
            is_copy(instruction) or _moves_special_or_address(instruction)
        ):
            return None
        first_source = len(operation.spec.destinations)
        targets = tuple(flatten_operands(instruction.operands[:first_source]))
        types = operation.source_types
        sources = list(
            zip(flatten_operands(instruction.operands[first_source:]), types, strict=False)
        )
        if not all(self._can_be_target(target) for target in targets):
            return None
        if not all(type is None or self._can_be_source(source, type) for source, type in sources):
            return None
        arguments = [
            self._argument(read_operand, type) for read_operand, type in sources if type is not None
        ]
        forms = iter(argument.form for argument in arguments)
        function = OperationFunction(
            operation,
            tuple(map(_bits, targets)),
            tuple(SourceForm(0) if type is None else next(forms) for _, type in sources),
        )
        slots = [self._slot(t) for t in targets if isinstance(t, Register)]
        operands = [*slots, *(argument.operand for argument in arguments)]
        return SharedCall(function.name, function.define, operands)

    @staticmethod
    def _can_be_target(target: Operand) -> bool:
        """Returns whether a shared function can write an operand: a register of at most 64 bits, or
        a sink.
        """
        is_register = isinstance(target, Register) and target.type.bits <= WIDEST
        return is_register or isinstance(target, Sink)

    @staticmethod
    def _can_be_source(source: Operand, type: ScalarType) -> bool:
        """Returns whether a source operand read as `type` can be passed to a shared function:
        registers and literals of at most 64 bits, predicates, symbols, and special registers but
        `%laneid` and lane masks, which vary by lane and are not in memory like `%tid`."""
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

    def _argument(self, source: Operand, type: ScalarType) -> CallArgument:
        """Returns the argument for a source operand read as `type`: the slot of a register or of
        `%tid`, relative to the context; a constant, a literal as a signed number or an address; or
        a uniform value known only at run time. A negated predicate has a form of its own."""
        match source:
            case Register():
                return CallArgument(SourceForm(_bits(source)), self._slot(source))
            case Negated():
                return CallArgument(SourceForm(1, negated=True), self._slot(source.operand))
            case Immediate():
                bits = immediate_bits(source, type)
                # As a signed number: the words of a table are i64.
                return CallArgument(SourceForm(0), bits - (bits >> 63 << 64))
            case Symbol() if self._is_constant(source):
                return CallArgument(SourceForm(0), self._offset(source))
            case Special() if source.name.startswith("%tid"):
                return CallArgument(
                    SourceForm(32), self._thread_indices("xyz".index(source.name[-1]))
                )
            case _:
                value = self.lanes.lane(self.operands.read(source, unsigned(64), width=1), 0)
                return CallArgument(SourceForm(0), value)

    def _thread_indices(self, axis: int) -> Value:
        """Returns the byte offset of the warp's thread indices along an axis (0: x) from its
        context, an i64, so that a shared function reads them like a register."""
        # Shared functions add the offset of a register to the context's address. So the launch's
        # table, which is elsewhere, gets the distance from there, which may be negative.
        at = self.b.ptrtoint(self.operands.specials.thread_indices(axis), I64)
        return self.b.sub(at, self.b.ptrtoint(self.frame.context_registers.base(), I64))

    def _slot(self, register: Register) -> int:
        """Returns the byte offset of a register's slot of 32 lanes in the warp's context."""
        return self.frame.context_layout.by_lane[register]

    def _is_constant(self, symbol: Symbol) -> bool:
        """Returns whether the address of a variable is a constant of the program; that of a global
        or constant variable is known at the launch only."""
        return self.frame.program.slots[symbol.name].space not in _IN_MEMORY

    def _offset(self, symbol: Symbol) -> int:
        """Returns the address of a variable, with the symbol's offset, if it is a constant; else
        its index in `Program.globals`, without that offset."""
        slot = self.frame.program.slots[symbol.name]
        return slot.offset + (symbol.offset if self._is_constant(symbol) else 0)

    # ---- loads and stores -----------------------------------------------------------------------

    def _accesses(self, index: int, instruction: Instruction) -> list[SharedCall] | None:
        """Returns the calls of a load or a store; None if there is no function for it: in observed
        launches, for parameters in the frame of a call, stores to parameters, other blocks of a
        cluster, and data that is wider than 64 bits or cannot be passed."""
        if self.memory.instruments.observer is not None:
            return None
        if frame_access(self.frame.program, instruction) is not None:
            return None
        load = instruction.operation.kind is OpKind.LOAD
        # `ld` names its data first, `st` its address.
        data, address = instruction.operands[:2] if load else instruction.operands[1::-1]
        assert isinstance(address, Address)
        type = instruction.operation.modifiers.scalar()
        if space_of(instruction) is Space.PARAM:
            return self._parameters(data, address, type) if load else None
        moved, passed = elements(data), self._can_be_target if load else self._can_be_stored
        if type.bits > WIDEST or not all(map(passed, moved)):
            return None
        if self.memory.clusters.several and accesses_cluster(instruction):
            return None
        arguments = [
            self._target(operand) if load else self._argument(operand, type) for operand in moved
        ]
        access_type = self.memory.accesses.access_type_of(
            "load" if load else "store", index, instruction
        )
        return [self._access(access_type, index, address, arguments)]

    def _access(
        self, access_type: AccessType, index: int, address: Address, arguments: list[CallArgument]
    ) -> SharedCall:
        """Returns the call of the shared function for an access type, with its operands:
        instruction, base address and offset, numbers of access records, bytes of local memory if it
        may be accessed, and the data operands `arguments`."""
        form, base, offset = self._address(address)
        forms, rules = tuple(argument.form for argument in arguments), self.frame.layout.rules
        records = self.frame.variant.records
        function = AccessFunction(access_type, form, forms, rules, self.shuffles, records)
        operands: list[int | Value] = [index]
        operands += [
            base,
            offset,
            *(
                self.memory.storage.record_number(index, accessed_space)
                for accessed_space in function.spaces
            ),
        ]
        if Space.LOCAL in function.spaces:
            local = self.frame.program.local_bytes
            operands += [local_stride(local), local]
        operands += [argument.operand for argument in arguments]
        return SharedCall(function.name, function.define, operands)

    def _target(self, target: Operand) -> CallArgument:
        """Returns the argument for the target of a load: a register's slot; a sink gets the form of
        no bits and the word 0."""
        is_register = isinstance(target, Register)
        return CallArgument(SourceForm(_bits(target)), self._slot(target) if is_register else 0)

    @staticmethod
    def _can_be_stored(source: Operand) -> bool:
        """Returns whether a shared function can store an operand: literals, and registers of at
        most 64 bits but not predicates.
        """
        whole = isinstance(source, Register) and 1 < source.type.bits <= WIDEST
        return whole or isinstance(source, Immediate)

    def _address(self, address: Address) -> tuple[SourceForm, int, int]:
        """Returns the form of an address's base, its operand, and the offset to add. The word is a
        register's slot, a constant address (0 without a base), or the index of a global
        variable."""
        match address.base:
            case None:
                return SourceForm(0), 0, address.offset
            case Register():
                return SourceForm(_bits(address.base)), self._slot(address.base), address.offset
            case Symbol() if self._is_constant(address.base):
                return SourceForm(0), self._offset(address.base), address.offset
            case Symbol():
                offset = address.base.offset + address.offset
                return SourceForm(0, variable=True), self._offset(address.base), offset

    def _parameters(
        self, data: Operand, address: Address, type: ScalarType
    ) -> list[SharedCall] | None:
        """Returns the calls that load kernel parameters at a constant address, one for each target
        that is a register; None if the address is no parameter plus a constant, or something is
        wider than 64 bits."""
        targets, base = elements(data), address.base
        if not isinstance(base, Symbol) or type.bits > WIDEST:
            return None
        if not all(map(self._can_be_target, targets)):
            return None
        calls: list[SharedCall] = []
        for number, target in enumerate(targets):
            if isinstance(target, Register):
                function = ParameterFunction(type, target.type.bits)
                offset = self._offset(base) + address.offset + number * type.bytes
                operands = [self._slot(target), offset]
                calls.append(SharedCall(function.name, function.define, operands))
        return calls


_OUT_OF_LINE = frozenset({Unit.ATOMIC, Unit.MATRIX, Unit.TEXTURE, Unit.BARRIER})
"""The units whose instructions have no shared functions: they do more than compute."""

MOST_WORDS = 32
"""The capacity of the buffer for one call's words; a generic load of eight registers needs 16."""


def _moves_special_or_address(instruction: Instruction) -> bool:
    """Returns whether a `mov` (always of two operands) writes a special register, or the address of
    a variable, to one register; a vector destination, which is unpacked, is not one."""
    target, source = instruction.operands
    return isinstance(target, Register) and isinstance(source, Special | Symbol)


def _bits(operand: Operand) -> int:
    """Returns the bits of a register; 0 for any other operand, which has no register to write."""
    return operand.type.bits if isinstance(operand, Register) else 0
