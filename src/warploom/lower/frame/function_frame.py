"""The function that runs a warp, and the values of the environment that it is called with."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi.environment import CountLayout, Slot, Status
from warploom.ir.variant import KernelVariant
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I32, I64, LANES, PTR, Lanes, Value, zero
from warploom.program.program import Program

WARP_SIGNATURE = ir.FunctionType(I64, [PTR, PTR, PTR, PTR, I64])
"""`status = warp(environment, counts, rows, contexts of the block, warp in block)`. Through the
contexts only registers are reached; what else is there, by addresses in the environment."""


class FunctionFrame:
    """Holds the function of one warp while it is being emitted, and its arguments.

    `lanes` emits at the place where code goes now; `prologue` at the function's entry, whose values
    reach everywhere. `variant` has the options of the code; where it is baseline code, there is
    the divergent copy of each basic block alone, and all registers are kept in the context.
    """

    def __init__(
        self, module: ir.Module, program: Program, layout: CountLayout, variant: KernelVariant
    ) -> None:
        self.module, self.program, self.layout, self.variant = module, program, layout, variant
        self.function = ir.Function(module, WARP_SIGNATURE, "warp")
        self.function.linkage = "internal"
        for argument in self.function.args[:4]:
            argument.add_attribute("noalias")
        self.environment, self.counts, self.rows, self.contexts, warp = self.function.args
        self.entry = self.function.append_basic_block("entry")
        self.prologue = Lanes(module, FoldingBuilder(self.entry))
        self.lanes = Lanes(module, FoldingBuilder())
        self.exit_block = self.function.append_basic_block("exit")
        self._loaded: dict[Slot, Value] = {}
        self._known: dict[Slot, Value] = {}
        self._pointers: dict[Slot, Value] = {}
        self._warp_values: dict[tuple[str, ir.Block], Value] = {}
        self._warp, self._status = self.variable(I64), self.variable(I64)
        self.prologue.b.store(warp, self._warp)

    def variable(self, type: ir.Type) -> Value:
        """Return a place for a value, zero at the entry; LLVM turns it into a register."""
        place = self.prologue.alloca(type)
        self.prologue.b.store(zero(type), place)
        return place

    # ---- the running warp ------------------------------------------------------------------------

    @property
    def warp(self) -> Value:
        """Return the number of the running warp in its block."""
        return self.get(self._warp)

    def set_warp(self, number: Value) -> None:
        """Run another warp from here on."""
        self._warp_values.clear()
        self.lanes.b.store(number, self._warp)

    def of_warp(self, name: str, make: Callable[[], Value]) -> Value:
        """Returns a value that depends on the running warp alone, made once in an LLVM block."""
        key = name, self.lanes.b.block
        if key not in self._warp_values:
            self._warp_values[key] = make()
        return self._warp_values[key]

    # ---- the environment -------------------------------------------------------------------------

    @contextmanager
    def blocks_of(self, size: tuple[int, int, int] | None) -> Generator[None]:
        """Make code for blocks of a size only, if one is given."""
        if size is not None:
            threads = math.prod(size)
            words = (*size, threads, -(-threads // LANES))
            names = (Slot.NTID_X, Slot.NTID_Y, Slot.NTID_Z, Slot.THREADS, Slot.WARPS)
            self._known = dict(zip(names, map(I64, words), strict=True))
        yield
        self._known = {}

    def slot(self, slot: Slot) -> Value:
        """Return a value of the environment, loaded once at the entry (it does not change in a
        call)."""
        if slot in self._known:
            return self._known[slot]
        if slot not in self._loaded:
            at = self.prologue.slot(self.environment, int(slot))
            self._loaded[slot] = self.prologue.b.load(at, typ=I64)
        return self._loaded[slot]

    def pointer(self, slot: Slot) -> Value:
        """Return a host address of the environment, as a pointer."""
        if slot not in self._pointers:
            self._pointers[slot] = self.prologue.b.inttoptr(self.slot(slot), PTR)
        return self._pointers[slot]

    def word(self, slot: Slot) -> Value:
        """Return a value of the environment as an i32."""
        return self.prologue.b.trunc(self.slot(slot), I32)

    def record(self, slot: Slot, value: Value) -> None:
        """Write a value into the environment."""
        self.lanes.b.store(value, self.lanes.slot(self.environment, int(slot)))

    def get(self, place: Value) -> Value:
        """Return a 64-bit word from its address."""
        return self.lanes.b.load(place, typ=I64)

    # ---- returns ---------------------------------------------------------------------------------

    def leave(self, status: int) -> None:
        """Return from the function."""
        self.lanes.b.store(I64(int(status)), self._status)
        self.lanes.b.branch(self.exit_block)

    def fault(self, kind: int, instruction: int, lane: Value, address: Value, size: Value) -> None:
        """Return with the record of a fault of a lane (an i32); see
        `machine.faults.fault_errors`."""
        b = self.lanes.b
        record = {
            Slot.FAULT_KIND: I64(kind),
            Slot.FAULT_INSTRUCTION: I64(instruction),
            Slot.FAULT_WARP: self.warp,
            Slot.FAULT_LANE: b.zext(lane, I64),
            Slot.FAULT_ADDRESS: address,
            Slot.FAULT_SIZE: size,
        }
        for slot, value in record.items():
            self.record(slot, value)
        self.leave(Status.FAULT)

    def emit_return(self) -> None:
        """Emits the return of the status with which the function was left."""
        self.lanes.b.ret(self.get(self._status))
