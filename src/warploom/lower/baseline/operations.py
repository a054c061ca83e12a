"""The functions of instructions that compute: each does one for all lanes of a warp.

Their words (`baseline.signature`) are the places of the registers that they write, then their
sources. A function's name says its operation and what its operands are.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.core.types import PRED, ScalarType, unsigned
from warploom.isa.spec import Operation
from warploom.llvm.lanes import I8, I32, I64, Lanes, Value, storage_type, vector
from warploom.lower.baseline.signature import SharedFunctionBody, SourceForm
from warploom.lower.frame.operands import read_as, register_bits
from warploom.lower.terms.terms import Lowering

LINE = 64
"""Registers stand at the begin of lines."""


@dataclass(frozen=True, slots=True)
class OperationFunction:
    """An operation with the forms of its operands: `targets` are the bits of the registers that it
    writes, 0 for none. Sources without a type are not read, and have no word."""

    operation: Operation
    targets: tuple[int, ...]
    sources: tuple[SourceForm, ...]

    @property
    def name(self) -> str:
        forms = ",".join([*map(str, self.targets), "=", *map(str, self.sources)])
        return f"operation.{self.operation.text}({forms})"

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        body = SharedFunctionBody(module, self.name)
        registers = MemoryRegisters(body.lanes)
        lower = Lowering(body.lanes, 32)
        places = [body.place() for bits in self.targets if bits]
        types = self.operation.source_types
        values = [
            registers.read(body.source(source), source, type)
            for source, type in zip(self.sources, types, strict=False)
            if type is not None
        ]
        terms = self.operation.terms_for(len(self.sources))
        found = [
            (bits, term.type, lower(term, values))
            for bits, term in zip(self.targets, terms, strict=False)
            if bits
        ]
        for place, (bits, type, value) in zip(places, found, strict=False):
            registers.write(place, bits, value, type, body.on)
        body.call_next_and_return()


@dataclass(frozen=True, slots=True)
class ParameterFunction:
    """Loads a number of a type from the kernel's parameters to a register of so many bits, for all
    lanes the same. Its words are the register's place, and the offset in bytes."""

    value: ScalarType
    bits: int

    @property
    def name(self) -> str:
        return f"parameter.{self.value.name}(r{self.bits})"

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        body = SharedFunctionBody(module, self.name)
        b, registers, place = body.b, MemoryRegisters(body.lanes), body.place()
        at = b.gep(body.pointer(Slot.PARAMETERS_AT), [body.word()], source_etype=I8)
        number = b.load(at, typ=ir.IntType(self.value.bits), align=1)
        wide = number if self.value.bits == 64 else b.zext(number, I64)
        value = registers.read(wide, SourceForm(0), self.value)
        registers.write(place, self.bits, value, self.value, body.on)
        body.call_next_and_return()


class MemoryRegisters:
    """Emits reads and writes of registers in memory."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.b = lanes, lanes.b

    def read(self, place: Value, source: SourceForm, type: ScalarType) -> Value:
        """Returns a source in 32 lanes, in the computing type of `type`."""
        b = self.b
        if not source.bits:
            number = b.trunc(place, ir.IntType(type.bits)) if type.bits < 64 else place
            return read_as(b, self.lanes.splat(number), unsigned_or_pred(type), type)
        if source.bits == 1:
            bits = b.load(place, typ=I32, align=LINE)
            return self.lanes.mask(b.not_(bits) if source.negated else bits)
        value = b.load(place, typ=vector(ir.IntType(source.bits)), align=LINE)
        return read_as(b, value, unsigned(source.bits), type)

    def write(self, place: Value, bits: int, value: Value, type: ScalarType, on: Value) -> None:
        """Writes a value of `type` to a register of so many bits in the lanes `on`."""
        b = self.b
        if bits == 1:
            old = b.and_(b.load(place, typ=I32, align=LINE), b.not_(on))
            b.store(b.or_(old, b.and_(self.lanes.bits(value), on)), place, align=LINE)
            return
        new = register_bits(b, value, type, bits)
        old = b.load(place, typ=storage_type(unsigned(bits)), align=LINE)
        b.store(self.lanes.blend(self.lanes.mask(on), new, old), place, align=LINE)


def unsigned_or_pred(type: ScalarType) -> ScalarType:
    """Returns the type of a number's bits, where it is to be read as `type`."""
    return PRED if type == PRED else unsigned(type.bits)
