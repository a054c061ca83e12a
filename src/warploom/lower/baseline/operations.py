"""Emits the shared functions of instructions that compute: each performs one for all lanes of a
warp, on registers in the warp's context.

Its operands (`baseline.signature`) are the slots of the registers that it writes, then its sources.
The name has the operation and the forms of the operands:

    add.s32 %r1, %r2, 5;   operation.add.s32(32,=,r32,n)   words: slot of %r1, slot of %r2, 5
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
"""The alignment of registers' slots, in bytes."""


@dataclass(frozen=True, slots=True)
class OperationFunction:
    """Identifies the shared function of an instruction that computes: the operation, the bits of
    the registers that it writes (0: the result is discarded), and the forms of its sources. Sources
    without a type are not read, and have no word."""

    operation: Operation
    targets: tuple[int, ...]
    sources: tuple[SourceForm, ...]

    @property
    def name(self) -> str:
        """Returns the function's name, which states its operation and the forms of its operands:
        `operation.add.s32(32,=,r32,n)`."""
        forms = ",".join([*map(str, self.targets), "=", *map(str, self.sources)])
        return f"operation.{self.operation.text}({forms})"

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module: reads the sources, evaluates the operation's terms in
        32 lanes, writes the targets in the executing lanes, and calls the next function."""
        body = SharedFunctionBody(module, self.name)
        registers = MemoryRegisters(body.lanes)
        lower = Lowering(body.lanes, 32)
        addresses = [body.register_address() for bits in self.targets if bits]
        types = self.operation.source_types
        values = [
            registers.read(body.source(source), source, type)
            for source, type in zip(self.sources, types, strict=False)
            if type is not None
        ]
        terms = self.operation.terms_for(len(self.sources))
        # All results before the first write: a register may be a target and a source as well.
        results = [
            (bits, term.type, lower(term, values))
            for bits, term in zip(self.targets, terms, strict=False)
            if bits
        ]
        for address, (bits, type, value) in zip(addresses, results, strict=False):
            registers.write(address, bits, value, type, body.on)
        body.call_next_and_return()


@dataclass(frozen=True, slots=True)
class ParameterFunction:
    """Identifies a shared function that loads a value of a type from the kernel's parameters to all
    lanes of a register of `bits` bits. Its words are the register's slot and the byte offset."""

    value: ScalarType
    bits: int

    @property
    def name(self) -> str:
        """Returns the function's name, which states the value's type and the register's bits:
        `parameter.f32(r32)`."""
        return f"parameter.{self.value.name}(r{self.bits})"

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module: loads one value from the kernel's parameters, writes it
        to the register in all executing lanes, and calls the next function."""
        body = SharedFunctionBody(module, self.name)
        b, registers, address = body.b, MemoryRegisters(body.lanes), body.register_address()
        at = b.gep(body.pointer(Slot.PARAMETERS_AT), [body.operand()], source_etype=I8)
        number = b.load(at, typ=ir.IntType(self.value.bits), align=1)
        wide = number if self.value.bits == 64 else b.zext(number, I64)
        value = registers.read(wide, SourceForm(0), self.value)
        registers.write(address, self.bits, value, self.value, body.on)
        body.call_next_and_return()


class MemoryRegisters:
    """Emits loads and stores of registers in the warp's context, by their addresses: a vector of 32
    integers, of a predicate the lanes' bits in an i32."""

    def __init__(self, lanes: Lanes) -> None:
        """Stores `lanes` and its builder."""
        self.lanes, self.b = lanes, lanes.b

    def read(self, address: Value, source: SourceForm, type: ScalarType) -> Value:
        """Returns a source in 32 lanes of the type in which `type` is computed; of a predicate the
        mask, inverted for the negated form. `address` is the register's address, or, if the
        source's form has no bits, the number itself (an i64), which all lanes get."""
        b = self.b
        if not source.bits:
            number = b.trunc(address, ir.IntType(type.bits)) if type.bits < 64 else address
            return read_as(b, self.lanes.splat(number), unsigned_or_pred(type), type)
        if source.bits == 1:
            bits = b.load(address, typ=I32, align=LINE)
            return self.lanes.mask(b.not_(bits) if source.negated else bits)
        value = b.load(address, typ=vector(ir.IntType(source.bits)), align=LINE)
        return read_as(b, value, unsigned(source.bits), type)

    def write(self, address: Value, bits: int, value: Value, type: ScalarType, on: Value) -> None:
        """Stores a value of `type`, extended or truncated, to a register of `bits` bits at
        `address`, in the lanes `on` (an i32); other lanes retain theirs."""
        b = self.b
        if bits == 1:
            old = b.and_(b.load(address, typ=I32, align=LINE), b.not_(on))
            b.store(b.or_(old, b.and_(self.lanes.bits(value), on)), address, align=LINE)
            return
        new = register_bits(b, value, type, bits)
        old = b.load(address, typ=storage_type(unsigned(bits)), align=LINE)
        b.store(self.lanes.blend(self.lanes.mask(on), new, old), address, align=LINE)


def unsigned_or_pred(type: ScalarType) -> ScalarType:
    """Returns the predicate type for a predicate, else the unsigned type of the same width: the
    type of a number that is an operand.
    """
    return PRED if type == PRED else unsigned(type.bits)
