"""Reads operands of instructions as lane values, and writes results to registers, on the reference
machine."""

from __future__ import annotations

import numpy as np

from warploom.core.types import B64, PRED, U64, ScalarType
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
from warploom.machine.reference import exact
from warploom.machine.reference.lanes import Values, resized, splat, to_mask
from warploom.machine.reference.state import Warp
from warploom.simt.address_windows import LOCAL_WINDOW, SHARED_WINDOW
from warploom.simt.schedule_layout import CLOCK_READ

WINDOWS = {Space.SHARED: SHARED_WINDOW, Space.LOCAL: LOCAL_WINDOW}
"""The generic address at which a space begins; other spaces begin at 0."""


def read(warp: Warp, operand: Operand, type: ScalarType) -> Values:
    """Returns the operand's bits in each lane as an instruction of type `type` reads them: of a
    register, literal, special register, negated predicate or symbol (its address). Raises TypeError
    for others."""
    if isinstance(operand, Register):
        return resized(warp.registers[operand.name], type.bits)
    if isinstance(operand, Immediate):
        return splat(immediate_bits(operand, type), type, warp.size)
    if isinstance(operand, Special):
        return resized(special(warp, operand.name), type.bits)
    if isinstance(operand, Negated):
        return ~warp.registers[operand.operand.name]
    if isinstance(operand, Symbol):
        return resized(splat(symbol_address(warp, operand), B64, warp.size), type.bits)
    raise TypeError(f"{operand} has no value")


def guard_mask(warp: Warp, instruction: Instruction) -> int:
    """Returns the mask of lanes, active or not, whose guard predicate allows them to execute the
    instruction; all lanes without a guard. Of a negated guard, the bits above the lanes are set too
    (the integer is negative): callers combine it with a mask of lanes."""
    if instruction.guard is None:
        return (1 << warp.size) - 1
    holds = to_mask(warp.registers[instruction.guard.register.name])
    return ~holds if instruction.guard.negated else holds


def special(warp: Warp, name: str) -> Values:
    """Returns the value of a special register in each lane: fixed, computed from the warp's clock,
    or from `warp.specials`. Reading the clock is recorded in the scheduler state (`timed`), for the
    detection of deadlocks."""
    register = SPECIAL_REGISTERS[name]
    if register.fixed is not None:
        return splat(register.fixed, register.type, warp.size)
    if register.clock_bit is not None:
        # Deadlock detection looks for repeated register states, and a warp that reads the clock
        # never repeats one: the scheduler has to know.
        warp.state.timed = CLOCK_READ
        return splat(warp.clock >> register.clock_bit, register.type, warp.size)
    return warp.specials[name]


def write(warp: Warp, operand: Operand, value: Values, type: ScalarType, on: Values) -> None:
    """Writes a result of type `type` to a register, in the lanes where the predicate `on` is true;
    nothing for a sink (`_`), and TypeError for other operands.

    A wider register receives it extended by the signedness of the type (PTX ISA, "Operand Size
    Exceeding Instruction-Type Size").
    """
    if isinstance(operand, Sink):
        return
    if not isinstance(operand, Register):
        raise TypeError(f"{operand} cannot be written")
    old = warp.registers[operand.name]
    # Predicates are arrays of booleans, which have no width to extend.
    new = value if type == PRED else resized(value, operand.type.bits, sign=type.is_signed)
    warp.registers[operand.name] = np.where(on, new, old)


def immediate_bits(operand: Immediate, type: ScalarType) -> int:
    """Returns the bits of a literal as an instruction of type `type` reads them: a float literal of
    another width is rounded to nearest in a float type; any other literal is truncated to the
    width."""
    if operand.float_bits and type.is_float and operand.float_bits != type.bits:
        formats = exact.FORMATS[operand.float_bits], exact.FORMATS[type.bits]
        return exact.to_format(operand.value, *formats, "rn")
    return operand.value & ((1 << type.bits) - 1)


def symbol_address(warp: Warp, symbol: Symbol) -> int:
    """Returns the address of a variable in its own space, plus the symbol's offset: of global and
    constant ones from the launch's `globals`, of others their offset in the space."""
    location = warp.run.program.slots[symbol.name]
    if location.space in (Space.GLOBAL, Space.CONST):
        return warp.run.launch.globals[location.offset] + symbol.offset
    return location.offset + symbol.offset


def addresses(warp: Warp, address: Address) -> list[int]:
    """Returns the address `[base + offset]` in each lane, as the operand gives it, without
    conversion between spaces. The sum wraps around at the width of the base register: 32 bits, or
    64."""
    base = [0] * warp.size if address.base is None else read(warp, address.base, U64).tolist()
    width = address.base.type.bits if isinstance(address.base, Register) else U64.bits
    return [(start + address.offset) % (1 << width) for start in base]
