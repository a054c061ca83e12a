"""Emits the shared functions of loads and stores for baseline code: each performs an access for all
lanes of a warp, with checks and counts, between registers in the warp's context and memory.

Its operands (`baseline.signature`), in order: the number of the instruction; the base of the
address; the offset; and, for each state space that it may access, the number of the access record.
If it may access local memory, the bytes of a warp's local memory and of a lane's follow. The last
are the registers that it loads or stores, or numbers that it stores.

    ld.global.f32 %f1, [%rd1+4];   access.load.global.f32x1.[r64](r32)
                                   words: instruction, slot of %rd1, 4, row, slot of %f1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llvmlite import ir

from warploom.abi.access_type import WIDE, AccessType
from warploom.abi.environment import SPACE_CODES, Slot
from warploom.core.types import ScalarType, unsigned
from warploom.cost.deferred_atomics import AccessCounts
from warploom.cost.device_rules import AccessRules
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I8, I64, PTR, Value, splat_constant, vector
from warploom.lower.access.access_functions import AccessFunctions
from warploom.lower.access.memory import by_space
from warploom.lower.baseline.operations import MemoryRegisters
from warploom.lower.baseline.signature import FAULT_BITS, RunSlot, SharedFunctionBody, SourceForm
from warploom.lower.instrument.recording import record_access
from warploom.program.accesses import spaces_of


@dataclass(frozen=True, slots=True)
class AccessFunction:
    """Identifies the shared function of a load or store in baseline code: the access type, the
    forms of its address and data operands, the rules by which it is counted, `shuffles` (an order
    policy may choose among lanes) and `records` (the launch is recorded)."""

    access_type: AccessType
    address: SourceForm
    data: tuple[SourceForm, ...]
    rules: AccessRules
    shuffles: bool
    records: bool

    @property
    def name(self) -> str:
        """Returns the function's name, which states everything that its code depends on:
        `access.load.global.f32x1.[r64](r32).RULES`, with `shuffled.` and `recorded.` after
        `access.` if these options are set."""
        forms = ",".join(map(str, self.data))
        variant = "shuffled." * self.shuffles + "recorded." * self.records
        return f"access.{variant}{self.access_type.name}[{self.address}]({forms}).{self.rules.name}"

    @property
    def spaces(self) -> tuple[Space, ...]:
        """Returns the state spaces that it may access; several for generic addresses."""
        return spaces_of(self.access_type.space)

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        _Emission(module, self).emit()


class _Emission:
    """Emits the shared function of a load or store, for all lanes of a warp; the constructor emits
    the reads of its operands."""

    def __init__(self, module: ir.Module, function_spec: AccessFunction) -> None:
        """Declares the function and emits the reads of its operands, in their order: instruction,
        base address, offset, the access record of each state space, local memory (if that is one of
        them), data. Allocates the data buffer, and in recorded launches one for the log."""
        self.function_spec, self.access_type = function_spec, function_spec.access_type
        self.body = body = SharedFunctionBody(module, function_spec.name)
        self.lanes, self.b, self.registers = body.lanes, body.b, MemoryRegisters(body.lanes)
        self.functions = AccessFunctions(
            module, function_spec.rules, shuffles=function_spec.shuffles
        )
        self.instruction = body.operand()
        self.base, self.offset = body.source(function_spec.address), body.operand()
        self.record_numbers = {space: body.operand() for space in function_spec.spaces}
        self.local = self._local() if Space.LOCAL in function_spec.spaces else None
        self.data: Sequence[Value] = [body.source(source) for source in function_spec.data]
        size = self.access_type.part_bytes * self.access_type.parts
        self.moved = self.lanes.alloca(ir.ArrayType(ir.IntType(8), size), align=64)
        self.scratch = self.lanes.alloca(WIDE) if function_spec.records else None

    def emit(self) -> None:
        """Emits the function's body: a store's data into the data buffer, the access in each state
        space that addresses may belong to, a load's data into those targets that are registers, and
        the call of the next function."""
        if self.access_type.op == "store":
            for number, (address, source) in enumerate(
                zip(self.data, self.function_spec.data, strict=True)
            ):
                value = self.registers.read(address, source, self._bits)
                self.b.store(value, self._part(number), align=16)
        addresses = self._addresses()
        mask = self.lanes.mask(self.body.on)
        if self.access_type.space is Space.GENERIC:
            by_space(self.lanes, addresses, mask, self._access)
        else:
            self._access(self.access_type.space, addresses, mask)
        if self.access_type.op == "load":
            for number, (address, source) in enumerate(
                zip(self.data, self.function_spec.data, strict=True)
            ):
                if source.bits:
                    type = vector(self.access_type.element)
                    value = self.b.load(self._part(number), typ=type, align=16)
                    self.registers.write(
                        address, source.bits, value, self.access_type.type, self.body.on
                    )
        self.body.call_next_and_return()

    @property
    def _bits(self) -> ScalarType:
        """Returns the unsigned type as wide as an element."""
        return unsigned(self.access_type.type.bits)

    def _part(self, number: int) -> Value:
        """Returns the address of 32 lanes of part `number` (element of a vector access) in the data
        buffer."""
        return self.lanes.slot(self.moved, number * self.access_type.part_bytes, ir.IntType(8))

    def _addresses(self) -> Value:
        """Returns the lanes' addresses, base plus offset; modulo 2^32 if the base is a 32-bit
        register."""
        b = self.b
        base = self.registers.read(self.base, self.function_spec.address, unsigned(64))
        whole = b.add(base, self.lanes.splat(self.offset))
        if self.function_spec.address.bits != 32:
            return whole
        return b.and_(whole, splat_constant(0xFFFFFFFF, I64))

    def _access(self, space: Space, addresses: Value, mask: Value) -> None:
        """Emits the access of the lanes of `mask` to one space, by the access function
        (`lower.access.access_functions`), after its entry in the log in recorded launches. If it
        faults, the shared function returns the instruction's number and, in the low FAULT_BITS
        bits, the space's code plus one."""
        b, environment = self.b, self.body.environment
        access_type, bits = replace(self.access_type, space=space), self.lanes.bits(mask)
        if self.scratch is not None:
            log = self.body.pointer(Slot.LOG_AT)
            recorded = log, self.scratch, self.instruction, access_type, addresses, bits
            record_access(self.lanes, *recorded)
        base, limit = self._memory(space)
        arguments = [
            environment,
            *self._row_and_bounds(space),
            addresses,
            bits,
            self.moved,
            base,
            limit,
        ]
        fault = b.call(self.functions.plain(access_type), arguments)
        with b.if_then(b.icmp_unsigned("!=", fault, I64(0)), likely=False):
            # The code of a space may be 0, as may the instruction's number: plus 1, no fault is 0.
            where = b.shl(self.instruction, I64(FAULT_BITS))
            b.ret(b.or_(where, I64(SPACE_CODES[space] + 1)))

    def _row_and_bounds(self, space: Space) -> tuple[Value, Value]:
        """Returns the addresses of the access record of the instruction in a space, and of the
        bounds of the allocation that it accessed last."""
        b, number = self.b, self.record_numbers[space]
        record = self.lanes.slot(
            self.body.array(RunSlot.RECORDS), b.mul(number, I64(AccessCounts.WORDS))
        )
        return record, self.lanes.slot(self.body.pointer(Slot.CACHE_AT), b.mul(number, I64(2)))

    def _local(self) -> tuple[Value, Value]:
        """Emits the reads of the next two operands, the bytes of a warp's local memory and of a
        lane's. Returns the host address of the running warp's local memory, and the bytes of a
        lane's."""
        before = self.b.mul(self.body.run_value(RunSlot.WARP), self.body.operand())
        at = self.b.gep(self.body.pointer(Slot.LOCAL_AT), [before], source_etype=I8)
        return at, self.body.operand()

    def _memory(self, space: Space) -> tuple[Value, Value]:
        """Returns the host address of a space's memory and its size in bytes (of local memory, for
        one lane); zeros for global and constant memory, whose addresses are host addresses."""
        if space is Space.SHARED:
            return self.body.pointer(Slot.SHARED_AT), self.body.slot(Slot.SHARED_BYTES)
        if space is Space.LOCAL:
            assert self.local is not None
            return self.local
        return ir.Constant(PTR, None), I64(0)
