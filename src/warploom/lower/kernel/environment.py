"""Emits reads of the environment and of the schedule's tables in `run`, the function that runs a
launch. Unlike in `warp`, values change while it runs, so each read is a load."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I64, PTR, Lanes, Value
from warploom.simt.schedule_layout import WarpState


class GridEnvironment:
    """Emits reads of the environment into the function `run`; owns its builder."""

    def __init__(self, module: ir.Module, function: ir.Function) -> None:
        """Begins the entry block of the function, whose first argument is the environment."""
        self.function, self.environment = function, function.args[0]
        self.lanes = Lanes(module, FoldingBuilder(self.append("entry")))
        self.b = self.lanes.b

    def append(self, name: str) -> ir.Block:
        """Appends an LLVM block to the function, and returns it; code does not continue there."""
        return self.function.append_basic_block(name)

    def at(self, slot: Slot) -> Value:
        """Returns the address of a slot of the environment."""
        return self.lanes.slot(self.environment, int(slot))

    def get(self, slot: Slot) -> Value:
        """Loads a value of the environment, an i64."""
        return self.b.load(self.at(slot), typ=I64)

    def pointer(self, slot: Slot) -> Value:
        """Loads a host address of the environment, as a pointer."""
        return self.b.inttoptr(self.get(slot), PTR)

    def return_if(self, condition: Value, status: Value) -> None:
        """Emits a return from `run` with a status (i64), taken if a condition (an i1) holds; else
        code continues."""
        with self.b.if_then(condition, likely=False):
            self.b.ret(status)

    def state(self, warp: Value) -> Value:
        """Returns the address of the state of a warp of the current thread block."""
        index = self.b.mul(warp, I64(WarpState.WORDS))
        return self.lanes.slot(self.pointer(Slot.STATES_AT), index)

    def word(self, plan: Value, word: int) -> Value:
        """Loads a word, an i64, of the plan at the address `plan` (`simt.schedule_layout`)."""
        return self.b.load(self.lanes.slot(plan, word), typ=I64)
