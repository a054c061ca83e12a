"""The functions of loads and stores: each does one for all lanes of a warp, with its checks and
counts, between registers in memory and memory.

Its arguments are the environment, the lanes that execute it, the address (the place of a register,
or a number for all lanes), the offset that is added, for each space that it may reach the row and
the bounds that its instruction keeps there (`codegen.places`), where local memory begins and how
long it is, and the places of the registers that it moves (or numbers, which it stores). It returns
0, or one more than the code of the space in which a lane faulted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llvmlite import ir

from warploom.analysis.accesses import reached
from warploom.codegen.access import Shape
from warploom.codegen.access_functions import AccessFunctions
from warploom.codegen.baseline.operations import Registers, Source
from warploom.codegen.environment import SPACE_CODES, Slot
from warploom.codegen.folding import FoldingBuilder
from warploom.codegen.lanes import I32, I64, PTR, Lanes, Value, splat_constant, vector
from warploom.codegen.memory import by_space
from warploom.core.types import ScalarType, unsigned
from warploom.ptx.ir import Space
from warploom.rules.choice import AccessRules


@dataclass(frozen=True, slots=True)
class AccessFunction:
    """A load or a store: what it moves (`shape`), the form of its address, and those of the
    registers that it moves; with the rules by which it is counted. `shuffles` as in
    `codegen.variant`."""

    shape: Shape
    address: Source
    data: tuple[Source, ...]
    rules: AccessRules
    shuffles: bool

    @property
    def name(self) -> str:
        shape, forms = self.shape, ",".join(map(str, self.data))
        moved = f"{shape.op}.{shape.space.value}.{shape.type.name}x{shape.parts}.{shape.route}"
        order = "shuffled." if self.shuffles else ""
        return f"access.{order}{moved}[{self.address}]({forms}).{self.rules.name}"

    @property
    def spaces(self) -> tuple[Space, ...]:
        """Returns the spaces that it may reach."""
        return reached(self.shape.space)

    @property
    def type(self) -> ir.FunctionType:
        kept = [PTR, PTR] * len(self.spaces)
        data = [source.argument for source in self.data]
        given = [PTR, I32, self.address.argument, I64, *kept, PTR, I64, *data]
        return ir.FunctionType(I64, given)

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        _Emission(module, self).emit()


class _Emission:
    """Emits one such function."""

    def __init__(self, module: ir.Module, wanted: AccessFunction) -> None:
        self.wanted, self.shape = wanted, wanted.shape
        self.function = ir.Function(module, wanted.type, wanted.name)
        self.lanes = Lanes(module, FoldingBuilder(self.function.append_basic_block("entry")))
        self.b, self.registers = self.lanes.b, Registers(self.lanes)
        self.functions = AccessFunctions(module, wanted.rules, shuffles=wanted.shuffles)
        environment, on, address, offset, *rest = self.function.args
        self.environment, self.on, self.base, self.offset = environment, on, address, offset
        count = 2 * len(wanted.spaces)
        pairs = zip(rest[:count:2], rest[1:count:2], strict=True)
        self.kept: dict[Space, tuple[Value, Value]] = dict(zip(wanted.spaces, pairs, strict=True))
        self.local = rest[count], rest[count + 1]
        self.data: Sequence[Value] = rest[count + 2 :]
        size = self.shape.part_bytes * self.shape.parts
        self.moved = self.lanes.alloca(ir.ArrayType(ir.IntType(8), size), align=64)

    def emit(self) -> None:
        """Emits the whole function."""
        if self.shape.op == "store":
            for number, (place, source) in enumerate(zip(self.data, self.wanted.data, strict=True)):
                value = self.registers.read(place, source, self._bits)
                self.b.store(value, self._part(number), align=16)
        addresses = self._addresses()
        mask = self.lanes.mask(self.on)
        if self.shape.space is Space.GENERIC:
            by_space(self.lanes, addresses, mask, self._access)
        else:
            self._access(self.shape.space, addresses, mask)
        if self.shape.op == "load":
            for number, (place, source) in enumerate(zip(self.data, self.wanted.data, strict=True)):
                if source.bits:
                    type = vector(self.shape.element)
                    value = self.b.load(self._part(number), typ=type, align=16)
                    self.registers.write(place, source.bits, value, self.shape.type, self.on)
        self.b.ret(I64(0))

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
        b = self.b
        function = self.functions.plain(replace(self.shape, space=space))
        base, limit = self._memory(space)
        bits = self.lanes.bits(mask)
        given = [self.environment, *self.kept[space], addresses, bits, self.moved, base, limit]
        fault = b.call(function, given)
        with b.if_then(b.icmp_unsigned("!=", fault, I64(0)), likely=False):
            b.ret(I64(SPACE_CODES[space] + 1))

    def _memory(self, space: Space) -> tuple[Value, Value]:
        """Returns where a space begins on the host, and its length; zeros for global memory."""
        if space is Space.SHARED:
            at, size = (self._slot(slot) for slot in (Slot.SHARED_AT, Slot.SHARED_BYTES))
            return self.b.inttoptr(at, PTR), size
        return self.local if space is Space.LOCAL else (ir.Constant(PTR, None), I64(0))

    def _slot(self, slot: Slot) -> Value:
        return self.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)
