"""The functions of instructions that compute: each does one for all lanes of a warp.

Its arguments are the lanes that execute it, then the places of the registers that it writes, then
its sources: places of registers, or a number for all lanes. Its name says its operation and what
its operands are.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.codegen.folding import FoldingBuilder
from warploom.codegen.lanes import I32, I64, PTR, Lanes, Value, storage_type, vector
from warploom.codegen.lower import Lowering
from warploom.codegen.operands import read_as, register_bits
from warploom.core.types import PRED, ScalarType, unsigned
from warploom.isa.spec import Operation

LINE = 64
"""Registers stand at the begin of lines."""


@dataclass(frozen=True, slots=True)
class Source:
    """The form of a source: a register of so many bits (1: a predicate), perhaps negated, or a
    number (`bits` is 0)."""

    bits: int
    negated: bool = False

    @property
    def argument(self) -> ir.Type:
        """Returns the type of the argument that passes it."""
        return PTR if self.bits else I64

    def __str__(self) -> str:
        return f"{'!' * self.negated}{f'r{self.bits}' if self.bits else 'n'}"


@dataclass(frozen=True, slots=True)
class OperationFunction:
    """An operation with the forms of its operands: `targets` are the bits of the registers that it
    writes, 0 for none."""

    operation: Operation
    targets: tuple[int, ...]
    sources: tuple[Source, ...]

    @property
    def name(self) -> str:
        forms = ",".join([*map(str, self.targets), "=", *map(str, self.sources)])
        return f"operation.{self.operation.text}({forms})"

    @property
    def type(self) -> ir.FunctionType:
        written = [PTR for bits in self.targets if bits]
        read = [source.argument for source in self._read]
        return ir.FunctionType(ir.VoidType(), [I32, *written, *read])

    @property
    def _read(self) -> list[Source]:
        """Returns the sources that have a type: others are not read."""
        types = self.operation.source_types
        return [s for s, type in zip(self.sources, types, strict=False) if type is not None]

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        function = ir.Function(module, self.type, self.name)
        lanes = Lanes(module, FoldingBuilder(function.append_basic_block("entry")))
        registers = Registers(lanes)
        lower = Lowering(lanes, 32)
        on, *places = function.args
        count = sum(bits > 0 for bits in self.targets)
        types = [type for type in self.operation.source_types if type is not None]
        values = [
            registers.read(place, source, type)
            for place, source, type in zip(places[count:], self._read, types, strict=False)
        ]
        terms = self.operation.terms_for(len(self.sources))
        found = [
            (bits, term.type, lower(term, values))
            for bits, term in zip(self.targets, terms, strict=False)
            if bits
        ]
        for place, (bits, type, value) in zip(places, found, strict=False):
            registers.write(place, bits, value, type, on)
        lanes.b.ret_void()


@dataclass(frozen=True, slots=True)
class FillFunction:
    """Writes a number of a type to a register of so many bits: the lanes, its place, the number."""

    value: ScalarType
    bits: int

    @property
    def name(self) -> str:
        return f"fill.{self.value.name}(r{self.bits})"

    @property
    def type(self) -> ir.FunctionType:
        return ir.FunctionType(ir.VoidType(), [I32, PTR, I64])

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        function = ir.Function(module, self.type, self.name)
        lanes = Lanes(module, FoldingBuilder(function.append_basic_block("entry")))
        registers, (on, place, number) = Registers(lanes), function.args
        value = registers.read(number, Source(0), self.value)
        registers.write(place, self.bits, value, self.value, on)
        lanes.b.ret_void()


class Registers:
    """Emits reads and writes of registers in memory."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.b = lanes, lanes.b

    def read(self, place: Value, source: Source, type: ScalarType) -> Value:
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
