"""Defines how the functions that kernels share are called: all alike, for a table names them.

    fault = function(environment, run, registers, functions, on, words)

`run` has the words of `RunWord`; `registers` is where the context of the warp begins; `on` are the
lanes that execute the instruction. `words` are i64: what the instruction's operands are, one after
the other, and then the number, among `functions`, of the function that comes next, whose own words
follow. Each function ends with a tail call of the next (threaded code), the last, `END`, returns 0.
Where a lane faults, a function returns the fault: one more than the code of the space, and from bit
FAULT_BITS on the number of the instruction.
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


class RunWord(IntEnum):
    """The words of a run that are no part of the environment: the addresses of the rows and of the
    counts of the kernel, and the number of the warp in its block."""

    ROWS = 0
    COUNTS = auto()
    WARP = auto()


class SourceForm(NamedTuple):
    """The form of a source: a register of so many bits (1: a predicate), perhaps negated; or a
    number (`bits` is 0), perhaps the address of a `variable`.

    Its word is the place of the register in the warp's context, in bytes; the number; or the index
    of the variable in `Program.globals`.
    """

    bits: int
    negated: bool = False
    variable: bool = False

    def __str__(self) -> str:
        if self.variable:
            return "v"
        return f"{'!' * self.negated}{f'r{self.bits}' if self.bits else 'n'}"


class SharedFunctionBody:
    """A function of SIGNATURE while it is emitted into a module. Words are taken one by one."""

    def __init__(self, module: ir.Module, name: str) -> None:
        self.function = ir.Function(module, SIGNATURE, name)
        self.lanes = Lanes(module, FoldingBuilder(self.function.append_basic_block("entry")))
        self.b = self.lanes.b
        self.environment, self._run, self.registers, *rest = self.function.args
        self._functions, self.on, self._words = rest
        self._words_read = 0

    def word(self) -> Value:
        """Returns the next word."""
        at = self.lanes.slot(self._words, self._words_read)
        self._words_read += 1
        return self.b.load(at, typ=I64)

    def run_word(self, word: RunWord) -> Value:
        """Returns a word of the run."""
        return self.b.load(self.lanes.slot(self._run, int(word)), typ=I64)

    def array(self, word: RunWord) -> Value:
        """Returns an address among the words of the run, as a pointer."""
        return self.b.inttoptr(self.run_word(word), PTR)

    def call_next(self, on: Value) -> Value:
        """Returns what the function returns that comes next, which is called for the lanes `on`."""
        return self._call(self.lanes.slot(self._words, self._words_read), on, "")

    def call_next_and_return(self, after: Value | int = 0) -> None:
        """Ends with a tail call of the function that comes next, or so many words later."""
        place = self.lanes.slot(self._words, self._words_read)
        self.b.ret(self._call(self.lanes.slot(place, after), self.on, "musttail"))

    def _call(self, place: Value, on: Value, tail: str) -> Value:
        """Emits the call of the function whose number stands at a place."""
        number = self.b.load(place, typ=I64)
        address = self.b.load(self.lanes.slot(self._functions, number), typ=I64)
        function = self.b.inttoptr(address, ir.PointerType(SIGNATURE))
        words = self.lanes.slot(place, 1)
        given = [self.environment, self._run, self.registers, self._functions, on, words]
        return self.b.call(function, given, tail=tail)

    def place(self) -> Value:
        """Returns the address of the register that the next word names."""
        return self.b.gep(self.registers, [self.word()], source_etype=I8)

    def source(self, form: SourceForm) -> Value:
        """Returns what the next word names: the address of a register, or a number."""
        if form.bits:
            return self.place()
        if not form.variable:
            return self.word()
        at = self.b.gep(self.pointer(Slot.GLOBALS_AT), [self.word()], source_etype=I64)
        return self.b.load(at, typ=I64)

    def slot(self, slot: Slot) -> Value:
        """Returns a value of the environment."""
        return self.b.load(self.lanes.slot(self.environment, int(slot)), typ=I64)

    def pointer(self, slot: Slot) -> Value:
        """Returns a host address of the environment, as a pointer."""
        return self.b.inttoptr(self.slot(slot), PTR)
