"""The functions of loads and stores: each does one for all lanes of a warp, with its checks and
counts, between registers in memory and memory.

Their words (`baseline.signature`) are the base of the address, the offset that is added, for each
space that it may reach the number of the row in which it is counted; where that may be local
memory, a warp's bytes of it and a lane's; then the registers that it moves (or numbers, which it
stores). Before these stands the number of the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llvmlite import ir

from warploom.analysis.accesses import reached
from warploom.codegen.access import WIDE, Shape
from warploom.codegen.access_functions import AccessFunctions
from warploom.codegen.baseline.operations import Registers
from warploom.codegen.baseline.signature import FAULT_BITS, Body, Run, Source
from warploom.codegen.environment import ROW_WIDTH, SPACE_CODES, Slot
from warploom.codegen.lanes import I8, I64, PTR, Value, splat_constant, vector
from warploom.codegen.memory import by_space
from warploom.codegen.recording import record_access
from warploom.core.types import ScalarType, unsigned
from warploom.ptx.ir import Space
from warploom.rules.choice import AccessRules


@dataclass(frozen=True, slots=True)
class AccessFunction:
    """A load or a store: what it moves (`shape`), the form of its address, and those of the
    registers that it moves; with the rules by which it is counted. `shuffles` and `records` as in
    `codegen.variant`."""

    shape: Shape
    address: Source
    data: tuple[Source, ...]
    rules: AccessRules
    shuffles: bool
    records: bool

    @property
    def name(self) -> str:
        shape, forms = self.shape, ",".join(map(str, self.data))
        moved = f"{shape.op}.{shape.space.value}.{shape.type.name}x{shape.parts}.{shape.route}"
        way = "shuffled." * self.shuffles + "recorded." * self.records
        return f"access.{way}{moved}[{self.address}]({forms}).{self.rules.name}"

    @property
    def spaces(self) -> tuple[Space, ...]:
        """Returns the spaces that it may reach."""
        return reached(self.shape.space)

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        _Emission(module, self).emit()


class _Emission:
    """Emits one such function."""

    def __init__(self, module: ir.Module, wanted: AccessFunction) -> None:
        self.wanted, self.shape = wanted, wanted.shape
        self.body = body = Body(module, wanted.name)
        self.lanes, self.b, self.registers = body.lanes, body.b, Registers(body.lanes)
        self.functions = AccessFunctions(module, wanted.rules, shuffles=wanted.shuffles)
        self.instruction = body.word()
        self.base, self.offset = body.source(wanted.address), body.word()
        self.rows = {space: body.word() for space in wanted.spaces}
        self.local = self._local() if Space.LOCAL in wanted.spaces else None
        self.data: Sequence[Value] = [body.source(source) for source in wanted.data]
        size = self.shape.part_bytes * self.shape.parts
        self.moved = self.lanes.alloca(ir.ArrayType(ir.IntType(8), size), align=64)
        self.scratch = self.lanes.alloca(WIDE) if wanted.records else None

    def emit(self) -> None:
        """Emits the whole function."""
        if self.shape.op == "store":
            for number, (place, source) in enumerate(zip(self.data, self.wanted.data, strict=True)):
                value = self.registers.read(place, source, self._bits)
                self.b.store(value, self._part(number), align=16)
        addresses = self._addresses()
        mask = self.lanes.mask(self.body.on)
        if self.shape.space is Space.GENERIC:
            by_space(self.lanes, addresses, mask, self._access)
        else:
            self._access(self.shape.space, addresses, mask)
        if self.shape.op == "load":
            for number, (place, source) in enumerate(zip(self.data, self.wanted.data, strict=True)):
                if source.bits:
                    type = vector(self.shape.element)
                    value = self.b.load(self._part(number), typ=type, align=16)
                    self.registers.write(place, source.bits, value, self.shape.type, self.body.on)
        self.body.go_on()

    @property
    def _bits(self) -> ScalarType:
        return unsigned(self.shape.type.bits)

    def _part(self, number: int) -> Value:
        """Returns where one part of what is moved stands, lane by lane."""
        return self.lanes.slot(self.moved, number * self.shape.part_bytes, ir.IntType(8))

    def _addresses(self) -> Value:
        """Returns the lanes' addresses. Sums of 32 bits begin again at 0."""
        b = self.b
        base = self.registers.read(self.base, self.wanted.address, unsigned(64))
        whole = b.add(base, self.lanes.splat(self.offset))
        if self.wanted.address.bits != 32:
            return whole
        return b.and_(whole, splat_constant(0xFFFFFFFF, I64))

    def _access(self, space: Space, addresses: Value, mask: Value) -> None:
        """Emits the access of the lanes of `mask` to one space; returns where it faults."""
        b, environment = self.b, self.body.environment
        shape, bits = replace(self.shape, space=space), self.lanes.bits(mask)
        if self.scratch is not None:
            log = self.body.pointer(Slot.LOG_AT)
            given = log, self.scratch, self.instruction, shape, addresses, bits
            record_access(self.lanes, *given)
        base, limit = self._memory(space)
        arguments = [environment, *self._kept(space), addresses, bits, self.moved, base, limit]
        fault = b.call(self.functions.plain(shape), arguments)
        with b.if_then(b.icmp_unsigned("!=", fault, I64(0)), likely=False):
            where = b.shl(self.instruction, I64(FAULT_BITS))
            b.ret(b.or_(where, I64(SPACE_CODES[space] + 1)))

    def _kept(self, space: Space) -> tuple[Value, Value]:
        """Returns the row of an access, and the bounds that its instruction keeps."""
        b, number = self.b, self.rows[space]
        row = self.lanes.slot(self.body.array(Run.ROWS), b.mul(number, I64(ROW_WIDTH)))
        return row, self.lanes.slot(self.body.pointer(Slot.CACHE_AT), b.mul(number, I64(2)))

    def _local(self) -> tuple[Value, Value]:
        """Returns where the warp's local memory begins on the host, and its length for a lane."""
        before = self.b.mul(self.body.of_run(Run.WARP), self.body.word())
        at = self.b.gep(self.body.pointer(Slot.LOCAL_AT), [before], source_etype=I8)
        return at, self.body.word()

    def _memory(self, space: Space) -> tuple[Value, Value]:
        """Returns where a space begins on the host, and its length; zeros for global memory."""
        if space is Space.SHARED:
            return self.body.pointer(Slot.SHARED_AT), self.body.slot(Slot.SHARED_BYTES)
        if space is Space.LOCAL:
            assert self.local is not None
            return self.local
        return ir.Constant(PTR, None), I64(0)
