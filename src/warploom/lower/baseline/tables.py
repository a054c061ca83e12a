"""Tables of calls: instructions that follow each other become data, which the functions that they
name work through (threaded code: J. R. Bell, Communications of the ACM 16 (6), 1973).

A table is for LLVM a constant array, which costs next to nothing to compile: as code, a call with
its operands is some 20 instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.llvm.lanes import I32, I64, PTR, Value, spelled
from warploom.lower.access.shared_functions import Define, SharedFunctions
from warploom.lower.baseline.signature import SIGNATURE, RunWord, SharedFunctionBody
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.recording import record_guard
from warploom.ptx.ir import Guard


@dataclass(frozen=True, slots=True)
class SharedCall:
    """A call of a shared function: its name and definition, and its words: numbers, or values where
    they are known only when the kernel runs."""

    name: str
    define: Define
    words: Sequence[Any] = ()


class CallTable:
    """The tables of a warp function: `add` puts a call behind those before it, `flush` emits what
    makes all calls since the last time."""

    def __init__(self, frame: Frame, functions: SharedFunctions) -> None:
        self.frame, self._declared = frame, functions
        self._numbers: dict[str, int] = {}
        self._words: list[int] = []
        self._begun = 0
        self._table: Any = ir.GlobalVariable(frame.module, ir.ArrayType(I64, 0), "calls")
        self._functions: Any = ir.GlobalVariable(frame.module, ir.ArrayType(PTR, 0), "functions")
        prologue = frame.prologue
        self._run = prologue.alloca(ir.ArrayType(I64, len(RunWord)))
        for word, array in ((RunWord.ROWS, frame.rows), (RunWord.COUNTS, frame.counts)):
            address = prologue.b.ptrtoint(array, I64)
            prologue.b.store(address, prologue.slot(self._run, int(word)))

    def number(self, call: SharedCall) -> int:
        """Returns the number of the function of a call."""
        if call.name not in self._numbers:
            self._declared.declare(call.name, SIGNATURE, call.define)
            self._numbers[call.name] = len(self._numbers)
        return self._numbers[call.name]

    def add(self, index: int, call: SharedCall) -> None:
        """Adds the call of an instruction, in the lanes in which its guard holds, if it has one."""
        words = [self.number(call), *call.words]
        guard = self.frame.program.instructions[index].guard
        if guard is not None:
            words = [*self._guard(index, guard, len(words) + 1), *words, self.number(END)]
        self._words += words

    def _guard(self, index: int, guard: Guard, size: int) -> list[int]:
        """Returns the call that makes those of the next `size` words in the lanes of a guard."""
        function = GuardFunction(guard.negated, self.frame.variant.records)
        place = self.frame.context_layout.by_lane[guard.register]
        call = SharedCall(function.name, function.define)
        return [self.number(call), index, place, self.frame.layout.guarded[index], size]

    def flush(self) -> Value | None:
        """Emits the calls that were added last; returns 0 or the fault of one of them, None where
        there are none."""
        first = self._begun
        if first == len(self._words):
            return None
        self._words.append(self.number(END))
        self._begun = len(self._words)
        return self.call(self.frame.lanes.slot(self._table, first), self.frame.active.bits())

    def call(self, words: Value, on: Value) -> Value:
        """Emits the calls from a place on, for the lanes `on`; returns 0 or the fault of one."""
        frame, lanes = self.frame, self.frame.lanes
        lanes.b.store(frame.warp, lanes.slot(self._run, int(RunWord.WARP)))
        number = lanes.b.load(words, typ=I64)
        address = lanes.b.load(lanes.slot(self._functions, number), typ=I64)
        function = lanes.b.inttoptr(address, ir.PointerType(SIGNATURE))
        given = [frame.environment, self._run, frame.homes.base(), self._functions, on]
        return lanes.b.call(function, [*given, lanes.slot(words, 1)])

    def finish(self) -> None:
        """Writes the tables into the module."""
        names = [self._declared.declared(name).get_reference() for name in self._numbers]
        for variable, element, written in (
            (self._table, I64, map(str, self._words)),
            (self._functions, PTR, names),
        ):
            texts = [f"{element} {word}" for word in written]
            variable.value_type = ir.ArrayType(element, len(texts))
            variable.initializer = spelled(variable.value_type, f"[{', '.join(texts)}]")
            variable.global_constant, variable.linkage = True, "internal"


def _define_end(module: ir.Module) -> None:
    """Emits the function that ends a table into a module."""
    SharedFunctionBody(module, END.name).b.ret(I64(0))


END = SharedCall("end", _define_end)
"""The call behind the last one."""


@dataclass(frozen=True, slots=True)
class GuardFunction:
    """Makes the next calls, up to an END, in those of its lanes in which a predicate holds, or does
    not (`negated`), and counts these lanes; then goes on behind that. Its words are the number of
    the instruction, the place of the predicate, the index of the count, and how many words to the
    call behind the END. `records` as in `ir.variant`."""

    negated: bool
    records: bool

    @property
    def name(self) -> str:
        return f"guard{'.recorded' * self.records}({'!' * self.negated}r1)"

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module."""
        body = SharedFunctionBody(module, self.name)
        b, lanes = body.b, body.lanes
        instruction, bits = body.word(), b.load(body.place(), typ=I32)
        count, size = body.word(), body.word()
        held = b.and_(body.on, b.not_(bits) if self.negated else bits)
        lanes.add_to(lanes.slot(body.array(RunWord.COUNTS), count), lanes.popcount(held))
        if self.records:
            record_guard(lanes, body.pointer(Slot.LOG_AT), instruction, held)
        fault = body.call_next(held)
        with b.if_then(b.icmp_unsigned("!=", fault, I64(0)), likely=False):
            b.ret(fault)
        body.call_next_and_return(size)
