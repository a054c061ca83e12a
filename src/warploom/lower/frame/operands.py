"""Emits reads of instructions' operands (registers, immediates, special registers, addresses) as
LLVM vectors of lanes, and writes of results to registers.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.core.types import B64, PRED, TYPES, U32, ScalarType, unsigned
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
)
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.isa.terms import argument, canonical
from warploom.llvm.lanes import (
    I1,
    I32,
    I64,
    LANES,
    PTR,
    Value,
    lane_type,
    repeated,
)
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.specials import Specials
from warploom.lower.terms.terms import Lowering
from warploom.program.program import PARAMETERS
from warploom.shapes.vector_shape import WIDTHS
from warploom.simt.address_windows import LOCAL_WINDOW, SHARED_WINDOW


class Operands:
    """Emits reads and writes of operands. `lowerings` lowers terms (`isa.terms`), by vector width;
    `lower` in 32 lanes."""

    def __init__(self, frame: Frame) -> None:
        """Creates a lowering of terms for each vector width, and the reader of special
        registers."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.lowerings = {width: Lowering(frame.lanes, width) for width in WIDTHS}
        self.lower = self.lowerings[LANES]
        self.specials = Specials(frame)

    def read(
        self, operand: Operand, type: ScalarType, *, blind: bool = False, width: int = LANES
    ) -> Value:
        """Returns an operand in `width` lanes, as `type`: bits of another type are truncated or
        extended with zeros, literals converted (`immediate_bits`), a negated predicate inverted.

        `width` is 32, or that of the operand's vector shape or a wider one. `blind`: the result
        does not depend on a NaN's bits, so that an open NaN is not canonicalized (`abi.nans`).
        Raises TypeError for an operand that has no value."""
        if isinstance(operand, Immediate):
            return self.lowerings[width].vectors.constant(immediate_bits(operand, type), type)
        if isinstance(operand, Negated):
            return self.b.not_(self.frame.registers.load(operand.operand, width))
        if isinstance(operand, Register):
            return self._register(operand, type, blind, width)
        if isinstance(operand, Special):
            value = self.specials.read(operand.name, width)
            return self._convert(value, special_type(operand), type)
        if isinstance(operand, Symbol):
            return self._convert(self.address_of(operand, width), B64, type)
        raise TypeError(f"no value in {operand}")

    def bits(self, operand: Operand, type: ScalarType) -> Value:
        """Returns the bits of an operand as integers of the width of `type`, in 32 lanes; a literal
        is first converted to `type`."""
        if isinstance(operand, Immediate):
            return self.lower.vectors.constant(immediate_bits(operand, type), unsigned(type.bits))
        return self.read(operand, unsigned(type.bits))

    def _register(self, register: Register, type: ScalarType, blind: bool, width: int) -> Value:
        """Returns a register in `width` lanes as `type` (`read_as`), with an open NaN canonicalized
        unless `blind`."""
        value = self.frame.registers.load(register, width)
        if register in self.frame.open_nans and not blind:
            value = self.canonicalise(value, register)
        return self._convert(value, register.type, type)

    def uniform(self, operand: Operand, on: Value) -> Value:
        """Returns the value of a u32 operand in the lowest lane of the mask `on`, which has some
        lane, as an i64: that of an operand which PTX requires to be the same in all lanes."""
        value = self.read(operand, U32)
        lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [self.lanes.bits(on), I1(0)])
        return self.b.zext(self.lanes.lane(value, lane), I64)

    def execution_mask(self, instruction: Instruction) -> Value:
        """Returns the executing lanes of an instruction as a mask: the active lanes in which its
        guard holds.
        """
        mask = self.frame.active.mask()
        if instruction.guard is None:
            return mask
        predicate = self.frame.registers.load(instruction.guard.register)
        return self.b.and_(mask, self.b.not_(predicate) if instruction.guard.negated else predicate)

    def canonicalise(self, bits: Value, register: Register) -> Value:
        """Returns the bits of a float register, in any number of lanes, in which any NaN is
        replaced by the canonical one of the register's width.
        """
        width = register.type.bits
        as_float = TYPES[f"f{width}"]
        value = self.b.bitcast(bits, lane_type(as_float, bits.type.count))
        canonical_value = self.lowerings[bits.type.count](canonical(argument(0, as_float)), [value])
        return self.b.bitcast(canonical_value, bits.type)

    def _convert(self, value: Value, have: ScalarType, want: ScalarType) -> Value:
        """Emits a reinterpretation of bits of type `have` as type `want` (`read_as`)."""
        return read_as(self.b, value, have, want)

    def write(self, operand: Operand, value: Value, type: ScalarType, mask: Value | None) -> None:
        """Writes a value of `type` in 32 lanes to a register, in the lanes of `mask` (None: in
        all).

        The value is extended to a wider register by its type's signedness (PTX ISA, "Operand Size
        Exceeding Instruction-Type Size"). A sink (`_`) discards it.
        """
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Register), operand
        bits = self.stored(operand, value, type)
        if mask is not None:
            bits = self.lanes.blend(mask, bits, self.frame.registers.load(operand))
        self.frame.registers.store(operand, bits)

    def stored(self, register: Register, value: Value, type: ScalarType) -> Value:
        """Returns a value of `type`, of any number of lanes, as integers of the register's width,
        in which registers are stored: sign- or zero-extended by `type`, or truncated; a predicate
        as it is."""
        return register_bits(self.b, value, type, register.type.bits)

    # ---- addresses ------------------------------------------------------------------------------

    def address_of(self, symbol: Symbol, width: int = LANES) -> Value:
        """Returns the address of a variable plus the symbol's offset, in its own state space, in
        lanes of 64 bits: from the launch's table for global and constant variables, else a
        constant.
        """
        slot = self.frame.program.slots[symbol.name]
        if slot.space in (Space.GLOBAL, Space.CONST):
            return self.lanes.splat(self._global(slot.offset, symbol.offset), width)
        return repeated(slot.offset + symbol.offset, I64, width)

    def parameters(self, type: ScalarType, width: int = LANES) -> Value:
        """Returns the generic address at which the kernel's parameters begin, in `width` lanes, as
        `type`."""
        slot = self.frame.program.slots[PARAMETERS]
        return self._convert(self.lanes.splat(self._global(slot.offset, 0), width), B64, type)

    def _global(self, index: int, offset: int) -> Value:
        """Returns the address of entry `index` of the launch's table of addresses (a module
        variable, or the parameters) plus an offset, a scalar loaded in the prologue."""
        frame = self.frame
        at = frame.prologue.slot(frame.pointer(Slot.GLOBALS_AT), index)
        return frame.prologue.b.add(frame.prologue.b.load(at, typ=I64), I64(offset))

    def base(self, address: Operand, width: int = LANES) -> Value:
        """Returns the base of an address operand (a register or a variable's address), without its
        offset, in lanes of 64 bits.
        """
        assert isinstance(address, Address)
        if isinstance(address.base, Symbol):
            return self.address_of(address.base, width)
        assert isinstance(address.base, Register)
        return self.read(address.base, unsigned(64), width=width)

    def address(self, operand: Operand, width: int = LANES) -> Value:
        """Returns the address `[base + offset]` in lanes of 64 bits; without a base, the offset.

        The sum has the width of the base register: with a 32-bit base it wraps around at 2^32.
        """
        assert isinstance(operand, Address), operand
        offset = repeated(operand.offset, I64, width)
        if operand.base is None:
            return offset
        if isinstance(operand.base, Symbol):
            base = self.address_of(operand.base, width)
        else:
            base = self.read(operand.base, unsigned(64), width=width)
        if not operand.offset:
            return base
        whole = self.b.add(base, offset)
        if isinstance(operand.base, Register) and operand.base.type.bits == 32:
            return self.b.and_(whole, repeated(0xFFFFFFFF, I64, width))
        return whole

    def host_pointers(self, base: Value | None, offsets: Value) -> Value:
        """Returns a vector of host pointers to `offsets` (64-bit lanes): added to the host address
        `base`, or themselves addresses if that is None."""
        pointers = ir.VectorType(PTR, offsets.type.count)
        if base is None:
            return self.b.inttoptr(offsets, pointers)
        start = self.lanes.splat(self.b.ptrtoint(base, I64), offsets.type.count)
        return self.b.inttoptr(self.b.add(start, offsets), pointers)


def read_as(b: Value, value: Value, have: ScalarType, want: ScalarType) -> Value:
    """Emits a reinterpretation of bits of type `have` as type `want`, truncated or extended with
    zeros. To PRED only a PRED can be converted.
    """
    width = value.type.count
    if want == PRED or have.bits == want.bits:
        return b.bitcast(value, lane_type(want, width))
    resized = b.trunc if have.bits > want.bits else b.zext
    narrowed = resized(value, ir.VectorType(ir.IntType(want.bits), width))
    return b.bitcast(narrowed, lane_type(want, width))


def register_bits(b: Value, value: Value, type: ScalarType, bits: int) -> Value:
    """Emits the conversion of a value of `type` to integers of `bits` bits, sign- or zero-extended
    by `type`, or truncated; a predicate stays as it is.
    """
    if type == PRED:
        return value
    lanes = value.type.count
    integers = b.bitcast(value, ir.VectorType(ir.IntType(type.bits), lanes))
    if bits == type.bits:
        return integers
    wider = b.sext if type.is_signed else b.zext
    resized = wider if bits > type.bits else b.trunc
    return resized(integers, ir.VectorType(ir.IntType(bits), lanes))


WINDOWS = {Space.SHARED: SHARED_WINDOW, Space.LOCAL: LOCAL_WINDOW}
"""The generic address at which a space's window begins; 0 for all other spaces."""


_NUMPY_FLOATS = {32: np.float32, 64: np.float64}


def special_type(operand: Special) -> ScalarType:
    """Returns the PTX type of a special register."""
    return SPECIAL_REGISTERS[operand.name].type


def immediate_bits(operand: Immediate, type: ScalarType) -> int:
    """Returns the bits of a literal as `type`: a float literal is rounded to the width of a float
    type; for other types, as for integers, its low bits."""
    if operand.float_bits and operand.float_bits != type.bits and type.is_float:
        have, want = _NUMPY_FLOATS[operand.float_bits], _NUMPY_FLOATS[type.bits]
        value = np.array(operand.value, f"u{operand.float_bits // 8}").view(have)
        # A literal beyond the range of the narrower type becomes infinite; NumPy would warn of it.
        with np.errstate(over="ignore", invalid="ignore"):
            return int(value.astype(want).view(f"u{type.bits // 8}"))
    return operand.value & ((1 << type.bits) - 1)
