"""Defines the calling convention of shared functions: functions that execute one instruction for a
warp, compiled once for all kernels, which the call tables of baseline code name. All have one type:

    fault = function(environment, run, registers, functions, on, words)

`run`: the array of `RunSlot`. `registers`: the address of the warp's context. `functions`: the
addresses of the kernel's shared functions. `on`: the executing lanes, an i32. `words`: the position
in the call table, an array of i64: the operands of this function, then the number of the next
function, then its operands:

    words -> slot of %r1, slot of %r2, 5, 7 (the number of the next function), its operands, ...

Each function ends with a tail call of the next (threaded code); the last, `END`, returns 0. If a
lane faults, a function returns the code of the state space plus 1 in the low FAULT_BITS bits, and
the number of the instruction above them.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import NamedTuple

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I8, I32, I64, PTR, Lanes, Value

SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, PTR, I32, PTR])
FAULT_BITS = 8


class RunSlot(IntEnum):
    """Indexes the array `run`, of values that are not in the environment: the addresses of the
    kernel's access records and counts, and the number of the warp in its thread block."""

    RECORDS = 0
    COUNTS = auto()
    WARP = auto()


class SourceForm(NamedTuple):
    """Describes the form of a source operand, which is part of a function's name.

    `r32`: a register of `bits` bits; the table has the byte offset of its slot in the warp's
    context. `r1`, `!r1`: a predicate, a negated one. `n` (`bits` is 0): a number, which the table
    has. `v` (`bits` is 0, `variable`): the address of a variable; the table has the index in
    `Program.globals`.
    """

    bits: int
    negated: bool = False
    variable: bool = False

    def __str__(self) -> str:
        """Returns the form as it stands in a function's name: `v` for a global variable, `n` for a
        number, `r32` for a register of 32 bits, with `!` before the form of a negated predicate."""
        if self.variable:
            return "v"
        return f"{'!' * self.negated}{f'r{self.bits}' if self.bits else 'n'}"


class SharedFunctionBody:
    """Emits a function of SIGNATURE into a module: a shared function, which executes one
    instruction of a call table. Its operands in the table are read in their order, one for each
    call of `operand`, `register_address` or `source`."""

    def __init__(self, module: ir.Module, name: str) -> None:
        """Declares the function in the module and begins its entry block; `on` are its executing
        lanes.
        """
        self.function = ir.Function(module, SIGNATURE, name)
        self.lanes = Lanes(module, FoldingBuilder(self.function.append_basic_block("entry")))
        self.b = self.lanes.b
        self.environment, self._run, self.registers, *rest = self.function.args
        self._functions, self.on, self._operands = rest
        self._operands_read = 0

    def operand(self) -> Value:
        """Emits a load of the next operand, an i64."""
        at = self.lanes.slot(self._operands, self._operands_read)
        self._operands_read += 1
        return self.b.load(at, typ=I64)

    def run_value(self, index: RunSlot) -> Value:
        """Emits a load of one 64-bit word of `run`, the array that each shared function gets
        (`RunSlot`)."""
        return self.b.load(self.lanes.slot(self._run, int(index)), typ=I64)

    def array(self, index: RunSlot) -> Value:
        """Emits a load of an address from a word of the array `run` (`RunSlot`), and returns it as
        a pointer."""
        return self.b.inttoptr(self.run_value(index), PTR)

    def call_next(self, on: Value) -> Value:
        """Emits a call of the next function in the table, for the lanes `on`; returns its result, 0
        or a fault. It runs the table's calls up to an END."""
        return self._call(self.lanes.slot(self._operands, self._operands_read), on, "")

    def call_next_and_return(self, after: Value | int = 0) -> None:
        """Emits a tail call of the function whose number is the next word of the table, or `after`
        words later, for the function's own lanes, and the return of its result. `musttail`, as the
        depth of the stack must not grow with the length of the table."""
        entry = self.lanes.slot(self._operands, self._operands_read)
        self.b.ret(self._call(self.lanes.slot(entry, after), self.on, "musttail"))

    def _call(self, entry: Value, on: Value, tail: str) -> Value:
        """Emits a call, for the lanes `on`, of the function whose number in the kernel's array is
        at the address `entry`; its operands follow there. `tail`: LLVM's marker of tail calls.
        """
        number = self.b.load(entry, typ=I64)
        address = self.b.load(self.lanes.slot(self._functions, number), typ=I64)
        function = self.b.inttoptr(address, ir.PointerType(SIGNATURE))
        operands = self.lanes.slot(entry, 1)
        arguments = [self.environment, self._run, self.registers, self._functions, on, operands]
        return self.b.call(function, arguments, tail=tail)

    def register_address(self) -> Value:
        """Emits a load of the next operand, a register's byte offset, and returns the address of
        the register in the warp's context."""
        return self.b.gep(self.registers, [self.operand()], source_etype=I8)

    def source(self, form: SourceForm) -> Value:
        """Emits the read of the next operand and returns the operand by its form. Of a register
        (`bits` is not 0), it is a pointer to its slot, not its value; else a number (i64), or the
        address of a global variable (i64), loaded from the launch's table by index."""
        if form.bits:  # a register
            return self.register_address()
        if not form.variable:
            return self.operand()
        at = self.b.gep(self.pointer(Slot.GLOBALS_AT), [self.operand()], source_etype=I64)
        return self.b.load(at, typ=I64)

    def slot(self, slot: Slot) -> Value:
        """Emits a load of the i64 in a slot of the launch environment."""
        return self.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)

    def pointer(self, slot: Slot) -> Value:
        """Emits a load of a host address from the launch environment, and returns it as a
        pointer."""
        return self.b.inttoptr(self.slot(slot), PTR)
