"""Builds call tables: the instructions of a basic block as data that shared functions interpret
(threaded code: J. R. Bell, Communications of the ACM 16 (6), 1973).

For LLVM a table is a constant array of integers, which costs next to nothing to compile; as code, a
call with its operands is some 20 instructions.

    add.s32 %r1, %r2, 5;      3, slot of %r1, slot of %r2, 5,
    @%p1 mov.b32 %r3, %r1;    8, instruction, slot of %p1, count, 4,    guard of the next 4 words
                              4, slot of %r3, slot of %r1, 0,           the move; END of the guard
                              0                                         END of the table

Special registers and instructions without a shared function interrupt a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.isa.instruction import Guard
from warploom.llvm.lanes import I32, I64, PTR, Value, spelled
from warploom.lower.access.shared_functions import Define, SharedFunctions
from warploom.lower.baseline.signature import SIGNATURE, RunSlot, SharedFunctionBody
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.recording import record_guard


@dataclass(frozen=True, slots=True)
class SharedCall:
    """Holds a call of a shared function: its name, how to define it, and its operands: integers, or
    LLVM values for words that are known only at run time."""

    name: str
    define: Define
    operands: Sequence[Any] = ()


class CallTable:
    """Collects the call tables of a warp function, in one array of words: `add` appends a call of a
    shared function as its number and operands, `flush` emits the code that runs all calls since the
    last `flush`."""

    def __init__(self, frame: Frame, functions: SharedFunctions) -> None:
        """Declares the arrays of words and functions, empty until `finish` defines them, and stores
        in the prologue the addresses of access records and counts in the array `run` (`RunSlot`),
        which each shared function gets."""
        self.frame, self._declared = frame, functions
        self._numbers: dict[str, int] = {}
        self._words: list[int] = []
        self._begun = 0
        self._table: Any = ir.GlobalVariable(frame.module, ir.ArrayType(I64, 0), "calls")
        self._functions: Any = ir.GlobalVariable(frame.module, ir.ArrayType(PTR, 0), "functions")
        prologue = frame.prologue
        self._run = prologue.alloca(ir.ArrayType(I64, len(RunSlot)))
        for word, array in ((RunSlot.RECORDS, frame.records), (RunSlot.COUNTS, frame.counts)):
            address = prologue.b.ptrtoint(array, I64)
            prologue.b.store(address, prologue.slot(self._run, int(word)))

    def number(self, call: SharedCall) -> int:
        """Returns the number of a call's function in the kernel's array of functions; at its first
        use the function is declared.
        """
        if call.name not in self._numbers:
            self._declared.declare(call.name, SIGNATURE, call.define)
            self._numbers[call.name] = len(self._numbers)
        return self._numbers[call.name]

    def add(self, index: int, call: SharedCall) -> None:
        """Appends the call of instruction `index`, whose words are integers, to the table; if the
        instruction is guarded, between the guard's call and an END. No code is emitted."""
        words = [self.number(call), *call.operands]
        guard = self.frame.program.instructions[index].guard
        if guard is not None:
            words = [*self._guard(index, guard, len(words) + 1), *words, self.number(END)]
        self._words += words

    def _guard(self, index: int, guard: Guard, size: int) -> list[int]:
        """Returns the words of the guard's call (its function, the instruction, the predicate's
        slot, the counter, `size`), which runs the next `size` words in the lanes in which the guard
        of instruction `index` holds, counts these lanes, and continues after the words."""
        function = GuardFunction(guard.negated, self.frame.variant.records)
        slot = self.frame.context_layout.by_lane[guard.register]
        call = SharedCall(function.name, function.define)
        return [self.number(call), index, slot, self.frame.layout.guarded[index], size]

    def flush(self) -> Value | None:
        """Ends the table since the last `flush` by an END, and emits the call that runs it in the
        active lanes; returns its result, 0 or the fault of one of its calls. Without calls since
        then it emits nothing and returns None."""
        begun = self._begun
        if begun == len(self._words):
            return None
        self._words.append(self.number(END))
        self._begun = len(self._words)
        return self.call(self.frame.lanes.slot(self._table, begun), self.frame.active.bits())

    def call(self, words: Value, on: Value) -> Value:
        """Emits the call that runs the calls from the address `words` up to an END, for the lanes
        `on`; returns 0 or the fault of one of them. The number of the running warp is stored in
        `run` before."""
        frame, lanes = self.frame, self.frame.lanes
        lanes.b.store(frame.warp, lanes.slot(self._run, int(RunSlot.WARP)))
        number = lanes.b.load(words, typ=I64)
        address = lanes.b.load(lanes.slot(self._functions, number), typ=I64)
        function = lanes.b.inttoptr(address, ir.PointerType(SIGNATURE))
        registers, operands = frame.context_registers.base(), lanes.slot(words, 1)
        arguments = [frame.environment, self._run, registers, self._functions, on, operands]
        return lanes.b.call(function, arguments)

    def finish(self) -> None:
        """Defines the arrays of words and of functions in the module, as internal constants, once
        all code has been emitted."""
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
    """Emits the function END, which ends a table: it returns 0, without a call of a next
    function."""
    SharedFunctionBody(module, END.name).b.ret(I64(0))


END = SharedCall("end", _define_end)
"""The call that ends a table."""


@dataclass(frozen=True, slots=True)
class GuardFunction:
    """Identifies the shared function of a guard: it runs the next calls, up to an END, in those of
    its lanes in which a predicate holds (`negated`: does not hold), counts these lanes, and
    continues after the END in all its lanes.

    Its words are the number of the instruction, the slot of the predicate, the index of the count,
    and the number of words up to the call after the END. `records` is that of `ir.variant`.
    """

    negated: bool
    records: bool

    @property
    def name(self) -> str:
        """Returns the function's name, which states whether the lanes are recorded and whether the
        predicate is negated: `guard.recorded(!r1)`."""
        return f"guard{'.recorded' * self.records}({'!' * self.negated}r1)"

    def define(self, module: ir.Module) -> None:
        """Emits the function into a module: counts the lanes in which the guard holds (and records
        them, in recorded launches), calls the guarded functions for them (also if there are none),
        returns their fault if there is one, and continues after these."""
        body = SharedFunctionBody(module, self.name)
        b, lanes = body.b, body.lanes
        instruction, bits = body.operand(), b.load(body.register_address(), typ=I32)
        count, size = body.operand(), body.operand()
        held = b.and_(body.on, b.not_(bits) if self.negated else bits)
        lanes.add_to(lanes.slot(body.array(RunSlot.COUNTS), count), lanes.popcount(held))
        if self.records:
            record_guard(lanes, body.pointer(Slot.LOG_AT), instruction, held)
        # Not a tail call: code continues here after the END. Guards do not nest, so the stack grows
        # by one.
        fault = body.call_next(held)
        with b.if_then(b.icmp_unsigned("!=", fault, I64(0)), likely=False):
            b.ret(fault)
        body.call_next_and_return(size)
